//! What a statement of a block does not wait for, and when it is one more like the last.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;

use super::RoutedConnection;
use crate::cluster::{Cluster, ClusterConfig, ClusterMode, Consistency};
use crate::context::Context;
use crate::statement::Statement;

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

type Conn = RoutedConnection<SqliteConnection>;

fn cluster(url: &str) -> Cluster<SqliteConnection> {
    Cluster::new(ClusterConfig::new(url).replica(url)).unwrap()
}

/// A handle on the database, which is made by that and lasts as long.
fn filled(cluster: &Cluster<SqliteConnection>) -> Conn {
    let mut conn = cluster.connection();
    conn.batch_execute(
        "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
         INSERT INTO posts VALUES (1, 'first')",
    )
    .unwrap();
    conn.unstick();
    conn
}

fn typed(conn: &mut Conn) -> QueryResult<(i32, String)> {
    posts::table.first(conn)
}

fn is_steady(conn: &mut Conn) -> bool {
    conn.is_steady(&Statement::read())
}

#[test]
fn a_read_is_one_more_where_the_block_reads_until_something_happens() {
    use Consistency::{Eventual, MaxLag, Session, Strong};
    let in_block = |conn: &mut Conn, consistency| conn.distributed_with(consistency, is_steady);
    type Case = (&'static str, bool, Box<dyn Fn(&mut Conn) -> bool>);
    let cases: Vec<Case> = vec![
        ("nothing has happened", true, Box::new(is_steady)),
        (
            "it has read again",
            true,
            Box::new(|conn| typed(conn).is_ok() && is_steady(conn)),
        ),
        (
            "in a block inside it",
            true,
            Box::new(move |conn| in_block(conn, Session)),
        ),
        (
            "which asks for nothing",
            false,
            Box::new(move |conn| in_block(conn, Eventual)),
        ),
        (
            "which asks for the primary",
            false,
            Box::new(move |conn| in_block(conn, Strong)),
        ),
        (
            "which asks for an age",
            false,
            Box::new(move |conn| in_block(conn, MaxLag(Duration::from_secs(1)))),
        ),
        (
            "the primary is asked for",
            false,
            Box::new(|conn| conn.primary(is_steady)),
        ),
        (
            "it has read there",
            false,
            Box::new(|conn| conn.primary(typed).is_ok() && is_steady(conn)),
        ),
        (
            "it has written",
            false,
            Box::new(|conn| {
                diesel::delete(posts::table.find(7)).execute(conn).is_ok() && is_steady(conn)
            }),
        ),
        (
            "its request has written elsewhere",
            false,
            Box::new(|conn| {
                let mut other = conn.cluster().connection();
                diesel::delete(posts::table.find(7))
                    .execute(&mut other)
                    .is_ok()
                    && is_steady(conn)
            }),
        ),
        (
            "it was told of a write",
            false,
            Box::new(|conn| {
                conn.stick_to_primary();
                is_steady(conn)
            }),
        ),
        (
            "it was told to forget",
            false,
            Box::new(|conn| {
                conn.unstick();
                is_steady(conn)
            }),
        ),
        (
            "in another context",
            false,
            Box::new(|conn| Context::new().run(|| is_steady(conn))),
        ),
        (
            "in a transaction",
            false,
            Box::new(|conn| {
                conn.transaction(|conn| QueryResult::Ok(is_steady(conn)))
                    .unwrap()
            }),
        ),
        (
            "in one on the replica",
            false,
            Box::new(|conn| {
                conn.read_only_transaction(|conn| QueryResult::Ok(is_steady(conn)))
                    .unwrap()
            }),
        ),
        (
            "all goes to the primary",
            false,
            Box::new(|conn| {
                conn.cluster().set_mode(ClusterMode::PrimaryOnly);
                is_steady(conn)
            }),
        ),
        (
            "another statement",
            false,
            Box::new(|conn| conn.is_steady(&Statement::write())),
        ),
        (
            "it was refused",
            false,
            Box::new(|conn| conn.is_steady(&Statement::read().refused())),
        ),
    ];
    let cluster = cluster("file:steady?mode=memory&cache=shared");
    let _keeps_it = filled(&cluster);
    for (what, expected, case) in cases {
        cluster.set_mode(ClusterMode::Normal);
        Context::new().run(|| {
            cluster.connection().distributed(|conn| {
                assert!(!is_steady(conn), "it has not read");
                typed(conn).unwrap();
                assert_eq!(case(conn), expected, "{what}");
            });
        });
    }
}

#[test]
fn a_read_of_a_block_that_has_read_takes_no_lock_that_handles_share() {
    let cluster = cluster("file:locks?mode=memory&cache=shared");
    let (mut conn, shared) = (filled(&cluster), &cluster);
    let (held, is_held) = mpsc::channel();
    let (read, is_read) = mpsc::channel();
    thread::scope(|scope| {
        conn.distributed(|conn| {
            let boxed = |conn: &mut Conn| posts::table.into_boxed().first::<(i32, String)>(conn);
            typed(conn).and(boxed(conn)).unwrap();
            let holder = scope.spawn(move || {
                shared.with_locks_held(|| {
                    held.send(()).unwrap();
                    // whoever needs one of the locks goes on only after this
                    is_read.recv_timeout(Duration::from_secs(20)).is_ok()
                })
            });
            is_held.recv().unwrap();
            typed(conn).and(boxed(conn)).unwrap();
            // nobody listens any more if that took too long
            let _ = read.send(());
            assert!(holder.join().unwrap(), "it has read while all were held");
        });
    });
}

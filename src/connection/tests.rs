//! What a statement of a block does not wait for.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;

use super::RoutedConnection;
use crate::cluster::{Cluster, ClusterConfig};

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

#[test]
fn a_read_of_a_block_that_has_read_takes_no_lock_that_handles_share() {
    const URL: &str = "file:locks?mode=memory&cache=shared";
    let config = ClusterConfig::new(URL).replica(URL);
    let cluster = Cluster::<SqliteConnection>::new(config).unwrap();
    let (mut conn, shared) = (cluster.connection(), &cluster);
    conn.batch_execute(
        "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
         INSERT INTO posts VALUES (1, 'first')",
    )
    .unwrap();
    conn.unstick();
    let (held, is_held) = mpsc::channel();
    let (read, is_read) = mpsc::channel();
    thread::scope(|scope| {
        conn.distributed(|conn| {
            let typed = |conn: &mut RoutedConnection<_>| posts::table.first::<(i32, String)>(conn);
            let boxed = |conn: &mut RoutedConnection<_>| {
                posts::table.into_boxed().first::<(i32, String)>(conn)
            };
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

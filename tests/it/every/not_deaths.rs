//! Errors that say nothing against a node: it stays what it was, and nothing is tried again.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Context, RoutedError};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::kit_log;
use crate::support::{Cluster, Forwarder, holds_within, wait_until};

/// A pool on a cluster of three whose nodes are all up.
fn up(
    cluster: &Cluster,
    change: impl FnOnce(ClusterConfig) -> ClusterConfig,
) -> (Pool, Known<Plain>) {
    let pool = pool_of(4, change(watched(sized(cluster, 4, 4))));
    let known = Known::to(&pool);
    known.wait_for_all();
    (pool, known)
}

/// What is known of the nodes: their states and how often they failed.
fn standing(known: &Known<Plain>) -> Vec<(String, u64)> {
    let node = |name| (known.state(name), known.node(name).errors);
    ["n0", "n1", "n2"].map(node).into()
}

#[test]
fn the_errors_of_a_statement_change_no_state_and_are_passed_on() {
    type Case = (
        &'static str,
        fn(&mut Conn, &Db) -> QueryResult<()>,
        &'static str,
    );
    let cases: [Case; 4] = [
        (
            "a unique violation",
            |conn, _| sql(conn, "INSERT INTO note VALUES (1, 'again')").map(drop),
            "",
        ),
        (
            "a statement timeout on the primary",
            |conn, _| {
                conn.batch_execute(STATEMENT_TIMEOUT)?;
                sql(conn, SLOW).map(drop)
            },
            TIMED_OUT,
        ),
        (
            "a statement timeout in a block",
            |conn, _| {
                conn.session(|conn| conn.batch_execute(STATEMENT_TIMEOUT))?;
                conn.distributed(|conn| sql(conn, SLOW).map(drop))
            },
            TIMED_OUT,
        ),
        ("a lock timeout", wait_for_a_lock, NOT_LOCKED),
    ];
    let cluster = cluster(2);
    let (pool, known) = up(&cluster, |config| config);
    let db = Db { pool, cluster };
    sql(
        &mut db.pool.get().unwrap(),
        "INSERT INTO note VALUES (1, 'first')",
    )
    .unwrap();
    let before = standing(&known);
    for (case, fail, text) in cases {
        for _ in 0..3 {
            let (result, time) = timed(|| fail(&mut db.pool.get().unwrap(), &db));
            let error = result.expect_err(case);
            assert_eq!(RoutedError::downcast(&error), None, "{case}: {error}");
            assert!(error.to_string().contains(text), "{case}: {error}");
            assert!(time < SOON, "{case}: {time:?}");
        }
        assert_eq!(standing(&known), before, "{case}");
    }
    assert_eq!(db.cluster.sql(0, "SELECT body FROM note"), "first");
}

fn wait_for_a_lock(conn: &mut Conn, db: &Db) -> QueryResult<()> {
    let mut holder = plain(db, 0);
    holder.transaction(|holder| {
        diesel::sql_query("UPDATE note SET body = 'held'").execute(holder)?;
        conn.batch_execute(LOCK_TIMEOUT)?;
        let waited = sql(conn, "UPDATE note SET body = 'too late'");
        // given up by whoever holds it, as nothing is to change
        diesel::sql_query("UPDATE note SET body = 'first'").execute(holder)?;
        waited.map(drop)
    })
}

#[test]
fn a_full_pool_changes_no_state() {
    let cluster = cluster(2);
    let pool = pool_of(
        4,
        watched(sized(&cluster, 1, 1)).checkout_timeout(Duration::from_millis(300)),
    );
    let known = Known::to(&pool);
    known.wait_for_all();
    let before = standing(&known);
    let (mut one, mut two) = (pool.get().unwrap(), pool.get().unwrap());
    let mut three = pool.get().unwrap();
    one.distributed(|one| {
        who(one);
        two.distributed(|two| {
            who(two);
            assert_eq!(who(&mut three), "n0", "now all are in use");
            let refused = pool.get().unwrap().distributed(try_who);
            let error = routed(refused);
            assert!(
                matches!(
                    error,
                    RoutedError::PoolTimeout { .. } | RoutedError::FallbackLimit { .. }
                ),
                "{error:?}"
            );
        });
    });
    assert_eq!(standing(&known), before);
}

/// Connections that take all that a server has left for the application.
fn fill(db: &Db, node: usize) -> Vec<Plain> {
    let dial = || Plain::establish(&db.cluster.url(node));
    let held: Vec<Plain> = std::iter::from_fn(|| dial().ok()).collect();
    assert!(!held.is_empty(), "some got in");
    held
}

#[test]
fn a_replica_that_takes_no_more_connections_is_busy_and_not_dead() {
    let cluster = cluster(2);
    cluster.limit_connections(1);
    cluster.wait_replicated();
    let (pool, known) = up(&cluster, |config| config);
    let db = Db { pool, cluster };
    let held = fill(&db, 1);
    let read = || Context::new().run(|| db.pool.get().unwrap().distributed(try_who));
    for _ in 0..50 {
        read().expect("the others serve");
    }
    assert_eq!(known.states(), ["up"; 3]);
    drop(held);
    wait_until("it is asked again", SOON, || read().as_deref() == Ok("n1"));
}

#[test]
fn a_primary_that_takes_no_more_connections_is_an_error_that_says_so() {
    let cluster = cluster(2);
    cluster.limit_connections(0);
    cluster.wait_replicated();
    let (pool, known) = up(&cluster, |config| {
        config.checkout_timeout(Duration::from_millis(500))
    });
    let db = Db { pool, cluster };
    let held = fill(&db, 0);
    let error = try_write(&mut db.pool.get().unwrap(), "refused").expect_err("it is full");
    let text = format!("{error} {:?}", RoutedError::downcast(&error));
    assert!(text.contains(FULL), "{text}");
    assert_eq!(known.states(), ["up"; 3]);
    drop(held);
    wait_until("it takes writes again", SOON, || {
        try_write(&mut db.pool.get().unwrap(), "noted").is_ok()
    });
}

#[test]
fn a_password_that_was_changed_is_one_line_in_the_log_and_not_tried_again_and_again() {
    kit_log::listen();
    let cluster = cluster(1);
    let forwarder = Forwarder::new(&[cluster.port(1)]);
    let replica = diesel_routed::NodeConfig::new(cluster.url_through(1, &forwarder)).name("n1");
    let primary = diesel_routed::NodeConfig::new(cluster.url(0)).name("n0");
    let pool = pool_of(2, watched(ClusterConfig::new(primary).replica(replica)));
    let known = Known::to(&pool);
    known.wait("n1", "up");
    cluster.change_password(0, "another");
    forwarder.cut();
    let dialled = forwarder.accepted();
    let read = || Context::new().run(|| pool.get().unwrap().distributed(try_who));
    wait_until("it is told", SOON, || {
        let _ = read();
        kit_log::errors().iter().any(|line| line.contains("n1"))
    });
    let hammers = || {
        let _ = read();
        forwarder.accepted() - dialled > 5
    };
    assert!(!holds_within(20 * TICK, hammers), "at most each 30 s");
    let told = kit_log::errors();
    let told: Vec<_> = told.iter().filter(|line| line.contains("n1")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(!told[0].contains("app:app"), "{}", told[0]);
}

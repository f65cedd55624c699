//! A replica that becomes primary, and an old primary that comes back.

use std::time::{Duration, Instant};

use diesel_routed::{Context, RoutedError};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{Cluster, holds_within, wait_until};

fn notes(cluster: &Cluster, node: usize) -> usize {
    let count = cluster.sql(node, "SELECT count(*) FROM note");
    count.parse().expect("a number")
}

/// A cluster whose first replica has become the primary, while a pool was on it.
fn promoted(replicas: usize) -> Db {
    let cluster = cluster(replicas);
    let pool = pool_of(4, watched(sized(&cluster, 4, 4)).checkout_timeout(SOON));
    let known = Known::to(&pool);
    write(&mut pool.get().unwrap(), "before");
    known.wait("n1", "up");
    cluster.sql(0, SEE_REPLICATION);
    cluster.wait_replicated();
    cluster.kill(0);
    // what is on a connection when its server dies is lost
    known.wait("n0", "down");
    cluster.promote(1);
    Db { pool, cluster }
}

#[test]
fn writes_go_to_the_promoted_replica_soon_after_it_accepts_them() {
    let db = promoted(1);
    let accepts = Instant::now();
    write(&mut db.pool.get().unwrap(), "after");
    println!(
        "written after {:?}, {:?} are promised",
        accepts.elapsed(),
        2 * TICK
    );
    let bodies = db.cluster.sql(1, "SELECT body FROM note ORDER BY id");
    assert_eq!(bodies, "before\nafter");
    assert_eq!(Known::to(&db.pool).primaries(), ["n1"]);
    for _ in 0..100 {
        write(
            &mut db.pool.get().unwrap(),
            "and no session is left that refuses",
        );
    }
}

#[test]
fn reads_go_to_the_replica_that_follows_the_promoted_one() {
    let db = promoted(2);
    db.cluster.follow(2, 1);
    write(&mut db.pool.get().unwrap(), "after");
    db.cluster.wait_replicated();
    wait_until("blocks read from n2", SOON, || {
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                assert_eq!(bodies(conn), ["before", "after"], "{}", who(conn));
                who(conn) == "n2"
            })
        })
    });
}

#[test]
fn an_old_primary_that_comes_back_gets_no_write() {
    let db = promoted(1);
    write(&mut db.pool.get().unwrap(), "after");
    db.cluster.restart(0);
    let before = notes(&db.cluster, 0);
    let gets_one = || {
        write(&mut db.pool.get().unwrap(), "for the new one");
        notes(&db.cluster, 0) != before
    };
    assert!(!holds_within(10 * TICK, gets_one), "n0 got a write");
    wait_until("it is seen to be back", SOON, || {
        Known::to(&db.pool).state("n0") != "down"
    });
    assert!(!holds_within(10 * TICK, gets_one), "n0 got a write");
    assert_eq!(Known::to(&db.pool).primaries(), ["n1"]);
}

#[test]
fn an_old_primary_that_comes_back_gets_no_write_from_a_process_that_has_just_started() {
    let db = promoted(1);
    write(&mut db.pool.get().unwrap(), "after");
    db.cluster.restart(0);
    let before = notes(&db.cluster, 0);
    for start in 0..5 {
        // the old one is still called primary in the configuration
        let fresh = pool_of(2, watched(sized(&db.cluster, 2, 2)).checkout_timeout(SOON));
        for _ in 0..3 {
            write(&mut fresh.get().unwrap(), "for the new one");
            assert_eq!(
                notes(&db.cluster, 0),
                before,
                "start {start}: n0 got a write"
            );
        }
    }
    assert_eq!(notes(&db.cluster, 1), 2 + 15, "each is on the new one");
}

#[test]
fn nor_does_it_get_a_read() {
    let db = promoted(1);
    write(&mut db.pool.get().unwrap(), "after");
    db.cluster.restart(0);
    let misses = || {
        Context::new().run(|| {
            let seen = db.pool.get().unwrap().distributed(bodies);
            seen != ["before", "after"]
        })
    };
    assert!(
        !holds_within(10 * TICK, misses),
        "it lacks what the new one has"
    );
}

#[test]
fn between_two_that_were_promoted_apart_nobody_decides() {
    let cluster = cluster(2);
    let config = watched(sized(&cluster, 4, 4)).checkout_timeout(Duration::from_secs(1));
    let pool = pool_of(4, config);
    let known = Known::to(&pool);
    known.wait("n1", "up");
    known.wait("n2", "up");
    cluster.kill(0);
    for node in [1, 2] {
        cluster.promote(node);
        let own = format!("INSERT INTO note (body) VALUES ('of n{node} alone')");
        cluster.sql(node, &own);
    }
    let mut last = None;
    wait_until("writes are refused, and it is said why", SOON, || {
        let result = try_write(&mut pool.get().unwrap(), "refused");
        last = result.err().as_ref().and_then(RoutedError::downcast);
        last.as_ref().is_some_and(is_role_conflict)
    });
    let text = last.expect("an error").to_string();
    assert!(text.contains("n1") && text.contains("n2"), "{text}");
}

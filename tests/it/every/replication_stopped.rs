//! Replicas that do not get or do not apply what the primary writes, and how late that makes them.

use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{Consistency, Context};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{Cluster, holds_within};

type Change = fn(&Cluster);

/// The ways in which replication stops: what arrives is not applied, or nothing arrives.
const FAULTS: [(&str, Change, Change); 2] = [
    (
        "nothing is applied",
        |cluster| cluster.pause_replication(1),
        |cluster| cluster.resume_replication(1),
    ),
    (
        "nothing arrives",
        |cluster| cluster.stop_receiving(1),
        |cluster| cluster.receive(1),
    ),
];

fn read(pool: &Pool) -> QueryResult<String> {
    Context::new().run(|| pool.get().expect("a handle is free").distributed(try_who))
}

/// A pool that has found its replica fresh.
fn fresh_pool(cluster: &Cluster) -> (Pool, Known<Plain>) {
    let pool = pool_of(2, strict(sized(cluster, 2, 2)));
    let known = Known::to(&pool);
    known.wait("n1", "up");
    (pool, known)
}

/// By somebody else: nothing sticks here.
fn commit(cluster: &Cluster) {
    cluster.sql(0, "INSERT INTO note (body) VALUES ('news')");
}

/// The replica serves for as long as nothing is written, however long that is.
fn stays_while_nothing_is_written(pool: &Pool, known: &Known<Plain>, case: &str) {
    let leaves = || known.state("n1") != "up" || read(pool).as_deref() != Ok("n1");
    assert!(
        !holds_within(2 * MAX_LAG, leaves),
        "{case}: nobody is behind"
    );
}

/// After a write the replica serves until it is late, and no longer.
fn leaves_when_it_is_late(cluster: &Cluster, pool: &Pool, known: &Known<Plain>, case: &str) {
    let committed = Instant::now();
    commit(cluster);
    known.wait("n1", "lagging");
    let after = committed.elapsed();
    println!("{case}: it was late after {after:?}, {MAX_LAG:?} are set");
    let lag = known.node("n1").lag;
    assert!(
        lag.is_none_or(|lag| lag > MAX_LAG),
        "{case}: {lag:?} is shown"
    );
    // counted from the look before the write
    assert!(after > MAX_LAG / 2, "{case}: it was late after {after:?}");
    assert_eq!(read(pool).as_deref(), Ok("n0"), "{case}: it is not asked");
}

#[test]
fn a_replica_is_late_when_it_lacks_what_is_older_than_max_lag_and_only_then() {
    for (case, stop, go_on) in FAULTS {
        let cluster = cluster(1);
        let (pool, known) = fresh_pool(&cluster);
        stop(&cluster);
        stays_while_nothing_is_written(&pool, &known, case);
        leaves_when_it_is_late(&cluster, &pool, &known, case);
        go_on(&cluster);
        known.wait("n1", "up");
        assert_eq!(read(&pool).as_deref(), Ok("n1"), "{case}: it serves again");
    }
}

fn a_clock_that_is_off_does_not_matter(node: usize, seconds: i32) {
    let case = format!("n{node} off by {seconds} s");
    let cluster = cluster(1);
    cluster.set_clock(node, seconds);
    commit(&cluster);
    cluster.wait_replicated();
    let (pool, known) = fresh_pool(&cluster);
    stays_while_nothing_is_written(&pool, &known, &case);
    commit(&cluster);
    cluster.wait_replicated();
    stays_while_nothing_is_written(&pool, &known, &case);
    cluster.pause_replication(1);
    leaves_when_it_is_late(&cluster, &pool, &known, &case);
}

#[test]
fn the_clock_of_a_node_does_not_matter() {
    thread::scope(|scope| {
        for (node, seconds) in [(1, 3_600), (1, -3_600), (0, 3_600), (0, -3_600)] {
            scope.spawn(move || a_clock_that_is_off_does_not_matter(node, seconds));
        }
    });
}

#[test]
fn without_its_primary_a_replica_serves_blocks_but_none_that_set_a_limit() {
    let cluster = cluster(1);
    let config = strict(sized(&cluster, 2, 2)).checkout_timeout(Duration::from_millis(500));
    let pool = pool_of(2, config);
    let known = Known::to(&pool);
    known.wait("n1", "up");
    let limited = || {
        let second = Consistency::MaxLag(Duration::from_secs(2));
        Context::new().run(|| pool.get().unwrap().distributed_with(second, try_who))
    };
    assert_eq!(limited().as_deref(), Ok("n1"));
    cluster.kill(0);
    known.wait("n0", "down");
    let fails = || read(&pool).as_deref() != Ok("n1");
    assert!(!holds_within(3 * MAX_LAG, fails), "blocks read on");
    routed(limited());
}

#[test]
fn a_replica_that_is_already_late_at_the_start_is_not_asked_until_it_has_caught_up() {
    for (case, stop, go_on) in FAULTS {
        let cluster = cluster(1);
        stop(&cluster);
        commit(&cluster);
        let pool = pool_of(2, strict(sized(&cluster, 2, 2)));
        let known = Known::to(&pool);
        let serves = || known.state("n1") == "up" || read(&pool).as_deref() == Ok("n1");
        assert!(
            !holds_within(2 * MAX_LAG, serves),
            "{case}: it lacks something"
        );
        go_on(&cluster);
        known.wait("n1", "up");
    }
}

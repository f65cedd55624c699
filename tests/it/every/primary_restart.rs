//! A primary that is gone for a while, and comes back as what it was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Context, RoutedError};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{holds_within, wait_until};

const THREADS: usize = 8;

#[test]
fn writes_wait_for_a_restart_and_only_those_in_flight_fail() {
    let cluster = cluster(1);
    let config = watched(sized(&cluster, THREADS as u32, 2)).checkout_timeout(SOON);
    let pool = pool_of(THREADS as u32, config);
    let known = Known::to(&pool);
    let next = AtomicUsize::new(0);
    let insert = || {
        let body = next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut conn = pool.get().expect("a handle is free");
        try_write(&mut conn, &body).map(|_| "written".to_owned())
    };
    let ((), tally) = under_load(THREADS, insert, |tally| {
        tally.wait_for_more(200);
        cluster.kill(0);
        known.wait("n0", "down");
        // what is not in flight waits
        assert!(!holds_within(Duration::from_secs(2), || tally
            .failures()
            .len()
            > THREADS));
        cluster.restart(0);
        tally.wait_for_more(200);
    });
    let failures = tally.failures();
    println!("{} failed: {failures:?}", failures.len());
    assert!(failures.len() <= THREADS, "at most the ones in flight");
    let rows = cluster.sql(0, "SELECT count(*) FROM note").parse::<usize>();
    let distinct = cluster
        .sql(0, "SELECT count(DISTINCT body) FROM note")
        .parse::<usize>();
    assert_eq!(rows, distinct, "none is written twice");
    let rows = rows.expect("a number");
    let written = tally.by("written");
    assert!(
        rows >= written && rows <= written + failures.len(),
        "{rows} rows for {written}"
    );
}

#[test]
fn while_it_is_dead_blocks_read_on_and_a_write_is_one_clear_error_after_waiting() {
    let cluster = cluster(1);
    let patience = Duration::from_secs(1);
    let pool = pool_of(2, watched(sized(&cluster, 2, 2)).checkout_timeout(patience));
    let known = Known::to(&pool);
    known.wait("n1", "up");
    cluster.kill(0);
    known.wait("n0", "down");
    let mut conn = pool.get().unwrap();
    for _ in 0..3 {
        assert_eq!(
            Context::new().run(|| conn.distributed(who)),
            "n1",
            "blocks read on"
        );
        let (refused, waited) = timed(|| try_write(&mut conn, "in vain"));
        match routed(refused) {
            RoutedError::NoPrimary { node, cause } => assert!(node == "n0" && !cause.is_empty()),
            other => panic!("{other:?}"),
        }
        println!("refused after {waited:?}, {patience:?} are set");
        assert!(waited >= patience, "it waited {waited:?} for a primary");
    }
    cluster.restart(0);
    wait_until("it heals by itself", SOON, || {
        try_write(&mut conn, "noted").is_ok()
    });
    assert_eq!(cluster.sql(0, "SELECT DISTINCT body FROM note"), "noted");
}

#[test]
fn a_write_that_waits_succeeds_when_the_primary_is_back() {
    let cluster = cluster(1);
    let pool = pool_of(2, watched(sized(&cluster, 2, 2)).checkout_timeout(SOON));
    let known = Known::to(&pool);
    write(&mut pool.get().unwrap(), "before");
    cluster.kill(0);
    known.wait("n0", "down");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| try_write(&mut pool.get().unwrap(), "after"));
        assert!(
            !holds_within(3 * TICK, || waiting.is_finished()),
            "it waits"
        );
        cluster.restart(0);
        assert_eq!(waiting.join().expect("no panic"), Ok(1));
    });
    let bodies = cluster.sql(0, "SELECT body FROM note ORDER BY id");
    assert_eq!(bodies, "before\nafter", "each once");
}

#[test]
fn a_read_outside_a_block_waits_as_a_write_does() {
    let cluster = cluster(1);
    let pool = pool_of(2, watched(sized(&cluster, 2, 2)).checkout_timeout(SOON));
    let known = Known::to(&pool);
    cluster.kill(0);
    known.wait("n0", "down");
    let pool = &pool;
    thread::scope(|scope| {
        let count = |conn: &mut Conn| note::table.count().get_result::<i64>(conn);
        let waiting = scope.spawn(move || count(&mut pool.get().unwrap()));
        assert!(
            !holds_within(3 * TICK, || waiting.is_finished()),
            "it waits"
        );
        cluster.restart(0);
        assert_eq!(waiting.join().expect("no panic"), Ok(0));
    });
}

//! Servers that are gone, and that come back.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Consistency, NodeState, RoutedError, Strategy};

use super::backend::*;
use super::pools::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

/// The first replica is preferred, and asked again soon.
fn failover(config: ClusterConfig) -> ClusterConfig {
    config
        .strategy(Strategy::Failover)
        .quarantine(Duration::from_millis(200))
}

fn state(pool: &Pool, node: usize) -> NodeState {
    pool.get().unwrap().cluster().status().nodes[node].state
}

#[test]
fn a_dead_replica_is_passed_over_and_serves_again_when_it_is_back() {
    let cluster = cluster(2);
    let pool = pool_of(2, failover(sized(&cluster, 2, 2)));
    let answer = || pool.get().unwrap().distributed(who);
    cluster.kill(1);
    assert_eq!(answer(), "n2", "the next replica answers");
    assert!(matches!(state(&pool, 1), NodeState::Down { .. }));
    cluster.kill(2);
    if KILLS_CONNECTIONS {
        assert_eq!(answer(), "n0", "then the primary");
    }
    cluster.restart(2);
    wait_until("n2 is asked after its quarantine", SOON, || {
        answer() == "n2"
    });
    cluster.restart(1);
    wait_until("n1 is asked after its quarantine", SOON, || {
        answer() == "n1"
    });
    assert_eq!(state(&pool, 1), NodeState::Up);
}

#[test]
fn a_replica_that_dies_under_its_connections_fails_no_read() {
    if !KILLS_CONNECTIONS {
        return;
    }
    let cluster = cluster(2);
    let pool = pool_of(4, failover(sized(&cluster, 2, 2)));
    assert_eq!(answers(&pool, 4).len(), 2, "every connection is open");
    cluster.kill(1);
    for _ in 0..4 {
        assert_eq!(pool.get().unwrap().distributed(who), "n2");
    }
    cluster.kill(2);
    for _ in 0..4 {
        assert_eq!(pool.get().unwrap().distributed(who), "n0");
    }
    cluster.restart(1);
    wait_until("n1 serves again", SOON, || {
        pool.get().unwrap().distributed(who) == "n1"
    });
}

#[test]
fn without_its_primary_the_cluster_reads_on_and_recovers_by_itself() {
    let cluster = cluster(1);
    let config = failover(sized(&cluster, 2, 2)).checkout_timeout(Duration::from_secs(2));
    let pool = pool_of(2, config);
    cluster.kill(0);
    let mut conn = pool.get().unwrap();
    assert_eq!(conn.distributed(who), "n1", "blocks read on");
    for attempt in 0..3 {
        let error = note_it(&mut conn).unwrap_err();
        match RoutedError::downcast(&error) {
            Some(RoutedError::NoPrimary { node, .. }) => assert_eq!(node, "n0"),
            other => panic!("attempt {attempt}: {other:?} for {error}"),
        }
    }
    assert_eq!(conn.distributed(who), "n1", "a failed write marks nothing");
    cluster.restart(0);
    wait_until("the primary is used again", SOON, || {
        note_it(&mut conn).is_ok()
    });
}

#[test]
fn a_primary_that_restarts_under_its_connections_fails_each_request_at_most_once() {
    if !KILLS_CONNECTIONS {
        return;
    }
    let cluster = cluster(0);
    let pool = pool_of(3, sized(&cluster, 3, 1));
    assert_eq!(answers(&pool, 3), [("n0".to_owned(), 3)].into());
    cluster.restart(0);
    let failed = (0..10)
        .filter(|_| note_it(&mut pool.get().unwrap()).is_err())
        .count();
    assert!(
        failed <= 1,
        "after the first loss every old connection is tried, {failed} failed"
    );
}

#[test]
fn a_block_that_prefers_the_primary_reads_from_a_replica_while_it_is_gone() {
    let cluster = cluster(1);
    let pool = pool_of(2, failover(sized(&cluster, 2, 2)));
    let preferred = |pool: &Pool| {
        let mut conn = pool.get().unwrap();
        conn.distributed_with(Consistency::PrimaryPreferred, who)
    };
    if KILLS_CONNECTIONS {
        assert_eq!(preferred(&pool), "n0");
    }
    cluster.kill(0);
    assert_eq!(preferred(&pool), "n1", "also on a connection that was open");
    assert_eq!(preferred(&pool), "n1");
    cluster.restart(0);
    wait_until("the primary is preferred again", SOON, || {
        preferred(&pool) == "n0"
    });
}

#[test]
fn with_everything_down_a_handle_is_lent_and_given_back_without_delay() {
    let cluster = cluster(1);
    let patience = Duration::from_secs(5);
    let config = sized(&cluster, 1, 1).checkout_timeout(patience);
    let pool = pool_of(1, config);
    cluster.kill(0);
    cluster.kill(1);
    let ((), time) = timed(|| (0..1_000).for_each(|_| drop(pool.get().unwrap())));
    assert!(time < patience, "a thousand took {time:?}");
    let (result, time) = timed(|| pool.get().unwrap().distributed(note_it));
    assert!(matches!(
        RoutedError::downcast(&result.unwrap_err()),
        Some(RoutedError::NoPrimary { .. })
    ));
    assert!(
        time < 2 * patience,
        "after checkout_timeout, not after {time:?}"
    );
    assert_eq!(in_flight(&pool), [0, 0]);
}

fn note_it(conn: &mut Conn) -> QueryResult<usize> {
    diesel::insert_into(note::table)
        .values(note::body.eq("noted"))
        .execute(conn)
}

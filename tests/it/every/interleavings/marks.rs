//! Marks, and what they wait for.

use std::time::Duration;

use diesel_routed::{ClusterConfig, Context, Mode, Reason};

use super::super::backend::*;
use super::super::health::*;
use super::{commit, let_pass};
use crate::support::wait_until;

const STICKY: Duration = Duration::from_millis(300);

fn briefly_sticky(config: ClusterConfig) -> ClusterConfig {
    config.max_lag(None).sticky_for(STICKY)
}

#[test]
fn n02_a_write_is_waited_for_longer_than_sticky_for_where_replicas_can_be_compared() {
    let db = paused_db_with(1, briefly_sticky);
    Context::new().run(|| {
        write(&mut db.pool.get().unwrap(), "own");
        let_pass(3 * STICKY);
        let seen = db.pool.get().unwrap().distributed(bodies);
        assert_eq!(seen, ["own"], "the replica still lacks it");
    });
}

/// A handle that lives long, where reads are distributed without being asked.
fn always_distributed(config: ClusterConfig) -> ClusterConfig {
    config.default_mode(Mode::Distributed)
}

#[test]
fn n30_a_handle_that_has_used_the_primary_leaves_it_again_after_a_pause() {
    let pause = Duration::from_secs(3);
    let db = paused_db_with(1, |config| {
        always_distributed(config).max_lag(None).sticky_for(pause)
    });
    let mut conn = db.pool.get().unwrap();
    assert_eq!(conn.primary(who), "n0");
    assert_eq!(who(&mut conn), "n0", "nothing older than it has seen");
    let_pass(pause + STICKY);
    assert_eq!(who(&mut conn), "n1");
}

#[test]
fn n30_a_handle_leaves_a_replica_that_has_become_late() {
    let db = db_with(1, |config| always_distributed(strict(config)));
    let known = Known::to(&db.pool);
    known.wait("n1", "up");
    let mut conn = db.pool.get().unwrap();
    wait_until("it reads from n1", SOON, || {
        conn = db.pool.get().unwrap();
        who(&mut conn) == "n1"
    });
    db.cluster.pause_replication(1);
    commit(&db, "news");
    known.wait("n1", "lagging");
    // without a pause, so that its block has not ended
    assert_eq!(bodies(&mut conn), ["news"], "{:?}", conn.last_route());
    assert_eq!(reason(&conn), Reason::Lagging);
}

//! Waiting a moment for a replica, and asking how old its data is.

use std::thread;
use std::time::Duration;

use diesel_routed::{ClusterConfig, Consistency, NodeStatus, Reason};

use super::backend::*;
use super::pools::timed;
use crate::support::wait_until;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// Probes come far too late to be of use.
fn rarely(config: ClusterConfig) -> ClusterConfig {
    patient(config)
        .check_interval(Duration::from_secs(40))
        .checkout_timeout(LONG)
}

/// Waits until what probes have told is of no use.
fn until_probes_are_older_than(conn: &Conn, age: Duration) {
    let old = |node: &NodeStatus| node.last_probe_age.is_some_and(|probed| probed > age);
    wait_until("the last probe is long ago", LONG, || {
        conn.cluster().status().nodes.iter().all(old)
    });
}

fn reads(conn: &mut Conn) -> (Vec<String>, String) {
    conn.distributed(|conn| (bodies(conn), who(conn)))
}

#[test]
fn a_read_waits_for_a_replica_to_catch_up_for_as_long_as_it_is_told_to() {
    for (wait, node) in [(LONG, "n1"), (SHORT, "n0"), (Duration::ZERO, "n0")] {
        let db = paused_db_with(1, |config| rarely(config).catch_up_wait(wait));
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "own");
        let (read, time) = thread::scope(|scope| {
            let reader = scope.spawn(|| timed(|| reads(&mut conn)));
            if node == "n1" {
                db.cluster.resume_replication(1);
            }
            reader.join().unwrap()
        });
        assert_eq!(read, (vec!["own".to_owned()], node.to_owned()), "{wait:?}");
        if node == "n0" {
            assert!(time >= wait, "{wait:?}: {time:?}");
            assert_eq!(reason(&conn), Reason::Stuck, "after the first read");
        }
    }
}

#[test]
fn data_may_be_younger_than_probes_tell_because_somebody_asks() {
    let db = db_with(1, rarely);
    warm(&db.pool);
    let mut conn = db.pool.get().unwrap();
    let limit = Consistency::MaxLag(Duration::from_secs(5));
    until_probes_are_older_than(&conn, Duration::from_secs(5));
    assert_eq!(conn.distributed_with(limit, who), "n1");
    db.cluster.pause_replication(1);
    db.cluster.sql(0, "INSERT INTO note (body) VALUES ('news')");
    let limit = Consistency::MaxLag(SHORT);
    for _ in 0..3 {
        until_probes_are_older_than(&conn, SHORT);
        let read = conn.distributed_with(limit, |conn| (bodies(conn), who(conn)));
        assert_eq!(read, (vec!["news".to_owned()], "n0".to_owned()));
    }
    assert_eq!(conn.distributed(who), "n1", "who did not ask for it");
    db.cluster.resume_replication(1);
    db.cluster.wait_replicated();
    let limit = Consistency::MaxLag(Duration::from_secs(5));
    let read = conn.distributed_with(limit, |conn| (bodies(conn), who(conn)));
    assert_eq!(read, (vec!["news".to_owned()], "n1".to_owned()));
}

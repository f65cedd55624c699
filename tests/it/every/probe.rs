//! What the servers of a replicated database say of themselves.

use std::time::{Duration, Instant, SystemTime};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{Access, Coverage, Following, Position, ReplicatedConnection, Report, Role};

use super::backend::*;
use super::own_probe::{SLEEP, monitoring_url};
use crate::support::{Cluster, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);

fn monitor(cluster: &Cluster, node: usize) -> Plain {
    let url = monitoring_url(cluster, node);
    Plain::open_probe(&url, Role::Primary, Duration::from_secs(5)).expect("the node answers")
}

fn probe(cluster: &Cluster, node: usize) -> Report {
    monitor(cluster, node).probe().expect("the node answers")
}

fn position(cluster: &Cluster, node: usize) -> Position {
    let position = probe(cluster, node).position;
    position.expect("the node knows its position")
}

fn insert(cluster: &Cluster) {
    cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
}

fn covers(replica: &Position, primary: &Position) -> bool {
    let coverage = replica.covers(primary);
    assert_ne!(coverage, Coverage::Incomparable, "{replica} and {primary}");
    coverage == Coverage::Yes
}

#[test]
fn a_primary_and_its_replicas_tell_what_they_are() {
    let cluster = cluster(2);
    let reports = [0, 1, 2].map(|node| probe(&cluster, node));
    let roles = reports
        .each_ref()
        .map(|report| (report.access, report.following));
    let replica = (Access::ReadOnly, Following::Somebody);
    let primary = (Access::ReadWrite, Following::Nobody);
    assert_eq!(roles, [primary, replica, replica]);
    let [n0, n1, n2] = reports.each_ref().map(|report| &report.identity);
    for one in [n0, n1, n2] {
        assert_eq!(one.system, n0.system, "they are one database");
        assert!(!one.server.is_empty() && !one.run.is_empty(), "{one:?}");
    }
    assert!(
        n0.server != n1.server && n1.server != n2.server,
        "each is itself"
    );
    for (node, report) in reports.iter().enumerate() {
        assert_eq!(report.missing_grant, None, "n{node} showed everything");
    }
}

#[test]
fn a_server_says_the_same_of_itself_on_every_connection() {
    let cluster = cluster(1);
    for node in [0, 1] {
        let identity = probe(&cluster, node).identity;
        let mut conn = monitor(&cluster, node);
        for _ in 0..200 {
            let report = conn.probe().expect("the node answers");
            assert_eq!(report.identity, identity, "n{node}: the next probe");
        }
        let mut user = Plain::establish(&cluster.url(node)).expect("the node answers");
        assert_eq!(
            user.identify(),
            Ok(identity),
            "n{node}: a user's connection"
        );
    }
}

#[test]
fn a_replica_covers_the_primary_once_it_has_caught_up() {
    let cluster = cluster(1);
    for _ in 0..20 {
        let before = position(&cluster, 0);
        insert(&cluster);
        let after = position(&cluster, 0);
        assert!(!covers(&before, &after), "{before} is before {after}");
        assert!(covers(&after, &before), "{after} is after {before}");
        wait_until("the replica covers it", PATIENCE, || {
            covers(&position(&cluster, 1), &after)
        });
        assert_eq!(
            cluster.sql(0, "SELECT count(*) FROM note"),
            cluster.sql(1, "SELECT count(*) FROM note")
        );
    }
}

#[test]
fn a_paused_replica_stays_where_it_is() {
    let cluster = cluster(1);
    cluster.pause_replication(1);
    let paused = position(&cluster, 1);
    insert(&cluster);
    let primary = position(&cluster, 0);
    wait_until("the change has arrived", PATIENCE, || {
        super::own_probe::has_received(&cluster)
    });
    let report = probe(&cluster, 1);
    assert_eq!(report.position, Some(paused.clone()), "nothing was applied");
    assert_eq!(
        report.following,
        Following::Somebody,
        "it is still a replica"
    );
    assert!(!covers(&paused, &primary));
    cluster.resume_replication(1);
    cluster.wait_replicated();
    assert!(covers(&position(&cluster, 1), &primary));
}

#[test]
fn a_restart_is_another_run_of_the_same_server() {
    let cluster = cluster(1);
    let before = [0, 1].map(|node| probe(&cluster, node).identity);
    // the second in which a server started is all that MySQL tells
    let second = || {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let probed = second();
    wait_until("the next second", PATIENCE, || second() > probed);
    for (node, before) in before.iter().enumerate() {
        cluster.restart(node);
        let after = probe(&cluster, node).identity;
        assert_eq!(
            (&after.system, &after.server),
            (&before.system, &before.server)
        );
        assert_ne!(after.run, before.run, "n{node} was restarted");
    }
}

#[test]
fn a_promoted_replica_is_a_primary_at_once() {
    let cluster = cluster(1);
    insert(&cluster);
    cluster.wait_replicated();
    let mut conn = monitor(&cluster, 1);
    let before = conn.probe().expect("the replica answers");
    cluster.promote(1);
    let after = conn.probe().expect("the connection outlives the promotion");
    assert_eq!(before.identity, after.identity, "it is the same run");
    assert_eq!(after.access, Access::ReadWrite);
    assert_eq!(after.following, Following::Nobody);
    super::own_probe::check_promoted(&before, &after);
    cluster.sql(1, "INSERT INTO note (body) VALUES ('y')");
    let written = conn.probe().expect("it answers").position;
    let (written, after) = (
        written.expect("a position"),
        after.position.expect("a position"),
    );
    assert!(!covers(&after, &written), "{after} is before {written}");
}

#[test]
fn a_probe_is_cut_short_after_its_timeout() {
    let cluster = cluster(0);
    let url = cluster.url(0);
    let timeout = Duration::from_millis(200);
    let mut conn = Plain::open_probe(&url, Role::Primary, timeout).expect("it answers");
    conn.prepare_probe(timeout).expect("it answers");
    let started = Instant::now();
    let _ = conn.batch_execute(SLEEP);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert!(conn.probe().is_ok(), "the connection lives");
}

#[test]
fn the_load_counts_statements_that_run() {
    let cluster = cluster(0);
    let mut conn = monitor(&cluster, 0);
    let mut load = || {
        conn.server_load()
            .expect("it answers")
            .expect("it is known")
    };
    wait_until("only the server itself is at work", PATIENCE, || {
        load() <= 1
    });
    let idle = load();
    let url = cluster.url(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut busy = Plain::establish(&url).expect("it answers");
                let _ = busy.batch_execute(SLEEP);
            });
        }
        wait_until("three more", PATIENCE, || load() == idle + 3);
        super::own_probe::wake_up(&cluster);
    });
}

//! What MariaDB alone says of itself.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Access, Following, ReplicatedConnection, Report, ReportedLag};

use crate::kit::mariadb::{Plain, cluster};
use crate::support::{Cluster, wait_until};

pub const SLEEP: &str = "SELECT sleep(60)";

const PATIENCE: Duration = Duration::from_secs(20);

/// A login that sees everything.
pub fn monitoring_url(cluster: &Cluster, node: usize) -> String {
    cluster.url(node)
}

pub fn has_received(cluster: &Cluster) -> bool {
    let written = cluster.sql(0, "SELECT @@gtid_binlog_pos");
    cluster.sql(1, "SHOW SLAVE STATUS").contains(&written)
}

pub fn check_promoted(before: &Report, after: &Report) {
    assert_eq!(before.position, after.position, "nothing was written yet");
}

pub fn wake_up(cluster: &Cluster) {
    cluster.sql(0, "KILL QUERY USER app");
}

fn probe(cluster: &Cluster, node: usize) -> Report {
    let url = cluster.url(node);
    let mut conn = Plain::open_probe(&url, diesel_routed::Role::Primary, Duration::from_secs(5))
        .expect("the node answers");
    conn.probe().expect("the node answers")
}

#[test]
fn the_grant_that_is_missing_shows_whom_a_server_follows() {
    let cluster = cluster(1);
    cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
    let seen = [0, 1].map(|node| probe(&cluster, node));
    cluster.sql(
        0,
        "REVOKE SLAVE MONITOR, BINLOG MONITOR ON *.* FROM app@'%'",
    );
    cluster.wait_replicated();
    let blind = [0, 1].map(|node| probe(&cluster, node));
    for (seen, blind) in seen.iter().zip(&blind) {
        assert_eq!(blind.following, Following::Unknown);
        assert_eq!(
            (&blind.identity, blind.access),
            (&seen.identity, seen.access)
        );
        assert!(blind.position.is_some(), "it needs no grant");
        assert_eq!(blind.reported_lag, ReportedLag::Unsupported);
    }
    let grant = blind[1].missing_grant.expect("it names what is missing");
    cluster.sql(0, &grant.replace("<user>", "app@'%'"));
    cluster.wait_replicated();
    for (node, seen) in seen.iter().enumerate() {
        let granted = probe(&cluster, node);
        assert_eq!(
            (granted.following, granted.missing_grant),
            (seen.following, None),
            "n{node}"
        );
    }
}

#[test]
fn a_replica_counts_only_what_it_has_applied_and_a_primary_all() {
    let cluster = cluster(1);
    cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
    cluster.wait_replicated();
    cluster.set_writable(1);
    let before = probe(&cluster, 1);
    assert_eq!(
        (before.access, before.following),
        (Access::ReadWrite, Following::Somebody)
    );
    cluster.sql(1, "INSERT INTO note (body) VALUES ('errant')");
    assert_eq!(
        probe(&cluster, 1).position,
        before.position,
        "its own write is none"
    );
    cluster.promote(1);
    let after = probe(&cluster, 1).position.expect("a position");
    assert!(after.to_string().contains("101-"), "now it counts: {after}");
}

#[test]
fn a_replica_without_a_position_reports_its_lag() {
    let cluster = cluster(1);
    cluster.sql(
        1,
        "STOP SLAVE; SET GLOBAL gtid_slave_pos = ''; RESET MASTER",
    );
    let stopped = probe(&cluster, 1);
    assert_eq!(stopped.position, None, "an empty text is no position");
    assert_eq!(
        stopped.reported_lag,
        ReportedLag::Unknown,
        "replication does not run"
    );
    cluster.sql(0, "RESET MASTER");
    let status = cluster.sql(0, "SHOW MASTER STATUS");
    let place: Vec<&str> = status.split('\t').collect();
    let (file, offset) = (place[0], place[1]);
    cluster.sql(1, &format!(
        "CHANGE MASTER TO MASTER_USE_GTID = no, MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {offset};
         START SLAVE"
    ));
    let none = ReportedLag::Of(Duration::ZERO);
    wait_until("it has caught up", PATIENCE, || {
        probe(&cluster, 1).reported_lag == none
    });
    assert_eq!(probe(&cluster, 1).position, None);
    cluster.sql(1, "STOP SLAVE SQL_THREAD");
    assert_eq!(probe(&cluster, 1).reported_lag, ReportedLag::Unknown);
    assert_eq!(
        probe(&cluster, 0).reported_lag,
        ReportedLag::Unsupported,
        "a primary has none"
    );
}

#[test]
fn the_start_of_a_server_does_not_move_with_the_clock_of_the_statement() {
    let cluster = cluster(0);
    let run = probe(&cluster, 0).identity.run;
    let mut conn = Plain::establish(&cluster.url(0)).expect("it answers");
    for timestamp in ["1000000000", "2000000000.5", "2147483647", "DEFAULT"] {
        diesel::sql_query(format!("SET timestamp = {timestamp}"))
            .execute(&mut conn)
            .expect("a clock");
        assert_eq!(conn.identify().expect("it answers").run, run, "{timestamp}");
    }
}

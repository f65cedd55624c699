//! What MySQL alone says of itself.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Access, Coverage, Following, ReplicatedConnection, Report, ReportedLag};

use crate::kit::mysql::{Plain, cluster};
use crate::support::{Cluster, wait_until};

pub const SLEEP: &str = "SELECT sleep(60)";

const PATIENCE: Duration = Duration::from_secs(20);

/// A login that sees everything.
pub fn monitoring_url(cluster: &Cluster, node: usize) -> String {
    cluster.url(node)
}

pub fn has_received(cluster: &Cluster) -> bool {
    let received = cluster.sql(
        1,
        "SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status",
    );
    let missing = format!("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{received}')");
    cluster.sql(0, &missing).is_empty()
}

pub fn check_promoted(before: &Report, after: &Report) {
    assert_eq!(before.position, after.position, "nothing was written yet");
}

pub fn wake_up(cluster: &Cluster) {
    let sleeping =
        format!("SELECT id FROM information_schema.processlist WHERE info LIKE '{SLEEP}'");
    for id in cluster.sql(0, &sleeping).lines() {
        cluster.sql(0, &format!("KILL QUERY {id}"));
    }
}

fn probe(cluster: &Cluster, node: usize) -> Report {
    let url = cluster.url(node);
    let mut conn = Plain::open_probe(&url, diesel_routed::Role::Replica, Duration::from_secs(5))
        .expect("the node answers");
    conn.probe().expect("the node answers")
}

#[test]
fn the_grant_that_is_missing_shows_whom_a_server_follows() {
    let cluster = cluster(1);
    cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
    let seen = [0, 1].map(|node| probe(&cluster, node));
    cluster.sql(0, "REVOKE SELECT ON performance_schema.* FROM app@'%'");
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
fn what_a_replica_writes_by_itself_hides_nothing_that_it_lacks() {
    let cluster = cluster(1);
    cluster.set_writable(1);
    let before = probe(&cluster, 1);
    assert_eq!(
        (before.access, before.following),
        (Access::ReadWrite, Following::Somebody)
    );
    cluster.pause_replication(1);
    cluster.sql(1, "INSERT INTO note (id, body) VALUES (1000, 'errant')");
    cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
    let covers = || {
        let [primary, replica] = [0, 1].map(|node| probe(&cluster, node).position.unwrap());
        replica.covers(&primary)
    };
    assert_eq!(covers(), Coverage::No, "its own write is another's");
    cluster.resume_replication(1);
    cluster.wait_replicated();
    assert_eq!(covers(), Coverage::Yes);
}

#[test]
fn a_replica_without_a_position_reports_its_lag() {
    let cluster = cluster(1);
    cluster.sql(1, "STOP REPLICA; SET GLOBAL gtid_mode = ON_PERMISSIVE");
    let stopped = probe(&cluster, 1);
    assert_eq!(stopped.position, None, "not every transaction has a GTID");
    assert_eq!(
        stopped.reported_lag,
        ReportedLag::Unknown,
        "replication does not run"
    );
    let status = cluster.sql(0, "SHOW BINARY LOG STATUS");
    let place: Vec<&str> = status.split('\t').collect();
    let (file, offset) = (place[0], place[1]);
    cluster.sql(
        1,
        &format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0, SOURCE_LOG_FILE = '{file}',
                 SOURCE_LOG_POS = {offset};
             START REPLICA"
        ),
    );
    let none = ReportedLag::Of(Duration::ZERO);
    wait_until("it has caught up", PATIENCE, || {
        probe(&cluster, 1).reported_lag == none
    });
    assert_eq!(probe(&cluster, 1).position, None);
    cluster.sql(1, "STOP REPLICA SQL_THREAD");
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

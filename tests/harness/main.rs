//! The test harness itself.

#[path = "../support/mod.rs"]
mod support;

mod mysql;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use support::{Cluster, holds_within, wait_until};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

/// How each kind of cluster is started.
type Start = fn(usize) -> Cluster;

fn insert(cluster: &Cluster, node: usize, id: u32) {
    cluster.sql(node, &format!("INSERT INTO item VALUES ({id})"));
}

fn ids(cluster: &Cluster, node: usize) -> String {
    cluster
        .sql(node, "SELECT id FROM item ORDER BY id")
        .replace('\n', " ")
}

fn with_items(start: Start, replicas: usize) -> Cluster {
    let cluster = start(replicas);
    cluster.sql(
        0,
        "CREATE TABLE item (id INTEGER PRIMARY KEY); INSERT INTO item VALUES (1);",
    );
    cluster.wait_replicated();
    cluster
}

/// All that must hold for every kind of cluster with two replicas.
fn replicates(start: Start) {
    let cluster = with_items(start, 2);
    for node in 0..3 {
        let name = cluster.try_app_sql(node, "SELECT name FROM node_name");
        assert_eq!(name, Ok(format!("n{node}")), "each node tells its own name");
        assert_eq!(
            ids(&cluster, node),
            "1",
            "n{node} has the primary's table and row"
        );
    }

    pauses(&cluster);
    restarts(&cluster);
}

fn pauses(cluster: &Cluster) {
    cluster.pause_replication(1);
    insert(cluster, 0, 2);
    cluster.wait_replicated();
    assert_eq!(ids(cluster, 2), "1 2", "the other replica goes on");
    assert!(
        !holds_within(SHORT, || ids(cluster, 1) != "1"),
        "a paused replica applies nothing"
    );
    cluster.resume_replication(1);
    cluster.wait_replicated();
    assert_eq!(ids(cluster, 1), "1 2", "a resumed replica catches up");
}

fn restarts(cluster: &Cluster) {
    cluster.kill(2);
    assert!(
        cluster.try_app_sql(2, "SELECT 1").is_err(),
        "a killed node answers nothing"
    );
    insert(cluster, 0, 3);
    cluster.wait_replicated();
    assert_eq!(
        ids(cluster, 1),
        "1 2 3",
        "a killed replica does not hold up the others"
    );
    cluster.restart(2);
    cluster.wait_replicated();
    assert_eq!(ids(cluster, 2), "1 2 3", "a restarted replica catches up");

    cluster.kill(0);
    assert!(
        cluster.try_sql(0, "SELECT 1").is_err(),
        "a killed primary answers nothing"
    );
    cluster.wait_replicated();
    cluster.restart(0);
    insert(cluster, 0, 4);
    cluster.wait_replicated();
    assert_eq!(
        ids(cluster, 1),
        "1 2 3 4",
        "a restarted primary feeds its replicas again"
    );

    cluster.pause_replication(2);
    cluster.restart(2);
    insert(cluster, 0, 5);
    cluster.wait_replicated();
    assert_eq!(ids(cluster, 2), "1 2 3 4 5", "a restart ends a pause");
    assert_eq!(
        cluster.sql(2, "SELECT name FROM node_name"),
        "n2",
        "a name outlives a restart"
    );
}

#[test]
fn postgres_replicates_pauses_and_restarts() {
    replicates(Cluster::postgres);
}

#[test]
fn mariadb_replicates_pauses_and_restarts() {
    replicates(Cluster::mariadb);
}

#[test]
fn sqlite_replicates_pauses_and_restarts() {
    replicates(Cluster::sqlite);
}

/// A failover: the replica becomes a primary, the other one follows it.
fn promotes(start: Start) {
    let cluster = with_items(start, 2);
    cluster.kill(0);
    cluster.promote(1);
    insert(&cluster, 1, 2);
    cluster.follow(2, 1);
    insert(&cluster, 1, 3);
    cluster.wait_replicated();
    assert_eq!(
        ids(&cluster, 2),
        "1 2 3",
        "the other replica follows the promoted one"
    );
    cluster.restart(1);
    insert(&cluster, 1, 4);
    cluster.wait_replicated();
    assert_eq!(
        ids(&cluster, 2),
        "1 2 3 4",
        "a promoted node is still a primary after a restart"
    );
    cluster.restart(0);
    insert(&cluster, 0, 9);
    assert_eq!(
        ids(&cluster, 0),
        "1 9",
        "the old primary comes back as what it was"
    );
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 2), "1 2 3 4", "and nobody follows it");
}

#[test]
fn postgres_promotes() {
    promotes(Cluster::postgres);
}

#[test]
fn mariadb_promotes() {
    promotes(Cluster::mariadb);
}

#[test]
fn sqlite_promotes() {
    promotes(Cluster::sqlite);
}

fn stands_still_while_frozen(start: Start) {
    let cluster = with_items(start, 1);
    cluster.freeze(1);
    let address = ("127.0.0.1", cluster.port(1));
    assert!(
        TcpStream::connect(address).is_ok(),
        "the kernel still accepts"
    );
    insert(&cluster, 0, 2);
    cluster.wait_replicated();
    std::thread::scope(|scope| {
        let read = scope.spawn(|| ids(&cluster, 1));
        assert!(
            !holds_within(SHORT, || read.is_finished()),
            "a frozen server does not answer"
        );
        cluster.thaw(1);
        read.join().expect("the read succeeds after all");
    });
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2", "a thawed replica catches up");
    cluster.freeze(1);
    cluster.restart(1);
    assert_eq!(
        cluster.sql(1, "SELECT name FROM node_name"),
        "n1",
        "a frozen server can be restarted"
    );
}

#[test]
fn a_frozen_postgres_server_answers_nothing_until_thawed() {
    stands_still_while_frozen(Cluster::postgres);
}

#[test]
fn a_frozen_mariadb_server_answers_nothing_until_thawed() {
    stands_still_while_frozen(Cluster::mariadb);
}

fn refuses_writes(start: Start, message: &str) {
    let cluster = with_items(start, 1);
    cluster.sql(0, "GRANT ALL ON item TO app");
    cluster.wait_replicated();
    let refused = cluster
        .try_app_sql(1, "INSERT INTO item VALUES (2)")
        .expect_err("a replica is read-only");
    assert!(refused.contains(message), "{refused}");
}

#[test]
fn postgres_replicas_refuse_writes() {
    refuses_writes(Cluster::postgres, "read-only transaction");
}

#[test]
fn mariadb_replicas_refuse_writes() {
    refuses_writes(Cluster::mariadb, "--read-only option");
}

fn takes_writes_and_goes_on_replicating(start: Start) {
    let cluster = with_items(start, 1);
    cluster.set_writable(1);
    cluster
        .try_app_sql(1, "INSERT INTO item VALUES (100)")
        .expect("it is writable");
    insert(&cluster, 0, 2);
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2 100", "its own row and the primary's");
    cluster.restart(1);
    cluster
        .try_app_sql(1, "INSERT INTO item VALUES (101)")
        .expect("it is writable after a restart");
    insert(&cluster, 0, 3);
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2 3 100 101", "also after a restart");
}

#[test]
fn a_writable_mariadb_replica_takes_writes_and_goes_on_replicating() {
    takes_writes_and_goes_on_replicating(Cluster::mariadb);
}

#[test]
fn writable_postgres_servers_share_a_schema_and_no_rows() {
    let cluster = Cluster::postgres_writable(1);
    for node in 0..2 {
        cluster
            .try_app_sql(node, "CREATE TABLE item (id INTEGER)")
            .expect("each is writable");
        insert(&cluster, node, 10 + u32::try_from(node).expect("small"));
        assert_eq!(ids(&cluster, node), format!("1{node}"), "only its own row");
        assert_eq!(
            cluster.sql(node, "SELECT name FROM node_name"),
            format!("n{node}"),
            "its own name"
        );
    }
}

#[test]
fn two_postgres_clusters_are_different_systems() {
    let identify = |cluster: &Cluster, node| {
        cluster.sql(node, "SELECT system_identifier FROM pg_control_system()")
    };
    let (one, two) = (Cluster::postgres(1), Cluster::postgres(0));
    assert_eq!(
        identify(&one, 0),
        identify(&one, 1),
        "a standby is of its primary's system"
    );
    assert_ne!(
        identify(&one, 0),
        identify(&two, 0),
        "another cluster is another system"
    );
}

#[test]
fn postgres_standbys_catch_up_at_the_start_of_a_page() {
    let cluster = Cluster::postgres(1);
    let offset = "(pg_current_wal_insert_lsn() - '0/0') % 8192";
    // A message that fills the page but for its own overhead, then small ones.
    let room = format!("greatest(0, 8132 - {offset})::integer");
    let fill = format!("SELECT pg_logical_emit_message(false, '', repeat('x', {room}))");
    wait_until(
        "the primary's position is the start of a page",
        LONG,
        || {
            cluster.sql(0, &fill);
            cluster.sql(0, &format!("SELECT {offset} IN (24, 40)")) == "t"
        },
    );
    // The position counts the header of the empty page, which no standby replays. Nothing else
    // would come for 15 s.
    let start = Instant::now();
    cluster.wait_replicated();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "an empty page is nothing to wait for"
    );
}

#[test]
fn the_application_may_create_tables_and_functions_and_watch_mariadb_replication() {
    for (kind, cluster) in [
        ("postgres", Cluster::postgres(0)),
        ("mariadb", Cluster::mariadb(1)),
        ("sqlite", Cluster::sqlite(0)),
    ] {
        cluster
            .try_app_sql(0, "CREATE TABLE own (id INTEGER)")
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        let function = match kind {
            "postgres" => "CREATE FUNCTION one() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "mariadb" => {
                "CREATE FUNCTION one() RETURNS INTEGER RETURN 1; SHOW MASTER STATUS; SHOW SLAVE STATUS"
            }
            _ => "SELECT 1",
        };
        cluster
            .try_app_sql(0, function)
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn a_sqlite_copy_never_shows_another_name_or_half_a_change() {
    let cluster = Cluster::sqlite(1);
    cluster.sql(0, "CREATE TABLE a (n INTEGER); INSERT INTO a VALUES (0); CREATE TABLE b (n INTEGER); INSERT INTO b VALUES (0);");
    cluster.wait_replicated();
    let mut seen = String::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..200 {
                cluster.sql(
                    0,
                    "BEGIN; UPDATE a SET n = n + 1; UPDATE b SET n = n + 1; COMMIT;",
                );
            }
        });
        while !writer.is_finished() {
            seen = cluster.sql(
                1,
                "SELECT name, (SELECT n FROM a) - (SELECT n FROM b) FROM node_name",
            );
            assert_eq!(seen, "n1\t0", "its own name, and both changes or none");
        }
    });
    assert!(!seen.is_empty(), "the reader saw something");
    cluster.wait_replicated();
    assert_eq!(
        cluster.sql(1, "SELECT n FROM a"),
        "200",
        "the copy is complete"
    );
}

#[test]
fn shared_clusters_are_started_once() {
    let (one, two) = (Cluster::shared_sqlite(1), Cluster::shared_sqlite(1));
    assert!(std::ptr::eq(one, two), "the same cluster");
    assert_eq!(
        Cluster::shared_sqlite(2).len(),
        3,
        "another size is another cluster"
    );
}

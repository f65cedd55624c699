//! What PostgreSQL alone says of itself.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Access, Coverage, Following, Position, ReplicatedConnection, Report};

use crate::kit::postgres::{Plain, cluster};
use crate::support::{Cluster, wait_until};

pub const SLEEP: &str = "SELECT pg_sleep(60)";

const PATIENCE: Duration = Duration::from_secs(20);

/// A login that sees everything.
pub fn monitoring_url(cluster: &Cluster, node: usize) -> String {
    cluster.admin_url(node)
}

pub fn has_received(cluster: &Cluster) -> bool {
    let flushed = cluster.sql(0, "SELECT pg_current_wal_flush_lsn()");
    let received = format!("SELECT pg_last_wal_receive_lsn() >= '{flushed}'");
    cluster.sql(1, &received) == "t"
}

pub fn check_promoted(before: &Report, after: &Report) {
    assert_eq!(
        timeline(before) + 1,
        timeline(after),
        "a promotion begins one"
    );
}

pub fn wake_up(cluster: &Cluster) {
    cluster.sql(
        0,
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%sleep(60)'",
    );
}

fn timeline(report: &Report) -> u32 {
    match &report.position {
        Some(Position::Postgres(position)) => position.timeline,
        other => panic!("no position of PostgreSQL: {other:?}"),
    }
}

fn try_probe(url: &str) -> QueryResult<Report> {
    let mut conn = Plain::open_probe(url, diesel_routed::Role::Primary, Duration::from_secs(5))
        .expect("the node answers");
    conn.probe()
}

fn probe(url: &str) -> Report {
    try_probe(url).expect("the node answers")
}

fn coverage(cluster: &Cluster) -> Coverage {
    let [primary, standby] = [0, 1].map(|node| probe(&cluster.url(node)).position);
    let standby = standby.expect("a position");
    standby.covers(&primary.expect("a position"))
}

#[test]
fn an_idle_standby_covers_an_idle_primary_at_the_start_of_a_segment() {
    let cluster = cluster(1);
    for _ in 0..5 {
        cluster.sql(0, "SELECT pg_switch_wal()");
        wait_until("the standby covers it", PATIENCE, || {
            coverage(&cluster) == Coverage::Yes
        });
        cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
    }
}

#[test]
fn the_grant_that_is_missing_shows_the_timeline() {
    let cluster = cluster(2);
    cluster.kill(0);
    cluster.promote(1);
    cluster.follow(2, 1);
    cluster.sql(1, "INSERT INTO note (body) VALUES ('x')");
    cluster.wait_replicated();
    let [primary, standby] = [1, 2].map(|node| cluster.url(node));
    let (primary, plain) = (probe(&primary), probe(&standby));
    assert_eq!(timeline(&primary), 2, "seen without any privilege");
    assert_eq!(
        primary.missing_grant, None,
        "nothing is hidden on a primary"
    );
    let old = plain.position.clone().expect("a lower bound");
    let new = primary.position.expect("a position");
    assert_eq!(timeline(&plain), 1, "until the next restartpoint");
    assert_eq!(
        old.covers(&new),
        Coverage::Incomparable,
        "so it serves no token"
    );
    let grant = plain.missing_grant.expect("it names what is missing");
    cluster.sql(1, &grant.replace("<user>", "app"));
    cluster.wait_replicated();
    let granted = probe(&standby);
    assert_eq!(granted.missing_grant, None, "{grant} was enough");
    assert_eq!(
        granted.position.expect("a position").covers(&new),
        Coverage::Yes
    );
}

#[test]
fn a_standby_without_a_receiver_keeps_its_timeline() {
    let cluster = cluster(1);
    let url = cluster.admin_url(1);
    let before = probe(&url);
    cluster.kill(0);
    let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
    wait_until("the receiver is gone", PATIENCE, || {
        cluster.sql(1, receivers) == "0"
    });
    let report = probe(&url);
    assert_eq!(timeline(&report), timeline(&before));
    assert_eq!(report.following, Following::Somebody);
}

#[test]
fn a_role_whose_transactions_are_serializable_can_be_probed_on_a_standby() {
    let cluster = cluster(1);
    cluster.sql(
        0,
        "ALTER ROLE app SET default_transaction_isolation = 'serializable'",
    );
    cluster.wait_replicated();
    assert_eq!(probe(&cluster.url(1)).following, Following::Somebody);
}

#[test]
fn a_primary_that_is_set_to_read_only_follows_nobody() {
    let cluster = cluster(0);
    cluster.sql(0, "ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.sql(0, "SELECT pg_reload_conf()");
    let report = || probe(&cluster.url(0));
    wait_until("it refuses writes", PATIENCE, || {
        report().access == Access::ReadOnly
    });
    assert_eq!(report().following, Following::Nobody);
    assert!(report().position.is_some());
}

#[test]
fn a_server_without_a_log_to_show_still_tells_its_role() {
    let cluster = cluster(1);
    for function in ["pg_current_wal_insert_lsn()", "pg_last_wal_replay_lsn()"] {
        cluster.sql(
            0,
            &format!("REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC"),
        );
    }
    cluster.wait_replicated();
    for (node, following) in [(0, Following::Nobody), (1, Following::Somebody)] {
        let report = probe(&cluster.url(node));
        assert_eq!(
            (report.following, report.position),
            (following, None),
            "n{node}"
        );
        assert!(!report.identity.server.is_empty(), "n{node}");
    }
}

#[test]
fn a_probe_that_takes_too_long_is_a_failed_one_and_no_lesser_report() {
    let cluster = cluster(0);
    cluster.sql(
        0,
        "ALTER FUNCTION pg_walfile_name(pg_lsn) RENAME TO walfile_name",
    );
    let slow =
        "CREATE FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RETURNS text LANGUAGE sql VOLATILE
                AS 'SELECT pg_sleep(60)::text'";
    cluster.sql(0, &format!("SET allow_system_table_mods = on; {slow}"));
    let mut conn = Plain::open_probe(
        &cluster.url(0),
        diesel_routed::Role::Primary,
        Duration::from_millis(200),
    )
    .expect("it answers");
    let error = conn.probe().expect_err("it takes a minute");
    assert!(error.to_string().contains("statement timeout"), "{error}");
}

#[test]
fn a_probe_is_known_by_its_name_and_changes_no_session() {
    let cluster = cluster(0);
    let url = format!("{}?application_name=shop", cluster.url(0));
    let mut conn = Plain::open_probe(&url, diesel_routed::Role::Primary, Duration::from_secs(5))
        .expect("it answers");
    conn.probe().expect("it answers");
    let named =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'diesel-routed probe'";
    assert_eq!(cluster.sql(0, named), "1");
    let set = diesel::dsl::sql::<diesel::sql_types::BigInt>(
        "count(*) FROM pg_settings WHERE source = 'session' AND name LIKE '%timeout'",
    );
    assert_eq!(diesel::select(set).get_result(&mut conn), Ok(0_i64));
}

/// A pooler that takes no command-line options and hands everything else on; returns its port.
fn strict_pooler(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = serve(client, server);
        }
    });
    port
}

fn serve(mut client: TcpStream, server: u16) -> std::io::Result<()> {
    let mut start = vec![0; 4096];
    let length = client.read(&mut start)?;
    start.truncate(length);
    if start.windows(9).any(|part| part == b"\0options\0") {
        let fields = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
        let length = u32::try_from(fields.len() + 4).expect("it is short");
        let message = [b"E", &length.to_be_bytes()[..], fields].concat();
        return client.write_all(&message);
    }
    let mut server = TcpStream::connect(("127.0.0.1", server))?;
    server.write_all(&start)?;
    let (mut client_reads, mut server_writes) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut client_reads, &mut server_writes));
    std::thread::spawn(move || std::io::copy(&mut server, &mut client));
    Ok(())
}

#[test]
fn a_pooler_that_takes_no_options_is_probed_without_and_its_sessions_stay_as_they_are() {
    let cluster = cluster(0);
    let port = strict_pooler(cluster.port(0));
    let url = format!("postgres://app:app@127.0.0.1:{port}/app?sslmode=disable&gssencmode=disable");
    let direct = probe(&cluster.url(0));
    let mut conn = Plain::open_probe(
        &url,
        diesel_routed::Role::Primary,
        Duration::from_millis(500),
    )
    .expect("it answers");
    assert_eq!(conn.probe(), Ok(direct));
    let limit = diesel::dsl::sql::<diesel::sql_types::Text>("current_setting('statement_timeout')");
    assert_eq!(
        diesel::select(limit).get_result(&mut conn),
        Ok("0".to_owned())
    );
    let named =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'diesel-routed probe'";
    assert_eq!(cluster.sql(0, named), "1");
}

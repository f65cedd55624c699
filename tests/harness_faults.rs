//! The faults that the test harness can cause.

#[path = "support/mod.rs"]
mod support;

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use support::{Cluster, Forwarder, Manners, holds_within, wait_until};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

/// How each kind of cluster is started.
type Start = fn(usize) -> Cluster;

/// Runs the tests that take a kind of server and its start, by name.
macro_rules! on {
    ($kind:ident: $($test:ident)*) => {
        mod $kind {
            $(#[test]
            fn $test() {
                super::$test(stringify!($kind), super::Cluster::$kind);
            })*
        }
    };
}

on!(postgres:
    a_replica_that_is_cut_off_receives_nothing_until_told_to
    a_primary_can_be_made_to_refuse_writes_while_it_runs
    a_primary_and_its_replica_can_change_places
    a_server_can_have_few_connections_left
    a_password_can_be_changed_under_its_users
    a_forwarder_stands_in_for_a_dead_server_and_gives_its_place_back
    the_clock_of_one_server_can_be_wrong
);
on!(mariadb:
    a_replica_that_is_cut_off_receives_nothing_until_told_to
    a_primary_can_be_made_to_refuse_writes_while_it_runs
    a_primary_and_its_replica_can_change_places
    a_server_can_have_few_connections_left
    a_password_can_be_changed_under_its_users
    a_forwarder_stands_in_for_a_dead_server_and_gives_its_place_back
    the_clock_of_one_server_can_be_wrong
);
// its own loader would have to load libfaketime
on!(mysql:
    a_replica_that_is_cut_off_receives_nothing_until_told_to
    a_primary_can_be_made_to_refuse_writes_while_it_runs
    a_primary_and_its_replica_can_change_places
    a_server_can_have_few_connections_left
    a_password_can_be_changed_under_its_users
    a_forwarder_stands_in_for_a_dead_server_and_gives_its_place_back
);

fn with_items(start: Start, replicas: usize) -> Cluster {
    let cluster = start(replicas);
    cluster.sql(0, "CREATE TABLE item (id INTEGER PRIMARY KEY)");
    let granted = cluster.try_sql(0, "GRANT ALL ON item TO app");
    granted.expect("a table can be granted");
    insert(&cluster, 0, 1).expect("the primary is writable");
    cluster.wait_replicated();
    cluster
}

fn insert(cluster: &Cluster, node: usize, id: u32) -> Result<String, String> {
    cluster.try_app_sql(node, &format!("INSERT INTO item VALUES ({id})"))
}

fn sleep(kind: &str, seconds: &str) -> String {
    match kind {
        "postgres" => format!("SELECT pg_sleep({seconds})"),
        _ => format!("SELECT SLEEP({seconds})"),
    }
}

fn ids(cluster: &Cluster, node: usize) -> String {
    let ids = cluster.sql(node, "SELECT id FROM item ORDER BY id");
    ids.replace('\n', " ")
}

fn a_replica_that_is_cut_off_receives_nothing_until_told_to(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    cluster.stop_receiving(1);
    for id in [2, 3] {
        insert(&cluster, 0, id).expect("the primary is writable");
        cluster.wait_replicated();
        let arrives = || ids(&cluster, 1) != "1";
        assert!(!holds_within(SHORT, arrives), "{kind}: nothing arrives");
        cluster.restart(1);
    }
    assert_eq!(ids(&cluster, 1), "1", "{kind}: a restart does not help");
    cluster.receive(1);
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2 3", "{kind}: all is there");
    cluster.restart(1);
    insert(&cluster, 0, 4).expect("the primary is writable");
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2 3 4", "{kind}: a restart keeps it so");
}

fn a_primary_can_be_made_to_refuse_writes_while_it_runs(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    cluster.refuse_writes(0);
    let refused = insert(&cluster, 0, 2).expect_err("it refuses writes");
    assert!(refused.contains("read-only"), "{kind}: {refused}");
    cluster.accept_writes(0);
    insert(&cluster, 0, 2).unwrap_or_else(|error| panic!("{kind}: {error}"));
}

fn a_primary_and_its_replica_can_change_places(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    cluster.switch_over(0, 1);
    insert(&cluster, 0, 2).expect_err("it is a replica now");
    insert(&cluster, 1, 2).unwrap_or_else(|error| panic!("{kind}: {error}"));
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 0), "1 2", "{kind}: it follows");
    cluster.restart(0);
    insert(&cluster, 0, 3).expect_err("still after a restart");
    cluster.switch_over(1, 0);
    insert(&cluster, 0, 3).unwrap_or_else(|error| panic!("{kind}, back: {error}"));
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "1 2 3", "{kind}: back again");
}

fn a_server_can_have_few_connections_left(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    cluster.limit_connections(1);
    let sleep = sleep(kind, "60");
    let asleep = match kind {
        "postgres" => "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
        _ => "SELECT count(*) FROM information_schema.PROCESSLIST WHERE state = 'User sleep'",
    };
    let is_full = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..Cluster::LIMIT {
            // the administrator who looks may be in the way for a moment
            scope.spawn(
                || {
                    while cluster.try_app_sql(1, &sleep).is_err() && !is_full.load(Relaxed) {}
                },
            );
        }
        let limit = Cluster::LIMIT.to_string();
        wait_until("the server is full", LONG, || {
            cluster.sql(1, asleep) == limit
        });
        is_full.store(true, Relaxed);
        let refused = cluster.try_app_sql(1, "SELECT 1").expect_err("it is full");
        let few = ["remaining connection slots", "Too many connections"];
        assert!(
            few.iter().any(|text| refused.contains(text)),
            "{kind}: {refused}"
        );
        assert_eq!(ids(&cluster, 1), "1", "{kind}: the administrator gets in");
        cluster.kill(1);
    });
}

fn a_password_can_be_changed_under_its_users(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    cluster.change_password(0, "another");
    for node in 0..2 {
        let refused = cluster.try_app_sql(node, "SELECT 1").expect_err(kind);
        let texts = ["password authentication failed", "Access denied"];
        assert!(
            texts.iter().any(|text| refused.contains(text)),
            "{kind}: {refused}"
        );
    }
    cluster.change_password(0, "app");
    for node in 0..2 {
        assert_eq!(
            cluster.try_app_sql(node, "SELECT 1").as_deref(),
            Ok("1"),
            "{kind}"
        );
    }
}

#[test]
fn a_standby_can_be_made_to_cancel_reads_that_are_in_its_way() {
    let cluster = with_items(Cluster::postgres, 1);
    cluster.never_wait_for_reads(1);
    let refused = std::thread::scope(|scope| {
        let read = scope.spawn(|| cluster.try_app_sql(1, "SELECT id, pg_sleep(60) FROM item"));
        let running = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        wait_until("it reads", LONG, || cluster.sql(1, running) == "1");
        cluster.sql(0, "DELETE FROM item;\nVACUUM item;");
        read.join().expect("no panic").expect_err("it is cancelled")
    });
    assert!(refused.contains("conflict with recovery"), "{refused}");
    cluster.wait_replicated();
    assert_eq!(ids(&cluster, 1), "", "replay went on");
}

fn the_clock_of_one_server_can_be_wrong(kind: &str, start: Start) {
    let cluster = with_items(start, 1);
    let offset = || -> i64 {
        let now = match kind {
            "postgres" => "SELECT extract(epoch FROM clock_timestamp())::bigint",
            _ => "SELECT UNIX_TIMESTAMP(SYSDATE())",
        };
        let [there, here] = [1, 0].map(|node| cluster.sql(node, now));
        there.parse::<i64>().expect("a number") - here.parse::<i64>().expect("a number")
    };
    for (shift, id) in [(3_600, 2), (-3_600, 3)] {
        cluster.set_clock(1, shift);
        let off = offset() - i64::from(shift);
        assert!(off.abs() <= 2, "{kind}: {off} s besides {shift} s");
        insert(&cluster, 0, id).expect("the primary is writable");
        cluster.wait_replicated();
        assert_eq!(ids(&cluster, 1), ids(&cluster, 0), "{kind}: it replicates");
        let (wait, start) = (sleep(kind, "0.3"), Instant::now());
        cluster.sql(1, &wait);
        let waited = start.elapsed();
        assert!(
            waited >= SHORT && waited < LONG,
            "{kind}: it waited {waited:?}"
        );
    }
    cluster.kill(1);
    let left = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    let left: Vec<_> = left
        .filter(|entry| entry.file_name().to_string_lossy().contains("faketime"))
        .collect();
    assert!(left.is_empty(), "{kind}: {left:?} is left behind");
}

/// The name of the node that answers by way of a forwarder.
fn answers(cluster: &Cluster, forwarder: &Forwarder) -> String {
    use diesel::prelude::*;
    let name = diesel::dsl::sql::<diesel::sql_types::Text>("SELECT name FROM node_name");
    diesel::PgConnection::establish(&cluster.url_through(0, forwarder))
        .expect("it forwards")
        .transaction(|conn| name.get_result(conn))
        .expect("a server answers")
}

#[test]
fn a_forwarder_goes_from_server_to_server_and_counts() {
    let cluster = Cluster::postgres(2);
    let ports: Vec<u16> = (0..3).map(|node| cluster.port(node)).collect();
    let forwarder = Forwarder::new(&ports[..2]);
    let names: Vec<String> = (0..4).map(|_| answers(&cluster, &forwarder)).collect();
    assert_eq!(names, ["n0", "n1", "n0", "n1"], "in turn");
    forwarder.switch(&ports[2..]);
    assert_eq!(answers(&cluster, &forwarder), "n2", "where it is told to");
    assert_eq!(forwarder.accepted(), 5);
    wait_until("all are closed", LONG, || forwarder.open() == 0);
}

fn a_forwarder_stands_in_for_a_dead_server_and_gives_its_place_back(kind: &str, start: Start) {
    let cluster = start(1);
    assert!(cluster.try_app_sql(1, "SELECT 1").is_ok());
    cluster.kill(1);
    let grave = Forwarder::in_place_of(cluster.port(1), &[]);
    assert!(
        cluster.try_app_sql(1, "SELECT 1").is_err(),
        "{kind}: it hangs up"
    );
    assert_eq!(grave.accepted(), 1, "{kind}");
    drop(grave);
    cluster.restart(1);
    let back = cluster.try_app_sql(1, "SELECT 1");
    assert_eq!(back.as_deref(), Ok("1"), "{kind}: the server is back");
}

#[test]
fn a_forwarder_cuts_goes_silent_and_goes_deaf() {
    let echo = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = echo.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for stream in echo.incoming().flatten() {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    let forwarder = Forwarder::new(&[port]);
    let address = ([127, 0, 0, 1], forwarder.port()).into();
    let dial = || TcpStream::connect_timeout(&address, SHORT);
    let says = |mut stream: &TcpStream| {
        use std::io::Write;
        stream.set_read_timeout(Some(SHORT)).expect("a socket");
        stream.write_all(b"x")?;
        stream.read(&mut [0]).and_then(|read| match read {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    };
    let stream = dial().expect("it accepts");
    for round_trips in 1..=3 {
        says(&stream).expect("it forwards");
        assert_eq!(forwarder.round_trips(), round_trips);
    }

    forwarder.behave(Manners::Silent);
    let silent = dial().expect("it accepts");
    for stream in [&stream, &silent] {
        let error = says(stream).expect_err("it is silent");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    forwarder.behave(Manners::Forward);
    for stream in [&stream, &silent] {
        says(stream).expect("it goes on");
    }

    forwarder.behave(Manners::Deaf);
    let error = dial().expect_err("it takes no connection");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(forwarder.accepted(), 2, "the deaf have heard of nobody");
    forwarder.behave(Manners::Forward);
    let late = dial().expect("it accepts again");
    says(&late).expect("and forwards");

    forwarder.cut();
    assert_eq!(forwarder.open(), 0);
    for stream in [&stream, &silent, &late] {
        let error = says(stream).expect_err("it is cut");
        let gone = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(gone.contains(&error.kind()), "{error}");
    }
    drop(forwarder);
    let error = dial().expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_forwarder_carries_much_in_both_directions_on_one_thread() {
    let cluster = Cluster::postgres(0);
    let (before, sockets) = (support::threads().len(), support::sockets());
    let forwarder = Forwarder::new(&[cluster.port(0)]);
    let (start, size) = (Instant::now(), 30_000_000);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                use diesel::prelude::*;
                let url = cluster.url_through(0, &forwarder);
                let mut conn = diesel::PgConnection::establish(&url).expect("it forwards");
                let query = "SELECT $1 AS text";
                let much = "x".repeat(size);
                let back: Echoed = diesel::sql_query(query)
                    .bind::<diesel::sql_types::Text, _>(&much)
                    .get_result(&mut conn)
                    .expect("it comes back");
                assert!(back.text == much, "unchanged");
            });
        }
        wait_until("all have dialled", LONG, || forwarder.accepted() == 3);
        assert_eq!(
            support::threads().len() - before,
            1 + 3,
            "its own and theirs"
        );
        assert_eq!(support::sockets_to(forwarder.port()), 3);
    });
    println!("180 MB took {:?}", start.elapsed());
    assert_eq!(support::sockets_to(forwarder.port()), 0);
    drop(forwarder);
    // a thread that was joined is listed for a moment more
    wait_until("it is gone", LONG, || support::threads().len() == before);
    assert_eq!(support::sockets(), sockets, "and has left nothing open");
}

#[derive(diesel::QueryableByName)]
struct Echoed {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

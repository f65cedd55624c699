//! No URL and no password in anything that can be printed.

use std::fmt::{Debug, Display};
use std::sync::Mutex;
use std::time::Duration;

use diesel::prelude::*;
use diesel::r2d2::ConnectionManager;
use diesel_routed::{ClusterConfig, Fallback, NodeConfig, RoutedConnectionManager, RoutedPool};

use super::backend::*;
use super::pools::*;
use super::secret::{MALFORMED, REFUSED, refuse_passwords};

/// All that was logged and printed so far.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Recorder;

impl log::Log for Recorder {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        see(format!("log of {}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

fn record_logs() {
    log::set_logger(&Recorder).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
}

fn see(text: String) {
    SEEN.lock().unwrap().push(text);
}

fn see_debug(what: &str, value: &impl Debug) {
    see(format!("{what}: {value:?} {value:#?}"));
}

fn see_error<E: std::error::Error>(what: &str, error: &E) {
    see_both(what, error);
    let mut source = error.source();
    while let Some(error) = source {
        see(format!("source of {what}: {error} {error:?}"));
        source = error.source();
    }
}

fn see_both(what: &str, value: &(impl Debug + Display)) {
    see(format!("{what}: {value} {value:?} {value:#?}"));
}

/// Looks for the secret, which every form of the password holds, and for URLs.
fn assert_nothing_seen() {
    let seen = SEEN.lock().unwrap();
    assert!(!seen.is_empty());
    for text in seen.iter() {
        for secret in ["3CRET", "3cret", "://u", "://app", "@h", "@127"] {
            assert!(!text.contains(secret), "{secret:?} is shown by {text}");
        }
    }
}

/// Everything public that comes of a configuration whose nodes refuse the password.
fn use_it(config: ClusterConfig) {
    see_debug("configuration", &config);
    let manager = RoutedConnectionManager::<Plain>::new(config.clone()).unwrap();
    see_debug("manager", &manager);
    match RoutedConnectionManager::<Plain>::connect(config) {
        Ok(manager) => panic!("somebody took the password: {manager:?}"),
        Err(error) => see_error("connect", &error),
    }
    let pool = RoutedPool::builder().max_size(2).build(manager).unwrap();
    see_debug("pool", &pool);
    let mut conn = pool.get().unwrap();
    for _ in 0..2 {
        see_error("read", &read(&mut conn).unwrap_err());
        see_error("block", &conn.distributed(read).unwrap_err());
        let routed =
            conn.distributed(|conn| diesel_routed::RoutedError::downcast(&read(conn).unwrap_err()));
        see_error("routed error", &routed.unwrap());
    }
    let error = conn.transaction(|conn| read(conn)).unwrap_err();
    see_error("transaction", &error);
    see_debug("handle", &*conn);
    see_debug("pooled handle", &conn);
    see_debug("cluster", conn.cluster());
    see_debug("route", &conn.last_route());
    see_both("status", &conn.cluster().status());
    see_debug("decision", &conn.explain(&note::table.count()));
}

/// A URL that is refused, of a node of the cluster if it has a place for the port.
fn in_place_of(db: &Db, node: usize, url: &str) -> String {
    match url.contains("{port}") {
        true => url.replace("{port}", &db.cluster.port(node).to_string()),
        false => url.to_owned(),
    }
}

fn read(conn: &mut Conn) -> QueryResult<i64> {
    note::table.count().get_result(conn)
}

#[test]
fn a_server_that_refuses_the_password_reveals_nothing() {
    let db = db(1);
    (0..2).for_each(|node| refuse_passwords(&db, node));
    record_logs();
    for url in REFUSED {
        let url = |node: usize| in_place_of(&db, node, url);
        let replica = NodeConfig::new(url(1)).name("eu-1");
        see_debug("node", &replica);
        let config = ClusterConfig::new(url(0)).fallback(Fallback::Error);
        // statements wait for a node that answers, and none does
        let config = config.checkout_timeout(Duration::from_millis(500));
        use_it(match url(0) == url(1) {
            true => config,
            false => config.replica(replica),
        });
        let both = [url(0), url(1)].join(" ");
        see_error(
            "establish",
            &Conn::establish(&both).expect_err("it is refused"),
        );
        let plain_pool = RoutedPoolOfDiesel::builder()
            .max_size(1)
            .connection_timeout(Duration::from_millis(300))
            .build(ConnectionManager::new(both));
        see_error(
            "a pool of establish",
            &plain_pool.expect_err("it is refused"),
        );
    }
    assert_nothing_seen();
}

#[test]
fn nobody_waits_for_a_replica_that_refuses_the_password() {
    let db = db(1);
    refuse_passwords(&db, 1);
    let refused = in_place_of(&db, 1, REFUSED[0]);
    let config = ClusterConfig::new(db.cluster.url(0)).replica(refused);
    // nobody looks again, so that a wait would last as long as it may
    let wait = Duration::from_secs(60);
    let config = config.connect_timeout(wait).check_interval(Duration::ZERO);
    let pool = pool_of(1, config);
    let (name, time) = timed(|| who(&mut pool.get().unwrap()));
    assert_eq!(name, "n0");
    assert!(time < wait / 3, "{time:?}");
}

type RoutedPoolOfDiesel = diesel::r2d2::Pool<ConnectionManager<Conn>>;

#[test]
fn a_malformed_url_reveals_nothing() {
    record_logs();
    assert!(MALFORMED.len() >= 20);
    for url in MALFORMED {
        let good = REFUSED[0].replace("{port}", "1");
        for config in [
            ClusterConfig::new(*url),
            ClusterConfig::new(good.as_str()).replica(*url),
            ClusterConfig::new(NodeConfig::new(*url).name("eu-1")),
        ] {
            see_debug("configuration", &config);
            let quick = config.clone().connect_timeout(Duration::from_secs(1));
            match RoutedConnectionManager::<Plain>::connect(quick) {
                Ok(manager) => panic!("{url} leads somewhere: {manager:?}"),
                Err(error) => see_error("connect", &error),
            }
            match RoutedConnectionManager::<Plain>::new(config) {
                Ok(manager) => see_debug("manager", &manager),
                Err(error) => see_error("new", &error),
            }
        }
        for list in [url.to_string(), format!("{good} {url}")] {
            see_error(
                "establish",
                &Conn::establish(&list).expect_err("it leads nowhere"),
            );
        }
    }
    assert_nothing_seen();
}

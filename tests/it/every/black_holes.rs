//! Servers that take connections and say nothing, and who dials them.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{
    ClusterConfig, ConnectError, NodeConfig, RoutedConnectionManager, RoutedError, Strategy,
};

use super::backend::*;
use super::pools::*;
use crate::support::{holds_within, wait_until};

const SOON: Duration = Duration::from_secs(20);

/// What a listener does with those who dial it.
#[derive(Clone, Copy)]
enum Manners {
    HangUp,
    SayNothing,
}

/// Stands where a server should be and counts the dials.
struct Listener {
    url: String,
    dials: Arc<AtomicUsize>,
}

impl Listener {
    fn new(db: &Db, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let dials = Arc::new(AtomicUsize::new(0));
        let url = db
            .cluster
            .url(0)
            .replace(&db.cluster.port(0).to_string(), &port);
        let count = Arc::clone(&dials);
        thread::spawn(move || {
            let mut silent = vec![];
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                match manners {
                    Manners::HangUp => drop(stream),
                    Manners::SayNothing => silent.push(stream),
                }
            }
        });
        Self { url, dials }
    }

    fn node(&self, name: &str) -> NodeConfig {
        NodeConfig::new(self.url.as_str()).name(name)
    }

    fn dials(&self) -> usize {
        self.dials.load(Ordering::SeqCst)
    }
}

/// Nobody looks after the nodes but those who need them, after the first look.
fn unwatched(config: ClusterConfig) -> ClusterConfig {
    config
        .check_interval(Duration::ZERO)
        .check_ttl(Duration::from_secs(3600))
}

/// The cluster's primary with a listener as its first replica and the true one as its second.
fn beside(db: &Db, listener: &Listener) -> ClusterConfig {
    ClusterConfig::new(NodeConfig::new(db.cluster.url(0)).name("n0"))
        .replica(listener.node("hole"))
        .replica(NodeConfig::new(db.cluster.url(1)).name("n1"))
        .strategy(Strategy::Failover)
        .connect_timeout(Duration::from_secs(1))
}

#[test]
fn nobody_dials_a_replica_in_quarantine() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::HangUp);
    let config = beside(&db, &hole).quarantine(Duration::from_secs(300));
    let pool = pool_of(2, unwatched(config));
    for _ in 0..50 {
        assert_eq!(pool.get().unwrap().distributed(who), "n1", "no read fails");
    }
    assert_eq!(hole.dials(), 1, "the first look has found out for all");
}

#[test]
fn a_dead_replica_is_dialled_by_its_monitor_alone() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::HangUp);
    // as soon as it may be dialled by anybody at all
    let pool = pool_of(2, beside(&db, &hole).quarantine(Duration::from_millis(1)));
    let started = Instant::now();
    let mut reads = 0;
    while started.elapsed() < Duration::from_secs(1) || reads < 100 {
        assert_eq!(pool.get().unwrap().distributed(who), "n1", "no read fails");
        reads += 1;
    }
    // one that fails is repeated after 50 ms at first, then each 250 ms, give or take a tenth
    let probes = 5 + started.elapsed().as_millis() / 225;
    let dials = hole.dials();
    assert!(dials as u128 <= probes, "{dials} dials for {reads} reads");
}

#[test]
fn after_the_quarantine_a_replica_is_tried_again() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::HangUp);
    let config = beside(&db, &hole).quarantine(Duration::from_millis(100));
    let pool = pool_of(2, unwatched(config));
    wait_until("it is dialled a third time", SOON, || {
        assert_eq!(pool.get().unwrap().distributed(who), "n1", "no read fails");
        hole.dials() == 3
    });
}

#[test]
fn a_silent_replica_costs_each_waiter_one_connect_timeout_and_is_then_left_alone() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::SayNothing);
    let config = beside(&db, &hole).quarantine(Duration::from_secs(300));
    // so that the first look has not found out for all
    let config = config.connect_timeout(Duration::from_secs(2));
    let pool = pool_of(4, unwatched(config));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (name, time) = timed(|| pool.get().unwrap().distributed(who));
                assert_eq!(name, "n1");
                assert!(time < SOON, "waited {time:?}");
            });
        }
    });
    // three times as long as a dial takes, of which one may just have begun
    let dials = hole.dials();
    assert!(
        !holds_within(Duration::from_secs(6), || hole.dials() > dials + 1),
        "the dials of those who gave up are not made"
    );
    assert_eq!(pool.get().unwrap().distributed(who), "n1");
    assert_eq!(in_flight(&pool), [0, 0, 0]);
}

#[test]
fn a_silent_replica_that_is_monitored_costs_nobody_a_connect_timeout() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::SayNothing);
    let pool = pool_of(4, beside(&db, &hole).connect_timeout(SOON));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (name, time) = timed(|| pool.get().unwrap().distributed(who));
                assert_eq!(name, "n1");
                assert!(time < SOON / 2, "waited {time:?}");
            });
        }
    });
    assert_eq!(hole.dials(), 1, "its monitor's");
    assert_eq!(in_flight(&pool), [0, 0, 0]);
}

#[test]
fn a_silent_primary_is_no_primary_and_not_a_full_pool() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::SayNothing);
    let config = ClusterConfig::new(hole.node("hole"))
        .replica(NodeConfig::new(db.cluster.url(1)).name("n1"))
        .connect_timeout(Duration::from_secs(1));
    let pool = pool_of(1, config);
    let mut conn = pool.get().unwrap();
    assert_eq!(conn.distributed(who), "n1");
    let (result, time) = timed(|| note::table.count().get_result::<i64>(&mut conn));
    match RoutedError::downcast(&result.unwrap_err()) {
        Some(RoutedError::NoPrimary { node, .. }) => assert_eq!(node, "hole"),
        other => panic!("{other:?}"),
    }
    assert!(time < SOON, "waited {time:?}");
}

#[test]
fn a_start_waits_for_a_silent_node_no_longer_than_connect_timeout() {
    let db = db(1);
    let hole = Listener::new(&db, Manners::SayNothing);
    let (manager, time) = timed(|| RoutedConnectionManager::<Plain>::connect(beside(&db, &hole)));
    assert!(manager.is_ok(), "two of three nodes answer");
    assert!(time < SOON, "waited {time:?}");
    let config = ClusterConfig::new(hole.node("hole")).connect_timeout(Duration::from_secs(1));
    match RoutedConnectionManager::<Plain>::connect(config) {
        Err(ConnectError::Unreachable(causes)) => assert_eq!(causes[0].0, "hole"),
        other => panic!("{other:?}"),
    }
}

//! Hosts that are not there at all: a dial to them is never answered.

use std::thread;
use std::time::{Duration, Instant};

use diesel_routed::{ClusterConfig, Context, NodeConfig, RoutedConnectionManager, RoutedError};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{Cluster, Forwarder, Manners, wait_until};

/// What is configured, and what a busy machine adds to it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const AND_SOME: Duration = Duration::from_secs(3);

/// The cluster, whose first replica is dialled by way of a forwarder.
fn by_way_of(cluster: &Cluster, forwarder: &Forwarder) -> ClusterConfig {
    let node = |place: usize, url: String| NodeConfig::new(url).name(&format!("n{place}"));
    let config = ClusterConfig::new(node(0, cluster.url(0)))
        .replica(node(1, cluster.url_through(1, forwarder)))
        .replica(node(2, cluster.url(2)));
    watched(config).connect_timeout(CONNECT_TIMEOUT)
}

fn read(pool: &Pool) -> diesel::QueryResult<String> {
    Context::new().run(|| pool.get().expect("a handle is free").distributed(try_who))
}

#[test]
fn at_the_start_nobody_waits_for_one_longer_than_connect_timeout() {
    for manners in [Manners::Deaf, Manners::Silent] {
        let cluster = cluster(2);
        let forwarder = Forwarder::new(&[cluster.port(1)]);
        forwarder.behave(manners);
        let config = by_way_of(&cluster, &forwarder);
        let (manager, time) = timed(|| RoutedConnectionManager::<Plain>::connect(config.clone()));
        manager.expect("two of three nodes answer");
        println!("{manners:?}: the start took {time:?}");
        assert!(time < CONNECT_TIMEOUT + AND_SOME, "{manners:?}: {time:?}");
        let pool = pool_of(4, config);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (name, time) = timed(|| read(&pool));
                    assert_eq!(name.as_deref(), Ok("n2"), "{manners:?}");
                    assert!(time < CONNECT_TIMEOUT + AND_SOME, "{manners:?}: {time:?}");
                });
            }
        });
    }
}

#[test]
fn at_the_start_one_takes_no_write_all_its_time() {
    for manners in [Manners::Deaf, Manners::Silent] {
        let cluster = cluster(2);
        let forwarder = Forwarder::new(&[cluster.port(1)]);
        forwarder.behave(manners);
        // who is primary would be asked of all for longer than a statement waits
        let config = by_way_of(&cluster, &forwarder).connect_timeout(Duration::from_secs(60));
        let pool = pool_of(1, config.checkout_timeout(Duration::from_secs(2)));
        assert_eq!(try_who(&mut pool.get().unwrap()).as_deref(), Ok("n0"));
    }
}

#[test]
fn one_that_is_known_is_waited_for_by_nobody_and_serves_when_it_is_back() {
    for manners in [Manners::Deaf, Manners::Silent] {
        let cluster = cluster(2);
        let forwarder = Forwarder::new(&[cluster.port(1)]);
        let pool = pool_of(8, by_way_of(&cluster, &forwarder));
        let known = Known::to(&pool);
        known.wait("n1", "up");
        forwarder.behave(manners);
        forwarder.cut();
        known.wait("n1", "down");
        let start = Instant::now();
        let ((), tally) = under_load(8, || read(&pool), |tally| tally.wait_for_more(2_000));
        assert_eq!(tally.failures(), [""; 0], "{manners:?}");
        assert_eq!(tally.by("n1"), 0, "{manners:?}");
        println!("{manners:?}: 2000 reads took {:?}", start.elapsed());
        forwarder.behave(Manners::Forward);
        let ((), tally) = under_load(2, || read(&pool), |tally| tally.wait_for_more_by("n1", 10));
        assert_eq!(tally.failures(), [""; 0], "{manners:?}: it serves again");
    }
}

#[test]
fn those_who_give_up_early_learn_of_one_together() {
    let cluster = cluster(2);
    let forwarder = Forwarder::new(&[cluster.port(1)]);
    // no probe tells them
    let config = by_way_of(&cluster, &forwarder)
        .check_interval(Duration::ZERO)
        .check_ttl(Duration::from_secs(3_600));
    let pool = pool_of(1, config.checkout_timeout(CONNECT_TIMEOUT / 4));
    let known = Known::to(&pool);
    known.wait("n1", "up");
    forwarder.behave(Manners::Deaf);
    forwarder.cut();
    wait_until("it is taken for dead", SOON, || {
        assert_ne!(read(&pool).as_deref(), Ok("n1"));
        known.state("n1") == "down"
    });
}

#[test]
fn a_write_that_runs_out_of_time_says_that_the_primary_does_not_answer() {
    let cluster = cluster(1);
    let forwarder = Forwarder::new(&[cluster.port(0)]);
    forwarder.behave(Manners::Deaf);
    let primary = NodeConfig::new(cluster.url_through(0, &forwarder)).name("n0");
    let config = watched(ClusterConfig::new(primary)).connect_timeout(Duration::from_secs(60));
    let pool = pool_of(1, config.checkout_timeout(Duration::from_millis(300)));
    let error = routed(try_write(&mut pool.get().unwrap(), "in vain"));
    assert!(matches!(error, RoutedError::NoPrimary { .. }), "{error}");
}

#[test]
fn a_primary_that_falls_silent_keeps_no_block_from_reading() {
    let cluster = cluster(1);
    let forwarder = Forwarder::new(&[cluster.port(0)]);
    let primary = NodeConfig::new(cluster.url_through(0, &forwarder)).name("n0");
    let replica = NodeConfig::new(cluster.url(1)).name("n1");
    let config = watched(ClusterConfig::new(primary).replica(replica));
    let pool = pool_of(4, config.checkout_timeout(CONNECT_TIMEOUT));
    let known = Known::to(&pool);
    known.wait("n0", "up");
    known.wait("n1", "up");
    forwarder.behave(Manners::Deaf);
    forwarder.cut();
    known.wait("n0", "down");
    for _ in 0..100 {
        assert_eq!(read(&pool).as_deref(), Ok("n1"));
    }
    let (refused, time) = timed(|| try_write(&mut pool.get().unwrap(), "in vain"));
    routed(refused);
    assert!(time < CONNECT_TIMEOUT + AND_SOME, "{time:?}");
    forwarder.behave(Manners::Forward);
    known.wait("n0", "up");
    write(&mut pool.get().unwrap(), "noted");
}

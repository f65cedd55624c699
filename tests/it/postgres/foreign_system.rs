//! Servers that are no replicas of the primary, whatever the configuration says.

use diesel_routed::{ClusterConfig, Context, NodeConfig};

use crate::kit::config;
use crate::kit::postgres::*;
use crate::kit_health::postgres::*;
use crate::kit_log;
use crate::kit_pools::postgres::pool_of;

/// Another system with a note of its own.
fn foreign() -> crate::support::Cluster {
    let other = cluster(1);
    other.sql(0, "INSERT INTO note (body) VALUES ('of another system')");
    other.wait_replicated();
    other
}

#[test]
fn a_replica_of_another_system_is_refused_by_name() {
    kit_log::listen();
    let (own, other) = (cluster(1), foreign());
    // its standby, and its primary
    for place in [1, 0] {
        let name = format!("strange{place}");
        let config = config(&own).replica(NodeConfig::new(other.url(place)).name(&name));
        let pool = pool_of(2, watched(config));
        let known = Known::to(&pool);
        for _ in 0..50 {
            let seen = Context::new().run(|| pool.get().unwrap().distributed(bodies));
            assert_eq!(seen, [""; 0], "{name} is asked from the first read on");
        }
        known.wait(&name, "refused");
        for _ in 0..50 {
            let seen = Context::new().run(|| pool.get().unwrap().distributed(bodies));
            assert_eq!(seen, [""; 0], "{name} is asked");
        }
        let told = kit_log::lines_with(&name);
        assert!(
            told.iter()
                .any(|line| line.contains("another database system")),
            "{told:?}"
        );
        assert_eq!(known.primaries(), ["n0"]);
    }
}

#[test]
fn the_primary_of_another_system_is_never_the_primary() {
    let (own, other) = (cluster(1), foreign());
    let config = config(&own).replica(NodeConfig::new(other.url(0)).name("strange"));
    let pool = pool_of(
        2,
        watched(config).checkout_timeout(std::time::Duration::from_secs(1)),
    );
    let known = Known::to(&pool);
    known.wait("strange", "refused");
    own.kill(0);
    known.wait("n0", "down");
    for _ in 0..3 {
        routed(try_write(&mut pool.get().unwrap(), "in vain"));
    }
    assert_eq!(
        other.sql(0, "SELECT count(*) FROM note"),
        "1",
        "nothing was written there"
    );
    own.promote(1);
    crate::support::wait_until("its own replica is promoted", SOON, || {
        try_write(&mut pool.get().unwrap(), "noted").is_ok()
    });
    assert_eq!(own.sql(1, "SELECT body FROM note"), "noted");
}

#[test]
fn a_configuration_of_two_systems_uses_that_of_its_primary() {
    let (own, other) = (cluster(1), foreign());
    let primary = NodeConfig::new(own.url(0)).name("n0");
    let strange = NodeConfig::new(other.url(1)).name("strange");
    let pool = pool_of(2, watched(ClusterConfig::new(primary).replica(strange)));
    for _ in 0..20 {
        let seen = Context::new().run(|| pool.get().unwrap().distributed(bodies));
        assert_eq!(seen, [""; 0], "the primary serves alone");
    }
    write(&mut pool.get().unwrap(), "noted");
    assert_eq!(own.sql(0, "SELECT body FROM note"), "noted");
}

//! What is refused, what is accepted, and what the gaps are filled with.

use std::time::Duration;

use super::*;
use Dialect::{Mysql, Postgres, Sqlite};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let valid = postgres().validated(Postgres).unwrap();
    assert_eq!(
        valid.to_string(),
        "cluster \"default\": primary db1:5432/app (pool_size 10), \
         replica db2:5432/app (pool_size 7) weight 1; \
         mode Normal, default_mode Primary, strategy TwoChoices, consistency Session, \
         affinity Block, monotonic_reads WithinContext, \
         fallback Primary (at most 7), max_lag 5s, sticky_for 12s, quarantine 1s, \
         check_interval 1s, slow_start 20s, catch_up_wait 0ns, \
         connect_timeout 3s, checkout_timeout 5s, validate_after 1s, \
         implicit_context Handle, unknown_functions replica"
    );
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let node = || NodeConfig::new("postgres://db3/app");
    for (config, expected) in [
        (postgres().pool_size(0), "pool_size: \"0\""),
        (
            postgres().replica(node().pool_size(0)),
            "pool_size of replica 2: \"0\"",
        ),
        (
            postgres().replica(node().name("eu").pool_size(0)),
            "pool_size of replica \"eu\": \"0\"",
        ),
        (postgres().name(" "), "name: \" \""),
        (
            postgres().replica(node().name("")),
            "name of replica 2: \"\"",
        ),
        (
            postgres().connect_timeout(ms(0)),
            "connect_timeout: \"0ns\"",
        ),
        (postgres().checkout_timeout(ms(0)), "checkout_timeout"),
        (postgres().quarantine(ms(0)), "quarantine"),
        (postgres().max_lag(ms(0)), "max_lag"),
        (postgres().sticky_for(Duration::MAX), "sticky_for"),
        (
            postgres().primary_functions(["f()"]),
            "primary_functions: \"f()\"",
        ),
        (
            postgres().replica_functions([""]),
            "replica_functions: \"\"",
        ),
        (
            postgres().primary_functions(["f"]).replica_functions(["F"]),
            "replica_functions: \"f\"",
        ),
        (
            postgres().replica("postgres://db3/app#weight=heavy"),
            "option weight of a connection string: \"heavy\"",
        ),
        (
            postgres().replica(" "),
            "the connection string of replica 2 is empty",
        ),
        (
            ClusterConfig::new(""),
            "the connection string of the primary is empty",
        ),
        (
            postgres().replica("mysql://db3/app"),
            "the connection string of replica 2 starts with mysql://, accepted is postgres://",
        ),
        (
            postgres().replica("postgres://db2:5432/app"),
            "replica 2 is the same database of the same server as replica 1",
        ),
        (
            postgres().replica("postgres://DB1/app"),
            "replica 2 is the same database of the same server as the primary",
        ),
        (
            postgres()
                .replica(node().name("eu"))
                .replica("postgres://db4/app#name=eu"),
            "two nodes are named \"eu\"",
        ),
        (
            ClusterConfig::new("postgres://db1/app").replica(node().weight(0)),
            "every replica has weight 0",
        ),
    ] {
        let error = error_of(config, Postgres).to_string();
        assert!(
            error.starts_with(expected),
            "expected {expected:?}, but it was {error:?}"
        );
    }
}

#[test]
fn stickiness_must_outlast_lag_and_probes() {
    for (sticky_for, max_lag, check_interval, accepted) in [
        (ms(12_000), Some(ms(5_000)), ms(1_000), true),
        (ms(10_800), Some(ms(5_000)), ms(1_000), true),
        (ms(10_799), Some(ms(5_000)), ms(1_000), false),
        (ms(3_601), Some(ms(1)), ms(0), true),
        (ms(3_600), Some(ms(1)), ms(0), false),
        (ms(12_000), Some(ms(5_000)), ms(2_000), false),
        (ms(0), None, ms(60_000), true),
    ] {
        let config = postgres()
            .sticky_for(sticky_for)
            .max_lag(max_lag)
            .check_interval(check_interval);
        let valid = config.validated(Postgres).is_ok();
        assert_eq!(
            valid, accepted,
            "{sticky_for:?} with {max_lag:?} and {check_interval:?}"
        );
    }
    let error = error_of(postgres().sticky_for(ms(3_000)), Postgres);
    assert_eq!(
        error.to_string(),
        "sticky_for (3s) must be at least 10.8s, the sum of max_lag (5s), \
         2.2 x check_interval (1s), the probe timeout (1s) and a margin of 2.6s: \
         raise it, or lower max_lag or check_interval"
    );
}

#[test]
fn pools_of_replicas_hold_two_thirds_unless_set() {
    for (size, replica, fallback) in [
        (1, 1, 1),
        (2, 2, 1),
        (3, 2, 2),
        (4, 3, 3),
        (10, 7, 7),
        (12, 8, 9),
    ] {
        let valid = postgres().pool_size(size).validated(Postgres).unwrap();
        let sizes = (
            valid.primary.pool_size(Role::Primary),
            valid.replicas[0].pool_size(Role::Replica),
            valid.fallback_limit(&valid.primary),
        );
        assert_eq!(sizes, (size, replica, Some(fallback)));
    }
    let own = NodeConfig::new("postgres://db3/app").pool_size(5);
    let valid = postgres()
        .replica(own)
        .fallback(Fallback::Error)
        .validated(Postgres)
        .unwrap();
    assert_eq!(
        (
            valid.replicas[1].pool_size(Role::Replica),
            valid.fallback_limit(&valid.primary)
        ),
        (5, None)
    );
}

#[test]
fn default_names_are_made_unique() {
    let config = ClusterConfig::new("/data/app.db")
        .replica("/data/app.db")
        .replica("/other/app.db")
        .replica(NodeConfig::new("/third/app.db").name("app.db-2"));
    let valid = config.validated(Sqlite).unwrap();
    let mut names = vec![valid.primary.name];
    names.extend(valid.replicas.into_iter().map(|replica| replica.name));
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["app.db", "app.db-3", "app.db-4", "app.db-2"]);
}

#[test]
fn an_in_memory_database_is_refused_beside_replicas() {
    let shared = "file:x?mode=memory&cache=shared";
    for (primary, replica, accepted) in [
        (":memory:", None, true),
        (":memory:", Some("app.db"), false),
        ("app.db", Some(":memory:"), false),
        ("app.db", Some("sqlite://:memory:"), false),
        ("app.db", Some("file:x?mode=memory"), false),
        ("file:", Some("app.db"), false),
        (shared, Some(shared), true),
        ("app.db", Some("app.db"), true),
    ] {
        let mut config = ClusterConfig::new(primary);
        if let Some(replica) = replica {
            config = config.replica(replica);
        }
        let valid = config.validated(Sqlite).is_ok();
        assert_eq!(valid, accepted, "{primary} with {replica:?}");
    }
}

#[test]
fn one_file_is_no_two_replicas() {
    let config = ClusterConfig::new("app.db")
        .replica("app.db")
        .replica("./app.db");
    assert_eq!(
        error_of(config, Sqlite),
        ConfigError::SameNode {
            first: "replica 1".to_owned(),
            second: "replica 2".to_owned()
        }
    );
}

#[test]
fn only_postgres_strings_get_timeouts() {
    for (dialect, url, timed) in [
        (Postgres, "postgres://db1/app", true),
        (Postgres, "host=db1", true),
        (Mysql, "mysql://db1/app", false),
        (Sqlite, "app.db", false),
    ] {
        let valid = ClusterConfig::new(url).validated(dialect).unwrap();
        let dialled = valid.primary.dial_url();
        assert_eq!(dialled.contains("connect_timeout"), timed, "{dialled}");
    }
}

#[test]
fn other_replicas_are_checked_against_the_same_primary() {
    let config = postgres().with_replicas(vec![NodeConfig::new("postgres://db1/app")]);
    let error = error_of(config, Postgres);
    assert!(matches!(error, ConfigError::SameNode { .. }), "{error}");
}

#[test]
fn configuration_and_error_travel_between_threads() {
    fn travels<T: Send + Sync + 'static>() {}
    travels::<ClusterConfig>();
    travels::<ConfigError>();
}

//! The environment as a source.

use super::*;
use crate::cluster::config::env::{dotenv, from_vars};

const SECRET: &str = "S3CRET";

fn read(vars: &[(&str, &str)]) -> Result<ClusterConfig, ConfigError> {
    from_vars(
        vars.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

/// What one variable makes of a cluster that is otherwise at its defaults.
fn read_one(name: &str, value: &str) -> Result<Settings, ConfigError> {
    read(&[("DATABASE_URL", "postgres://h/db"), (name, value)]).map(|config| config.settings)
}

fn replicas(list: &str) -> Vec<String> {
    let vars = [("DATABASE_URL", "a.db"), ("DATABASE_REPLICA_URLS", list)];
    let config = read(&vars).expect("the list should be accepted");
    config.replicas.into_iter().map(|node| node.url).collect()
}

#[test]
fn every_setting_can_be_read() {
    for (name, value, expected) in [
        ("ROUTED_NAME", "shop", "name: \"shop\""),
        ("ROUTED_MODE", "primary_only", " mode: PrimaryOnly"),
        ("ROUTED_MODE", "read-only", " mode: ReadOnly"),
        ("ROUTED_MODE", "normal", " mode: Normal"),
        (
            "ROUTED_DEFAULT_MODE",
            "distributed",
            "default_mode: Distributed",
        ),
        ("ROUTED_DEFAULT_MODE", "primary", "default_mode: Primary"),
        ("ROUTED_STRATEGY", "two_choices", "strategy: TwoChoices"),
        ("ROUTED_STRATEGY", "Round-Robin", "strategy: RoundRobin"),
        ("ROUTED_STRATEGY", "random", "strategy: Random"),
        (
            "ROUTED_STRATEGY",
            "weighted_random",
            "strategy: WeightedRandom",
        ),
        ("ROUTED_STRATEGY", "failover", "strategy: Failover"),
        ("ROUTED_AFFINITY", "block", "affinity: Block"),
        ("ROUTED_AFFINITY", "Query", "affinity: Query"),
        (
            "ROUTED_MONOTONIC_READS",
            "across_requests",
            "monotonic_reads: AcrossRequests",
        ),
        (
            "ROUTED_MONOTONIC_READS",
            "within_context",
            "monotonic_reads: WithinContext",
        ),
        ("ROUTED_CONSISTENCY", "session", "consistency: Session"),
        ("ROUTED_CONSISTENCY", "eventual", "consistency: Eventual"),
        ("ROUTED_CONSISTENCY", "strong", "consistency: Strong"),
        (
            "ROUTED_CONSISTENCY",
            "primary_preferred",
            "consistency: PrimaryPreferred",
        ),
        (
            "ROUTED_CONSISTENCY",
            "max_lag=2s",
            "consistency: MaxLag(2s)",
        ),
        (
            "ROUTED_FALLBACK",
            "primary",
            "Primary { max_concurrent: None }",
        ),
        (
            "ROUTED_FALLBACK",
            "primary=8",
            "Primary { max_concurrent: Some(8) }",
        ),
        ("ROUTED_FALLBACK", "error", "fallback: Error"),
        (
            "ROUTED_IMPLICIT_CONTEXT",
            "forbid",
            "implicit_context: Forbid",
        ),
        (
            "ROUTED_IMPLICIT_CONTEXT",
            "handle",
            "implicit_context: Handle",
        ),
        ("ROUTED_MAX_LAG", "500ms", "max_lag: Some(500ms)"),
        ("ROUTED_MAX_LAG", "none", "max_lag: None"),
        ("ROUTED_STICKY_FOR", "2m", "sticky_for: 120s"),
        ("ROUTED_QUARANTINE", "3s", "quarantine: 3s"),
        ("ROUTED_CHECK_INTERVAL", "0", "check_interval: 0ns"),
        ("ROUTED_CONNECT_TIMEOUT", " 4 s ", "connect_timeout: 4s"),
        ("ROUTED_CHECKOUT_TIMEOUT", "1h", "checkout_timeout: 3600s"),
        ("ROUTED_VALIDATE_AFTER", "9s", "validate_after: 9s"),
        ("ROUTED_POOL_SIZE", "25", "pool_size: 25"),
        (
            "ROUTED_PRIMARY_FUNCTIONS",
            "f, Audit.g\nh",
            "primary_functions: [\"f\", \"audit.g\", \"h\"]",
        ),
        (
            "ROUTED_REPLICA_FUNCTIONS",
            "f",
            "replica_functions: [\"f\"]",
        ),
        (
            "ROUTED_UNKNOWN_FUNCTIONS",
            "primary",
            "unknown_functions: Primary",
        ),
        (
            "ROUTED_UNKNOWN_FUNCTIONS",
            "replica",
            "unknown_functions: Replica",
        ),
        ("ROUTED_POOL_SIZE", "", "pool_size: 10"),
    ] {
        let settings = format!("{:?}", read_one(name, value).unwrap());
        assert!(
            settings.contains(expected),
            "{name}={value} should give {expected}: {settings}"
        );
    }
}

#[test]
fn a_value_that_cannot_be_understood_is_refused_by_name() {
    for (name, value) in [
        ("ROUTED_MODE", "primary"),
        ("ROUTED_DEFAULT_MODE", "replica"),
        ("ROUTED_STRATEGY", "least"),
        ("ROUTED_CONSISTENCY", "max_lag"),
        ("ROUTED_CONSISTENCY", "max_lag=2"),
        ("ROUTED_CONSISTENCY", "strong=2s"),
        ("ROUTED_FALLBACK", "stalest"),
        ("ROUTED_FALLBACK", "primary=many"),
        ("ROUTED_FALLBACK", "error=1"),
        ("ROUTED_MAX_LAG", "5"),
        ("ROUTED_MAX_LAG", "-1s"),
        ("ROUTED_STICKY_FOR", "12"),
        ("ROUTED_STICKY_FOR", "1.5s"),
        ("ROUTED_STICKY_FOR", "none"),
        ("ROUTED_STICKY_FOR", "s"),
        ("ROUTED_STICKY_FOR", "3 weeks"),
        ("ROUTED_STICKY_FOR", "9999999999999999999h"),
        ("ROUTED_POOL_SIZE", "-1"),
        ("ROUTED_POOL_SIZE", "ten"),
        ("ROUTED_UNKNOWN_FUNCTIONS", "error"),
    ] {
        let error = read_one(name, value)
            .expect_err("this value should be refused")
            .to_string();
        let start = format!("{name}: {value:?} is not accepted, write ");
        assert!(error.starts_with(&start), "{error}");
        assert!(
            error.len() > start.len(),
            "{name} should say what it accepts"
        );
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_known_ones() {
    for name in ["ROUTED_MAXLAG", "ROUTED_", "ROUTED_STRATEGIES"] {
        let error = read_one(name, SECRET)
            .expect_err("typos should not be silent")
            .to_string();
        assert!(
            error.starts_with(&format!("{name} is no setting, accepted are ")),
            "{error}"
        );
        assert!(
            error.contains("ROUTED_MAX_LAG, ROUTED_STICKY_FOR"),
            "{error}"
        );
        assert!(!error.contains(SECRET), "{error}");
    }
    assert!(
        read_one("ROUTE_MAX_LAG", "x").is_ok(),
        "other names are none of our business"
    );
}

#[test]
fn values_that_look_like_secrets_are_not_shown() {
    for value in ["postgres://u:S3CRET@h/db", "u:S3CRET@h", "password=S3CRET"] {
        let error = read_one("ROUTED_STRATEGY", value).expect_err("this is no strategy");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    }
}

#[test]
fn the_primary_is_required() {
    for vars in [
        &[][..],
        &[("DATABASE_URL", "")],
        &[("DATABASE_URL", " "), ("ROUTED_NAME", "x")],
    ] {
        assert_eq!(read(vars).err(), Some(ConfigError::NoPrimary), "{vars:?}");
    }
}

#[test]
fn the_first_of_two_equal_names_counts_even_if_empty() {
    let settings = |first: &str| {
        let vars = [
            ("DATABASE_URL", "a.db"),
            ("ROUTED_POOL_SIZE", first),
            ("ROUTED_POOL_SIZE", "3"),
        ];
        read(&vars).unwrap().settings.pool_size
    };
    assert_eq!(settings("5"), 5, "the process wins over .env");
    assert_eq!(settings(""), 10, "the process can take back what .env sets");
}

#[test]
fn replica_lists_are_split_at_schemes_lines_and_after_plain_paths() {
    for (list, expected) in [
        ("", &[][..]),
        ("postgres://h1/db", &["postgres://h1/db"]),
        (
            "postgres://h1/db  postgres://h2/db\npostgres://h3/db",
            &["postgres://h1/db", "postgres://h2/db", "postgres://h3/db"],
        ),
        (
            "\tmysql://h1/db\tmariadb://h2/db ",
            &["mysql://h1/db", "mariadb://h2/db"],
        ),
        (
            "host=h1 dbname=db password='a b'",
            &["host=h1 dbname=db password='a b'"],
        ),
        ("host = h1 dbname=db", &["host = h1 dbname=db"]),
        (
            "host=h1 dbname=db\nhost=h2 dbname=db",
            &["host=h1 dbname=db", "host=h2 dbname=db"],
        ),
        (
            "host=h1 dbname=db postgres://h2/db",
            &["host=h1 dbname=db", "postgres://h2/db"],
        ),
        ("a.db /data/b.db ./c.db", &["a.db", "/data/b.db", "./c.db"]),
        ("/data/x=1.db b.db", &["/data/x=1.db", "b.db"]),
        ("a.db file:my b.db", &["a.db", "file:my b.db"]),
        (
            "file:my a.db sqlite:///my b.db sqlite:c.db",
            &["file:my a.db", "sqlite:///my b.db", "sqlite:c.db"],
        ),
    ] {
        assert_eq!(replicas(list), expected, "{list:?}");
    }
}

#[test]
fn options_in_lists_are_understood() {
    let vars = [
        ("DATABASE_URL", "postgres://h1/db#name=main"),
        (
            "DATABASE_REPLICA_URLS",
            "postgres://h2/db#name=eu&weight=2 postgres://h3/db#pool_size=4",
        ),
    ];
    assert_eq!(
        format!("{:?}", read(&vars).unwrap().replicas),
        "[NodeConfig { name: Some(\"eu\"), weight: 2, pool_size: None }, \
         NodeConfig { name: None, weight: 1, pool_size: Some(4) }]"
    );
}

#[test]
fn commas_between_replicas_are_explained() {
    let list = "postgres://u:S3CRET@h2/db,postgres://u:S3CRET@h3/db";
    let vars = [
        ("DATABASE_URL", "postgres://h1/db"),
        ("DATABASE_REPLICA_URLS", list),
    ];
    let error = read(&vars)
        .expect_err("a comma does not separate")
        .to_string();
    assert!(
        error.ends_with("write connection strings separated by white space"),
        "{error}"
    );
    assert!(!error.contains(SECRET), "{error}");
}

#[test]
fn a_missing_dotenv_file_is_fine_and_a_broken_one_is_not_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".env");
    let load = || dotenv(dotenvy::from_path_iter(&path));

    assert_eq!(load(), Ok(Vec::new()), "a .env file is optional");

    std::fs::write(
        &path,
        "# ours\nDATABASE_URL=postgres://u:S3CRET@h/db#name=a\n",
    )
    .unwrap();
    let expected = ("DATABASE_URL", "postgres://u:S3CRET@h/db#name=a");
    assert_eq!(
        load(),
        Ok(vec![(expected.0.to_owned(), expected.1.to_owned())])
    );

    std::fs::write(&path, "DATABASE_URL=\"postgres://u:S3CRET@h/db\n").unwrap();
    let error = load().expect_err("the quote is not closed");
    assert_eq!(error, ConfigError::DotEnv);
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
}

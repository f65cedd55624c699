//! What tests of health and failover share: a cluster that is looked at often, what is known of
//! its nodes, and requests that go on while something happens to them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{
    Cluster, ClusterConfig, NodeStatus, ReplicatedConnection, Role, RoutedError, RoutedPool,
};

use crate::support::{holds_within, wait_until};

/// How often the nodes are looked at.
pub const TICK: Duration = Duration::from_millis(200);

/// What all that is promised to happen soon has happened within, however busy the machine is.
pub const SOON: Duration = Duration::from_secs(30);

/// Looked at often, so that no test waits long; too patient to be disturbed by lag.
pub fn watched(config: ClusterConfig) -> ClusterConfig {
    config
        .check_interval(TICK)
        .quarantine(Duration::from_millis(100))
        .connect_timeout(Duration::from_secs(1))
        .max_lag(Duration::from_secs(20))
        .sticky_for(Duration::from_secs(60))
}

/// As [`watched`], and a replica is late when it is behind for longer than [`MAX_LAG`].
pub fn strict(config: ClusterConfig) -> ClusterConfig {
    watched(config).max_lag(MAX_LAG)
}

pub const MAX_LAG: Duration = Duration::from_secs(2);

/// What the router knows of its nodes.
pub struct Known<C: ReplicatedConnection>(Cluster<C>);

impl<C: ReplicatedConnection> Known<C> {
    /// Looks once: as long as nobody needs the nodes, nobody looks at them.
    pub fn to(pool: &RoutedPool<C>) -> Self {
        let cluster = pool.get().expect("a handle is free").cluster().clone();
        cluster.check();
        Self(cluster)
    }

    /// What is known of one node.
    pub fn node(&self, name: &str) -> NodeStatus {
        let nodes = self.0.status().nodes;
        let node = nodes.into_iter().find(|node| node.name == name);
        node.unwrap_or_else(|| panic!("{name} is a node"))
    }

    /// The state of a node, as it is printed.
    pub fn state(&self, name: &str) -> String {
        self.node(name).state.to_string()
    }

    /// The states of all nodes, in their order.
    pub fn states(&self) -> Vec<String> {
        let nodes = self.0.status().nodes;
        nodes.iter().map(|node| node.state.to_string()).collect()
    }

    /// The names of the nodes that are used as primary.
    pub fn primaries(&self) -> Vec<String> {
        let nodes = self.0.status().nodes.into_iter();
        let primaries = nodes.filter(|node| node.role == Role::Primary);
        primaries.map(|node| node.name).collect()
    }

    /// Waits until all nodes are up.
    #[track_caller]
    pub fn wait_for_all(&self) {
        for node in self.0.status().nodes {
            self.wait(&node.name, "up");
        }
    }

    /// Waits until a node is in a state, and tells how long that took.
    #[track_caller]
    pub fn wait(&self, name: &str, state: &str) -> Duration {
        let mut seen = String::new();
        let start = Instant::now();
        let reached = holds_within(SOON, || {
            seen = self.state(name);
            seen == state
        });
        assert!(
            reached,
            "{name} is {seen}, not {state}:\n{}",
            self.0.status()
        );
        println!("{name} was {state} after {:?}", start.elapsed());
        start.elapsed()
    }
}

/// What became of the requests so far.
#[derive(Default)]
pub struct Tally {
    answers: Mutex<BTreeMap<String, usize>>,
    failures: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Tally {
    /// How many were answered by a node.
    pub fn by(&self, name: &str) -> usize {
        let answers = self.answers.lock().expect("no panic while it is held");
        answers.get(name).copied().unwrap_or(0)
    }

    /// How many were answered.
    pub fn all(&self) -> usize {
        let answers = self.answers.lock().expect("no panic while it is held");
        answers.values().sum()
    }

    /// Why the others were not.
    pub fn failures(&self) -> Vec<String> {
        self.failures
            .lock()
            .expect("no panic while it is held")
            .clone()
    }

    /// Waits until so many more are answered.
    #[track_caller]
    pub fn wait_for_more(&self, count: usize) {
        let goal = self.all() + count;
        wait_until("requests go on", SOON, || self.all() >= goal);
    }

    /// Waits until a node has answered so many more.
    #[track_caller]
    pub fn wait_for_more_by(&self, name: &str, count: usize) {
        let goal = self.by(name) + count;
        wait_until(&format!("{name} answers"), SOON, || self.by(name) >= goal);
    }

    fn add(&self, answer: QueryResult<String>) {
        match answer {
            Ok(name) => {
                let mut answers = self.answers.lock().expect("no panic while it is held");
                *answers.entry(name).or_default() += 1;
            }
            Err(error) => {
                let mut failures = self.failures.lock().expect("no panic while it is held");
                failures.push(error.to_string());
            }
        }
    }
}

/// Does `work` while threads make one request after another, each of which tells who answered it;
/// returns when all have ended.
pub fn under_load<R>(
    threads: usize,
    request: impl Fn() -> QueryResult<String> + Sync,
    work: impl FnOnce(&Tally) -> R,
) -> (R, Tally) {
    struct Stop<'a>(&'a Tally);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.over.store(true, Ordering::Relaxed);
        }
    }
    let tally = Tally::default();
    let result = thread::scope(|scope| {
        // also when the work ends in a panic
        let _stop = Stop(&tally);
        for _ in 0..threads {
            scope.spawn(|| {
                while !tally.over.load(Ordering::Relaxed) {
                    tally.add(request());
                }
            });
        }
        work(&tally)
    });
    (result, tally)
}

/// The router's own error in a failure.
#[track_caller]
pub fn routed<T: std::fmt::Debug>(result: QueryResult<T>) -> RoutedError {
    let error = result.expect_err("it fails");
    RoutedError::downcast(&error).unwrap_or_else(|| panic!("not the router's: {error}"))
}

/// Whether writes are refused because two servers take them and neither has all the other has.
pub fn is_role_conflict(error: &RoutedError) -> bool {
    matches!(error, RoutedError::RoleConflict { .. })
}

/// Defines the SQL that differs, for one database.
macro_rules! dialect {
    ($name:ident, $feature:literal, { $($constant:ident: $sql:expr,)* }) => {
        #[cfg(feature = $feature)]
        #[allow(dead_code)] // not every database takes part in every test
        pub mod $name {
            pub use super::*;
            $(pub const $constant: &str = $sql;)*
        }
    };
}

dialect!(postgres, "postgres", {
    // takes long on n1, and no time elsewhere
    SLOW_ON_N1: "SELECT name FROM node_name, pg_sleep(CASE name WHEN 'n1' THEN 60 ELSE 0 END)",
    SLOW: "SELECT count(*) FROM pg_sleep(60)",
    IS_SLOW: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
    STATEMENT_TIMEOUT: "SET statement_timeout = 100",
    LOCK_TIMEOUT: "SET lock_timeout = 100",
    SESSION: "SELECT pg_backend_pid()::text AS text",
    BEGIN_READ_ONLY: "BEGIN READ ONLY",
    TIMED_OUT: "statement timeout",
    NOT_LOCKED: "lock timeout",
    FULL: "remaining connection slots",
    SEE_REPLICATION: "GRANT pg_read_all_stats TO app",
});
dialect!(mariadb, "mysql", {
    SLOW_ON_N1: "SELECT name FROM (SELECT name, SLEEP(IF(name = 'n1', 60, 0)) AS slept FROM node_name) AS t WHERE slept = 0",
    SLOW: "SELECT SLEEP(60)",
    IS_SLOW: "SELECT count(*) FROM information_schema.PROCESSLIST WHERE state = 'User sleep'",
    STATEMENT_TIMEOUT: "SET SESSION max_statement_time = 0.1",
    LOCK_TIMEOUT: "SET SESSION innodb_lock_wait_timeout = 1",
    SESSION: "SELECT CAST(CONNECTION_ID() AS CHAR) AS text",
    BEGIN_READ_ONLY: "START TRANSACTION READ ONLY",
    TIMED_OUT: "max_statement_time",
    NOT_LOCKED: "Lock wait timeout",
    FULL: "Too many connections",
    SEE_REPLICATION: "DO 0",
});

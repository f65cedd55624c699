//! What tests of pools need beyond the kit.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use diesel_routed::{ClusterConfig, NodeConfig};

use crate::support::Cluster;

/// The cluster with pools of these sizes: one for the primary, one for each replica.
pub fn sized(cluster: &Cluster, primary: u32, replica: u32) -> ClusterConfig {
    let node = |place: usize, size| {
        NodeConfig::new(cluster.url(place))
            .name(&format!("n{place}"))
            .pool_size(size)
    };
    (1..cluster.len()).fold(ClusterConfig::new(node(0, primary)), |config, place| {
        config.replica(node(place, replica))
    })
}

/// The panic that a test means; says nothing on the console.
pub fn panic_now() -> ! {
    resume_unwind(Box::new(Expected))
}

struct Expected;

/// Runs `f`, which ends in [`panic_now`].
pub fn panics<R>(f: impl FnOnce() -> R) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("the closure ends in a panic");
    };
    if !payload.is::<Expected>() {
        resume_unwind(payload);
    }
}

/// Runs `f` and tells how long it took.
pub fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = f();
    (result, start.elapsed())
}

/// Defines `in_flight`, `hold_replicas` and `plain` for one database.
macro_rules! pools {
    (
        $name:ident, $feature:literal, $busy:literal, $kills:literal,
        $set:literal, $setting:literal, $value:literal
    ) => {
        #[cfg(feature = $feature)]
        #[allow(dead_code, unused_imports)] // not every database takes part in every test
        pub mod $name {
            use std::collections::BTreeMap;
            use std::sync::Barrier;
            use std::time::Duration;

            use diesel::connection::SimpleConnection;
            use diesel::prelude::*;
            use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

            pub use super::{disconnect, panic_now, panics, sized, timed};
            use crate::kit::$name::*;

            /// Whether the open connections to a node end when it is killed.
            pub const KILLS_CONNECTIONS: bool = $kills;

            /// Sets something in a session.
            pub const SET: &str = $set;

            /// Tells whether it is set where the connection reads now.
            pub fn is_set(conn: &mut Conn) -> bool {
                let setting = diesel::select(diesel::dsl::sql::<diesel::sql_types::Text>($setting));
                setting.get_result::<String>(conn).expect("it can be read") == $value
            }

            /// A manager whose connections wait for a locked SQLite file.
            pub fn manager(config: ClusterConfig) -> RoutedConnectionManager<Plain> {
                RoutedConnectionManager::<Plain>::new(config)
                    .expect("a right configuration")
                    .with_setup(|conn, _| conn.batch_execute($busy))
            }

            /// A pool of `size` handles, which waits no longer than a test should.
            pub fn pool_of(size: u32, config: ClusterConfig) -> Pool {
                RoutedPool::builder()
                    .max_size(size)
                    .connection_timeout(Duration::from_secs(20))
                    .build(manager(config))
                    .expect("handles are made without I/O")
            }

            /// Connections in use, by node.
            pub fn in_flight(pool: &Pool) -> Vec<u32> {
                let conn = pool.get().expect("a handle is free");
                let nodes = conn.cluster().status().nodes;
                nodes.iter().map(|node| node.in_flight).collect()
            }

            /// Who answers `blocks` blocks that are open at the same time, and how often.
            pub fn answers(pool: &Pool, blocks: usize) -> BTreeMap<String, usize> {
                let cluster = pool.get().expect("a handle is free").cluster().clone();
                let all_inside = Barrier::new(blocks);
                let names: Vec<String> = std::thread::scope(|scope| {
                    let block = || {
                        cluster.connection().distributed(|conn| {
                            let name = who(conn);
                            all_inside.wait();
                            name
                        })
                    };
                    let threads: Vec<_> = (0..blocks).map(|_| scope.spawn(block)).collect();
                    let names = threads.into_iter().map(|thread| thread.join());
                    names.map(|name| name.expect("no block fails")).collect()
                });
                names.into_iter().fold(BTreeMap::new(), |mut counts, name| {
                    *counts.entry(name).or_default() += 1;
                    counts
                })
            }

            /// An ordinary connection to one node.
            pub fn plain(db: &Db, node: usize) -> Plain {
                let mut conn = Plain::establish(&db.cluster.url(node)).expect("the node answers");
                conn.batch_execute($busy).expect("a setting is accepted");
                conn
            }

            /// How many notes a node holds.
            pub fn notes_on(db: &Db, node: usize) -> i64 {
                note::table
                    .count()
                    .get_result(&mut plain(db, node))
                    .expect("notes can be counted")
            }
        }
    };
}

pools!(
    postgres,
    "postgres",
    "SET lock_timeout = 0",
    true,
    "SET statement_timeout = 43210",
    "current_setting('statement_timeout')",
    "43210ms"
);
pools!(
    mariadb,
    "mysql",
    "DO 0",
    true,
    "SET SESSION wait_timeout = 4321",
    "CAST(@@wait_timeout AS CHAR)",
    "4321"
);
pools!(
    mysql,
    "mysql",
    "DO 0",
    true,
    "SET SESSION wait_timeout = 4321",
    "CAST(@@wait_timeout AS CHAR)",
    "4321"
);
pools!(
    sqlite,
    "sqlite",
    "PRAGMA busy_timeout = 20000",
    false,
    "PRAGMA case_sensitive_like = on",
    "CAST('a' LIKE 'A' AS TEXT)",
    "0"
);

/// Ends every connection of the application to a node, as a restart would.
pub fn disconnect(cluster: &Cluster, node: usize) {
    if cluster.url(node).starts_with("postgres") {
        let end =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'app'";
        cluster.sql(node, end);
        return;
    }
    let all = "SELECT id FROM information_schema.processlist WHERE user = 'app'";
    for id in cluster.sql(node, all).lines() {
        // one that has ended meanwhile is not an error
        let _ = cluster.try_sql(node, &format!("KILL {id}"));
    }
}

use crate::kit::postgres as backend;
use crate::kit::shapes::Shape;
use crate::kit_health::postgres as health;
use crate::kit_pools::postgres as pools;
use crate::left_behind_postgres as left_behind;
use crate::secret_postgres as secret;

mod aborted;
#[path = "every/affinity.rs"]
mod affinity;
#[path = "every/all_replicas_dead.rs"]
mod all_replicas_dead;
#[path = "every/ambient.rs"]
mod ambient;
#[path = "every/black_holes.rs"]
mod black_holes;
#[path = "postgres/built.rs"]
mod built;
#[path = "every/catch_up.rs"]
mod catch_up;
mod checkouts;
#[path = "every/churn.rs"]
mod churn;
#[path = "every/coming_up.rs"]
mod coming_up;
mod conflicts;
#[path = "every/contexts.rs"]
mod contexts;
mod cut;
#[path = "every/deaf_hosts.rs"]
mod deaf_hosts;
#[path = "every/demotion.rs"]
mod demotion;
#[path = "every/diesel.rs"]
mod diesel_itself;
#[path = "every/environment.rs"]
mod environment;
#[path = "every/explain.rs"]
mod explain;
mod failures;
#[path = "postgres/features.rs"]
mod features;
mod fleet;
mod foreign_system;
#[path = "every/hooks.rs"]
mod hooks;
mod idle;
#[path = "every/interleavings.rs"]
mod interleavings;
#[path = "every/leaks.rs"]
mod leaks;
#[path = "postgres/log.rs"]
mod log;
#[path = "every/loss.rs"]
mod loss;
#[path = "every/makara.rs"]
mod makara;
#[path = "every/monotonic.rs"]
mod monotonic;
#[path = "every/nesting.rs"]
mod nesting;
#[path = "every/no_older.rs"]
mod no_older;
#[path = "every/not_deaths.rs"]
mod not_deaths;
#[path = "every/or_primary.rs"]
mod or_primary;
#[path = "every/outages.rs"]
mod outages;
#[path = "postgres/writes.rs"]
mod own;
#[path = "postgres/interleavings.rs"]
mod own_interleavings;
#[path = "postgres/probe.rs"]
mod own_probe;
mod positions;
#[path = "every/primary_restart.rs"]
mod primary_restart;
#[path = "every/probe.rs"]
mod probe;
#[path = "postgres/probe_errors.rs"]
mod probe_errors;
#[path = "every/promotion.rs"]
mod promotion;
#[path = "every/raw_transactions.rs"]
mod raw_transactions;
#[path = "every/read_only.rs"]
mod read_only;
#[path = "every/reads.rs"]
mod reads;
#[path = "postgres/reborn.rs"]
mod reborn;
#[path = "every/release.rs"]
mod release;
#[path = "every/replica_frozen.rs"]
mod replica_frozen;
#[path = "every/replica_killed.rs"]
mod replica_killed;
#[path = "every/replication_stopped.rs"]
mod replication_stopped;
#[path = "every/resend.rs"]
mod resend;
#[path = "every/round_trips.rs"]
mod round_trips;
#[path = "every/schema_lag.rs"]
mod schema_lag;
#[path = "every/second_handle.rs"]
mod second_handle;
mod second_net;
#[path = "every/secrets.rs"]
mod secrets;
#[path = "every/seed.rs"]
mod seed;
mod settings;
#[path = "every/shared_endpoint.rs"]
mod shared_endpoint;
#[path = "every/stale_fallback.rs"]
mod stale_fallback;
#[path = "every/starting.rs"]
mod starting;
#[path = "every/storm.rs"]
mod storm;
#[path = "every/strategies.rs"]
mod strategies;
#[path = "every/testing.rs"]
mod testing;
#[path = "every/tickets.rs"]
mod tickets;
#[path = "every/tokens.rs"]
mod tokens;
#[path = "every/transactions.rs"]
mod transactions;
#[path = "every/waiting.rs"]
mod waiting;
#[path = "every/writes.rs"]
mod writes;

use log::{MAKARA, has_logged, log_statements};
use own::{PREPARE, UPSERT, own_writes};

/// The ways to read that PostgreSQL alone has.
fn own_shapes() -> Vec<Shape<backend::Conn>> {
    use crate::kit::shapes::{only, shape};
    use backend::node_name::{name, table as node};
    use diesel::pg::PgRowByRowLoadingMode;
    use diesel::prelude::*;
    vec![
        Shape {
            name: "row by row",
            explain: |conn| conn.explain(&node.select(name)).expect("a read"),
            read: |conn| {
                let mut rows = node
                    .select(name)
                    .load_iter::<String, PgRowByRowLoadingMode>(conn)
                    .expect("a read");
                rows.next().expect("a row").expect("a name")
            },
        },
        shape!(
            "distinct on",
            node.distinct_on(name).select(name),
            only::<String>
        ),
        shape!(
            "union in parentheses",
            diesel::sql_query(
                "(SELECT name FROM node_name) UNION ALL (SELECT name FROM node_name) LIMIT 1"
            ),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
        shape!(
            "table",
            diesel::sql_query("TABLE node_name"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
        shape!(
            "values",
            diesel::sql_query("SELECT * FROM (VALUES ((SELECT name FROM node_name))) AS t (name)"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
    ]
}

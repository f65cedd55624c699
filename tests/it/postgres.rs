use crate::kit::postgres as backend;
use crate::kit::shapes::Shape;
use crate::kit_pools::postgres as pools;
use crate::left_behind_postgres as left_behind;
use crate::secret_postgres as secret;

mod aborted;
#[path = "every/ambient.rs"]
mod ambient;
#[path = "every/black_holes.rs"]
mod black_holes;
#[path = "postgres/built.rs"]
mod built;
#[path = "every/contexts.rs"]
mod contexts;
mod cut;
#[path = "every/diesel.rs"]
mod diesel_itself;
#[path = "every/environment.rs"]
mod environment;
#[path = "every/explain.rs"]
mod explain;
mod failures;
#[path = "postgres/features.rs"]
mod features;
#[path = "every/hooks.rs"]
mod hooks;
#[path = "every/leaks.rs"]
mod leaks;
#[path = "postgres/log.rs"]
mod log;
#[path = "every/loss.rs"]
mod loss;
#[path = "every/makara.rs"]
mod makara;
#[path = "every/nesting.rs"]
mod nesting;
#[path = "every/outages.rs"]
mod outages;
#[path = "postgres/writes.rs"]
mod own;
#[path = "every/raw_transactions.rs"]
mod raw_transactions;
#[path = "every/read_only.rs"]
mod read_only;
#[path = "every/reads.rs"]
mod reads;
#[path = "every/resend.rs"]
mod resend;
#[path = "every/second_handle.rs"]
mod second_handle;
mod second_net;
#[path = "every/secrets.rs"]
mod secrets;
#[path = "every/seed.rs"]
mod seed;
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

use crate::kit::postgres as backend;
use crate::kit::shapes::Shape;

#[path = "postgres/built.rs"]
mod built;
#[path = "postgres/features.rs"]
mod features;
#[path = "every/lag.rs"]
mod lag;
#[path = "postgres/log.rs"]
mod log;
#[path = "every/makara.rs"]
mod makara;
#[path = "postgres/writes.rs"]
mod own;
#[path = "every/reads.rs"]
mod reads;
#[path = "every/writes.rs"]
mod writes;

use log::{MAKARA, has_logged, log_statements};
use own::{PREPARE, UPSERT, own_writes};
#[path = "every/diesel.rs"]
mod diesel_itself;
#[path = "every/explain.rs"]
mod explain;
#[path = "every/seed.rs"]
mod seed;
#[path = "every/testing.rs"]
mod testing;
#[path = "every/transactions.rs"]
mod transactions;

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

use crate::kit::shapes::Shape;
use crate::kit::sqlite as backend;
use crate::kit_pools::sqlite as pools;
use crate::left_behind_sqlite as left_behind;
use crate::secret_sqlite as secret;

#[path = "every/affinity.rs"]
mod affinity;
#[path = "every/ambient.rs"]
mod ambient;
mod begin;
#[path = "every/churn.rs"]
mod churn;
#[path = "every/contexts.rs"]
mod contexts;
#[path = "every/diesel.rs"]
mod diesel_itself;
#[path = "every/environment.rs"]
mod environment;
#[path = "every/explain.rs"]
mod explain;
#[path = "sqlite/features.rs"]
mod features;
#[path = "every/hooks.rs"]
mod hooks;
#[path = "every/leaks.rs"]
mod leaks;
mod missing;
#[path = "every/nesting.rs"]
mod nesting;
#[path = "every/outages.rs"]
mod outages;
#[path = "sqlite/writes.rs"]
mod own;
mod probe;
mod programs;
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

use own::{PREPARE, UPSERT, own_writes};

/// The ways to read that SQLite alone has.
fn own_shapes() -> Vec<Shape<backend::Conn>> {
    use crate::kit::shapes::shape;
    use diesel::prelude::*;
    vec![shape!(
        "values",
        diesel::sql_query(
            "WITH me (name) AS (VALUES ((SELECT name FROM node_name))) SELECT * FROM me"
        ),
        |rows: Vec<reads::Named>| rows[0].name.clone()
    )]
}

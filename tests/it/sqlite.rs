use crate::kit::shapes::Shape;
use crate::kit::sqlite as backend;

#[path = "sqlite/features.rs"]
mod features;
#[path = "sqlite/writes.rs"]
mod own;
#[path = "every/reads.rs"]
mod reads;
#[path = "every/writes.rs"]
mod writes;

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

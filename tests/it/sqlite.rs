use crate::kit::shapes::Shape;
use crate::kit::sqlite as backend;

#[path = "sqlite/writes.rs"]
mod own;
#[path = "every/reads.rs"]
mod reads;
#[path = "every/writes.rs"]
mod writes;

use own::{PREPARE, UPSERT, own_writes};
#[path = "every/seed.rs"]
mod seed;

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

use crate::kit::mariadb as backend;
use crate::kit::shapes::Shape;

#[path = "every/lag.rs"]
mod lag;
#[path = "mariadb/log.rs"]
mod log;
#[path = "every/makara.rs"]
mod makara;
#[path = "mariadb/writes.rs"]
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

/// The ways to read that MariaDB alone has.
fn own_shapes() -> Vec<Shape<backend::Conn>> {
    use crate::kit::shapes::shape;
    use diesel::prelude::*;
    vec![
        shape!(
            "union in parentheses",
            diesel::sql_query("(SELECT name FROM node_name) UNION (SELECT name FROM node_name)"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
        shape!(
            "comment that is run",
            diesel::sql_query("SELECT /*! name */ FROM node_name # that is all"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
    ]
}

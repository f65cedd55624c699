//! What asks the server for something. The rest of `every/` is the router's own work, and the same on
//! MariaDB, whose client this is too; a MySQL cluster takes three times as much of a processor to start.

use crate::kit::mysql as backend;
use crate::kit::shapes::Shape;
// what it shares with MariaDB
use crate::kit_health::mariadb as health;
use crate::kit_pools::mysql as pools;
use crate::left_behind_mysql as left_behind;
use crate::secret_mariadb as secret;

mod alone;
#[path = "mariadb/deadlock.rs"]
mod deadlock;
#[path = "every/diesel.rs"]
mod diesel_itself;
#[path = "every/explain.rs"]
mod explain;
#[path = "mariadb/failures.rs"]
mod failures;
#[path = "every/leaks.rs"]
mod leaks;
#[path = "mariadb/log.rs"]
mod log;
#[path = "every/loss.rs"]
mod loss;
#[path = "every/makara.rs"]
mod makara;
#[path = "every/monotonic.rs"]
mod monotonic;
#[path = "every/outages.rs"]
mod outages;
#[path = "mariadb/writes.rs"]
mod own;
#[path = "mysql/probe.rs"]
mod own_probe;
mod positions;
#[path = "every/probe.rs"]
mod probe;
#[path = "mariadb/probe_errors.rs"]
mod probe_errors;
#[path = "every/raw_transactions.rs"]
mod raw_transactions;
#[path = "every/read_only.rs"]
mod read_only;
#[path = "every/reads.rs"]
mod reads;
#[path = "every/release.rs"]
mod release;
#[path = "every/resend.rs"]
mod resend;
#[path = "every/round_trips.rs"]
mod round_trips;
#[path = "every/schema_lag.rs"]
mod schema_lag;
#[path = "mariadb/second_net.rs"]
mod second_net;
#[path = "every/secrets.rs"]
mod secrets;
#[path = "every/testing.rs"]
mod testing;
#[path = "every/tickets.rs"]
mod tickets;
#[path = "every/tokens.rs"]
mod tokens;
#[path = "every/transactions.rs"]
mod transactions;
#[path = "every/writes.rs"]
mod writes;

use alone::{PREPARE, insert_in_its_way};
use log::{MAKARA, has_logged, log_statements};
use own::{UPSERT, own_writes};

/// The ways to read that MySQL alone has.
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
        shape!(
            "whole table",
            diesel::sql_query("TABLE node_name"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
        shape!(
            "intersection",
            diesel::sql_query("SELECT name FROM node_name INTERSECT TABLE node_name"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
        shape!(
            "lateral table",
            diesel::sql_query("SELECT x.name FROM node_name, LATERAL (SELECT node_name.name) AS x"),
            |rows: Vec<reads::Named>| rows[0].name.clone()
        ),
    ]
}

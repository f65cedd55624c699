//! The crate on real replicated servers.
//!
//! What holds for every database lives in `every/` and is compiled once for each. Which node
//! answered is told by data: every node holds its own name.

// what holds for every database is compiled once for each
#![allow(clippy::duplicate_mod)]

#[path = "../support/mod.rs"]
mod support;

mod kit;
mod kit_health;
mod kit_log;
mod kit_pools;
mod makara;

#[cfg(feature = "mysql")]
mod left_behind_mariadb;
#[cfg(feature = "mysql")]
mod left_behind_mysql;
#[cfg(feature = "postgres")]
mod left_behind_postgres;
#[cfg(feature = "sqlite")]
mod left_behind_sqlite;
#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(all(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod multi;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "mysql")]
mod secret_mariadb;
#[cfg(feature = "postgres")]
mod secret_postgres;
#[cfg(feature = "sqlite")]
mod secret_sqlite;
#[cfg(feature = "sqlite")]
mod sqlite;

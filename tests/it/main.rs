//! The crate on real replicated servers.
//!
//! What holds for every database lives in `every/` and is compiled once for each. Which node
//! answered is told by data: every node holds its own name.

// what holds for every database is compiled once for each
#![allow(clippy::duplicate_mod)]

#[path = "../support/mod.rs"]
mod support;

mod kit;
mod makara;

#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(all(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod multi;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

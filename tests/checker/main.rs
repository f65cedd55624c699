//! The checker: clients whose requests are served by several threads of two processes, which share
//! nothing but the tokens that each request hands to the next, while replication is paused, slowed
//! and resumed, replicas are killed and restarted, and one of them takes over from the primary.
//!
//! Whatever happens, by the data alone: a client sees what it has written; neither within a block
//! nor from one read on a replica to the next in a request does anything go back in time; no
//! acknowledged write is lost, none is done twice.
//!
//! `CHECKER_SEED` draws the same requests and the same troubles again; when they meet is up to the
//! machine. `CHECKER_OPERATIONS` tells how many steps are done.

// what holds for both databases is compiled once for each
#![allow(clippy::duplicate_mod)]

#[path = "../support/mod.rs"]
mod support;

// a part of what those tests need that the rest is for
#[allow(dead_code, unused_imports, unused_macros)]
#[path = "../it/kit.rs"]
mod kit;
#[allow(dead_code)]
#[path = "../it/kit_pools.rs"]
mod kit_pools;

mod browser;
mod client;
mod mutations;
mod plan;
mod process;
mod report;
mod trouble;

mod mariadb;
mod postgres;

//! The examples as real processes, which real clients talk to.
//!
//! With the feature `postgres` they run on a cluster whose replication is paused; without, as they
//! come: on their own files.

#![forbid(unsafe_code)]

mod client;
mod process;
#[path = "../../../../tests/support/mod.rs"]
mod support;

#[cfg(feature = "postgres")]
mod browser;
#[cfg(not(feature = "postgres"))]
mod files;
#[cfg(feature = "postgres")]
mod gate;
#[cfg(feature = "postgres")]
mod jobs;
#[cfg(feature = "postgres")]
mod layer;
#[cfg(feature = "postgres")]
mod site;
#[cfg(feature = "postgres")]
mod web;
#[cfg(feature = "postgres")]
mod webdriver;

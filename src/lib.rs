//! A Diesel connection that is a whole replicated database.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![warn(missing_debug_implementations, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]
// without a backend nothing reads what backends are given
#![cfg_attr(
    not(any(feature = "postgres", feature = "mysql", feature = "sqlite")),
    allow(dead_code)
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod route;

mod manager;

mod connection;
mod distribute;

pub mod statement;

mod context;

mod decision;

mod cluster;

mod node;

mod backend;
mod error;
mod event;

pub use backend::ReplicatedConnection;
pub use cluster::{
    Candidate, Cluster, ClusterConfig, ClusterMode, ClusterStatus, ConfigError, ConnectError,
    Consistency, Fallback, ImplicitContext, Mode, NodeConfig, NodeState, NodeStatus, Role, Select,
    Strategy,
};
#[cfg(feature = "postgres")]
pub use connection::TransactionBuilder;
pub use connection::{Peeked, Route, RoutedConnection, RoutedTransactionManager};
pub use context::{Context, Entered};
pub use decision::{Decision, Reason};
pub use distribute::Distribute;
pub use error::RoutedError;
pub use manager::{RoutedConnectionManager, RoutedPool, RoutedPoolExt};

/// What the macros need; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use diesel::result::Error;
}

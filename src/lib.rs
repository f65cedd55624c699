//! A Diesel connection that is a whole replicated database.
//!
//! Swap the pool type and every Diesel query goes to the right server: writes to the primary, and
//! inside [`distributed`](RoutedConnection::distributed) reads to a replica; and a request that has
//! written something reads what it wrote.
//!
//! ```
//! # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
//! # use setup::*; let _keeps_the_database = pool();
//! # let config = config();
//! let manager = RoutedConnectionManager::new(config)?; // or from_env()
//! let pool: RoutedPool<SqliteConnection> = RoutedPool::new(manager)?;
//! let mut conn = pool.get()?;
//!
//! // as always: on the primary
//! let first = posts::table.first::<(i32, String)>(&mut conn)?;
//! // on a replica, both of the same one
//! let (count, titles) = conn.distributed(|conn| {
//!     let count = posts::table.count().get_result::<i64>(conn)?;
//!     let titles = posts::table.select(posts::title).load::<String>(conn)?;
//!     QueryResult::Ok((count, titles))
//! })?;
//! // now this request reads from the primary, until the replicas are sure to have it
//! diesel::insert_into(posts::table).values(posts::title.eq("second")).execute(&mut conn)?;
//! let again = conn.distributed(|conn| posts::table.count().get_result::<i64>(conn))?;
//! assert_eq!((count, again), (1, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use it
//!
//! * With one server: it costs little, and gains nothing.
//! * To spread writes, or data over several primaries: it knows one primary.
//! * With asynchronous connections: it covers Diesel's own, which block.
//! * To fail over: it finds the server that was promoted, and promotes none.
//!
//! What is [not there yet][missing] is in the README.
//!
//! # The path of a query
//!
//! 1. [`RoutedConnection`] turns the query into SQL, and [`statement`] scans it, once for each type
//!    of query: does it need the primary?
//! 2. The [`Context`] of the request says what was written that a replica may miss.
//! 3. From these, the block and the transaction follows a [`Decision`]: a role and a [`Reason`].
//! 4. The [`Cluster`] lends a connection to the primary, or to the replica that the [`Strategy`]
//!    chooses among those that are up and miss nothing that the block asks for.
//! 5. The statement runs there. A replica that is gone or refuses is not the caller's problem: the
//!    next one, or the primary, runs it.
//!
//! # Health and failover
//!
//! Each node of a cluster with replicas is probed every
//! [`check_interval`](ClusterConfig::check_interval), beside the statements and never by them.
//!
//! * A replica is asked while it is [`Up`](NodeState::Up): it answers, follows the primary, and its
//!   lag, measured by positions, is within [`max_lag`](ClusterConfig::max_lag). Where none is, the
//!   [`Fallback`] decides.
//! * The primary is the server that takes writes and follows nobody. A promotion is found by the
//!   next probe; statements that need the primary wait for it, up to
//!   [`checkout_timeout`](ClusterConfig::checkout_timeout), and then fail with a [`RoutedError`]. Of
//!   two such servers the one wins that has all that the other has; if neither has, nothing is
//!   written.
//! * A read in no transaction that has handed out no row goes on elsewhere when its replica dies; a
//!   block that has read before goes on at the primary, where it sees nothing older. A write runs
//!   again only if its server has refused it because another one is the primary now.
//!
//! [`Cluster::status`] shows the nodes, [`Cluster::ready`] answers a load balancer, an [`Observer`]
//! is told what happens, and [`drain`](Cluster::drain), [`set_replicas`](Cluster::set_replicas) and
//! [`set_mode`](Cluster::set_mode) change things at run time.
//!
//! # Where a statement goes
//!
//! The first line that applies wins:
//!
//! | condition | goes to | [`Reason`] |
//! |---|---|---|
//! | inside a transaction | its node | [`Transaction`](Reason::Transaction), [`ReadOnlyTransaction`](Reason::ReadOnlyTransaction) |
//! | the statement needs the primary, or the handle holds session state | primary | [`Write`](Reason::Write), [`Locking`](Reason::Locking), [`Function`](Reason::Function), [`SessionState`](Reason::SessionState), [`Unknown`](Reason::Unknown), [`ReadOnlyRefused`](Reason::ReadOnlyRefused) |
//! | inside [`primary`](RoutedConnection::primary), or by [`Consistency`] | primary | [`Forced`](Reason::Forced) |
//! | not in a block, in [`Mode::Primary`] | primary | [`PrimaryMode`](Reason::PrimaryMode) |
//! | this block has used the primary | primary | [`Stuck`](Reason::Stuck) |
//! | this block reads from a replica, and misses nothing there | that replica | [`Pinned`](Reason::Pinned) |
//! | ... but may be behind the request, or it is gone, or too late for the block | primary | [`NotCaughtUp`](Reason::NotCaughtUp), [`NoReplica`](Reason::NoReplica), [`Lagging`](Reason::Lagging) |
//! | a replica is up, and misses nothing | a replica | [`Distributed`](Reason::Distributed) |
//! | replicas are up, but may be behind the request | primary | [`NotCaughtUp`](Reason::NotCaughtUp) |
//! | no replica is up, or none as fresh as the block asks | by [`Fallback`] | [`NoReplica`](Reason::NoReplica), [`Lagging`](Reason::Lagging), [`Stale`](Reason::Stale) |
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it is for |
//! |---|---|
//! | `postgres` | [`PgConnection`](https://docs.rs/diesel/2.3/diesel/pg/struct.PgConnection.html): PostgreSQL |
//! | `mysql` | [`MysqlConnection`](https://docs.rs/diesel/2.3/diesel/mysql/struct.MysqlConnection.html): MySQL and MariaDB |
//! | `sqlite` | [`SqliteConnection`](https://docs.rs/diesel/2.3/diesel/sqlite/struct.SqliteConnection.html): SQLite |
//! | `signed` | [`TokenKeys`]: tokens that clients cannot write themselves; [`TokenCarrier`]: their cookies, in any web framework |
//! | `tokio` | [`route::spawn_blocking`]: blocking tasks of a request |
//! | `tower` | [`RoutedLayer`]: one context for each HTTP request of axum and others; with `signed` |
//! | `memcached` | [`SharedStatus`]: many processes ask the servers for load and lag as one |
//! | `serde` | `Serialize` for [`ClusterStatus`] and what is in it |
//!
//! The first three turn on Diesel's feature of the same name. For Diesel 2.3 and Rust 1.86.
//!
//! # In tests
//!
//! * [`last_route`](RoutedConnection::last_route) and [`explain`](RoutedConnection::explain) tell
//!   where a query goes without a server that lags.
//! * Diesel's `TestCustomizer` fits a [`RoutedPool`]: a test transaction keeps everything on the
//!   primary, over check-outs too.
//! * On SQLite the replica may be the same file as the primary.
//! * [`ImplicitContext::Forbid`] finds requests that forgot their [`Context`].
//!
//! [missing]: https://github.com/diesel-routed/diesel-routed#not-there-yet
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
#[cfg(feature = "tower")]
mod tower;

#[cfg(feature = "signed")]
mod carrier;

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
mod position;
mod report;

#[cfg(any(test, doctest))]
mod readme;

#[cfg(feature = "tower")]
pub use self::tower::{RoutedBody, RoutedFuture, RoutedLayer, RoutedService};
pub use backend::ReplicatedConnection;
#[cfg(feature = "signed")]
pub use carrier::TokenCarrier;
#[cfg(feature = "memcached")]
pub use cluster::SharedStatus;
pub use cluster::{
    Affinity, Candidate, Cluster, ClusterConfig, ClusterMode, ClusterStatus, ConfigError,
    ConnectError, Consistency, Fallback, ImplicitContext, Mode, MonotonicReads, NodeConfig,
    NodeStatus, Role, Select, Strategy,
};
#[cfg(feature = "postgres")]
pub use connection::TransactionBuilder;
pub use connection::{Peeked, Route, RoutedConnection, RoutedTransactionManager};
#[cfg(feature = "signed")]
pub use context::TokenKeys;
pub use context::{Context, Entered, Scope};
pub use decision::{Decision, Reason};
pub use distribute::Distribute;
pub use error::RoutedError;
pub use event::{Event, Observer};
pub use manager::{RoutedConnectionManager, RoutedPool, RoutedPoolExt};
pub use node::NodeState;
pub use position::{
    Coverage, GtidList, GtidSet, GtidState, ParsePositionError, Position, WalPosition,
};
pub use report::{Access, ErrorClass, Following, Identity, Report, ReportedLag};

/// What the macros need; no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use diesel::result::Error;

    pub use crate::context::rewritten_token;
}

//! The choices a cluster is configured with.

use std::fmt;
use std::time::Duration;

/// What a node is in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Role {
    /// The node that takes writes.
    Primary,
    /// A node that follows the primary and serves reads.
    Replica,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Primary => "primary",
            Role::Replica => "replica",
        })
    }
}

/// Where statements outside of any block go.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// let manager = RoutedConnectionManager::new(config().default_mode(Mode::Distributed))?;
/// # let _pool = pool();
/// let mut conn: RoutedConnection<SqliteConnection> = manager.cluster().connection();
/// posts::table.first::<(i32, String)>(&mut conn)?;
/// assert_eq!(conn.last_route().unwrap().role, Role::Replica);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// To the primary; only `distributed` blocks read from replicas. The default, because it
    /// changes nothing in an application until it asks.
    #[default]
    Primary,
    /// Reads go to replicas without being asked, as if every handle were one long block.
    Distributed,
}

/// What the cluster as a whole may do, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ClusterMode {
    /// Route as configured. The default.
    #[default]
    Normal,
    /// Send everything to the primary: the way back to a single server without a new build.
    PrimaryOnly,
    /// Refuse writes, for maintenance of the primary.
    ReadOnly,
}

/// How fresh a replica must be to serve a block.
///
/// Of one block by [`distributed_with`](crate::RoutedConnection::distributed_with), of all others
/// by [`ClusterConfig::consistency`](crate::ClusterConfig::consistency).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Consistency {
    /// A request reads its own earlier writes. The default.
    #[default]
    Session,
    /// Any healthy replica, even one that has not yet seen this request's writes.
    Eventual,
    /// Like [`Session`](Consistency::Session), and no older than this. The age counts from the last
    /// time that the primary was asked, and goes on counting when the primary is gone. For less than
    /// 2.2 x `check_interval` and a probe the nodes are asked when a block finds no replica that is
    /// fresh enough: it waits for the answers, once for all who wait.
    MaxLag(Duration),
    /// The primary.
    Strong,
    /// The primary while it answers, a replica only when it does not.
    PrimaryPreferred,
}

/// Whether the reads of a block stay on one replica.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// // many small reads in each block, none of which builds on another
/// let config = config().affinity(Affinity::Query);
/// # let manager = RoutedConnectionManager::<SqliteConnection>::new(config)?;
/// # let _pool = pool();
/// # let mut conn = manager.cluster().connection();
/// # conn.distributed(|conn| posts::table.first::<(i32, String)>(conn))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Affinity {
    /// All reads of a block go to one replica, and so do the blocks that follow in the same
    /// context, so that nothing goes backwards in time from one read to the next. If that replica
    /// is gone or late the next block goes to one that is known to be no older, or else to the
    /// primary. The default.
    #[default]
    Block,
    /// Each read goes to a replica of its own choice. None misses what the context has written;
    /// but of what others write a read may show less than the one before it.
    Query,
}

/// For how long no read shows less of what others write than one before it.
///
/// What a context has written itself is never missed, whatever is set here.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// let config = config().monotonic_reads(MonotonicReads::AcrossRequests);
/// # let manager = RoutedConnectionManager::<SqliteConnection>::new(config)?;
/// # let _pool = pool();
/// # let mut conn = manager.cluster().connection();
/// # conn.distributed(|conn| posts::table.first::<(i32, String)>(conn))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MonotonicReads {
    /// From block to block of one [`Context`](crate::Context), as long as they read from replicas:
    /// as [`Affinity::Block`] says. Costs nothing. The default.
    #[default]
    WithinContext,
    /// Also what a block has read from the primary, and from request to request, as far as the
    /// client brings the token along: a list does not lose an entry on reload. At the end of each
    /// block that has read the node is asked how far it has come, one round trip. Needs
    /// [`Affinity::Block`].
    ///
    /// Under synchronous replication a replica may show a commit before the primary does; a read
    /// that goes from there to the primary may miss it.
    AcrossRequests,
}

/// What happens to a read when no replica may serve it.
///
/// Falling back marks nothing: as soon as a replica answers, it is used again.
///
/// ```
/// use diesel_routed::{ClusterConfig, Fallback};
///
/// let config = ClusterConfig::new("postgres://db1/app")
///     .replica("postgres://db2/app")
///     .fallback(Fallback::Primary { max_concurrent: Some(4) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The primary serves it. The default, with `max_concurrent` unset.
    Primary {
        /// How many such reads the primary serves at once; 0: none. Others wait for up to
        /// `checkout_timeout`, then fail, so that losing the replicas does not overload the
        /// primary. `None` is 3/4 of the primary's pool: writes keep a quarter.
        max_concurrent: Option<u32>,
    },
    /// The replica that is least late serves it, of those that answer, but never to a request that
    /// has written something that it may miss. If none answers the primary serves it, within the
    /// default limit.
    Stale,
    /// It fails.
    Error,
}

impl Default for Fallback {
    fn default() -> Self {
        Fallback::Primary {
            max_concurrent: None,
        }
    }
}

/// What a handle does when the application entered no context.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// let config = config().implicit_context(ImplicitContext::Forbid);
/// let manager = RoutedConnectionManager::<SqliteConnection>::new(config)?;
/// # let _pool = pool();
/// let mut conn = manager.cluster().connection();
/// let mut read = || conn.distributed(|conn| posts::table.first::<(i32, String)>(conn));
/// assert_eq!(RoutedError::downcast(&read().unwrap_err()), Some(RoutedError::NoContext));
/// Context::new().run(read)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ImplicitContext {
    /// The handle remembers its own writes until it is given back. The default.
    #[default]
    Handle,
    /// A distributed read without a context is an error, which finds forgotten contexts in tests.
    Forbid,
}

//! What exists: the nodes of one database, and which of them lends a connection.

mod config;
mod connect;
mod select;
mod snapshot;
mod status;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use self::config::ValidConfig;
#[cfg(feature = "postgres")]
pub(crate) use self::config::with_option;
pub use self::config::{
    ClusterConfig, ClusterMode, ConfigError, Consistency, Fallback, ImplicitContext, Mode,
    NodeConfig, Role,
};
pub(crate) use self::config::{NodeSettings, Settings};
pub use self::connect::ConnectError;
pub(crate) use self::connect::shared;
pub use self::select::{Candidate, Select, Strategy};
pub use self::status::{ClusterStatus, NodeState, NodeStatus};
use crate::backend::ReplicatedConnection;
use crate::context::ClusterId;
use crate::error::RoutedError;
use crate::event;
use crate::node::{Bell, Denial, Hooks, Lease, Node, Permit, Permits, Timing};
use crate::statement::{Dialect, Learned, Rules, UnknownFunctions};

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// The nodes of one replicated database.
///
/// Get it from [`RoutedConnectionManager::cluster`](crate::RoutedConnectionManager::cluster).
/// A clone is the same cluster; its connections close when the last clone and the last handle
/// are gone.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let mut conn = pool().get()?;
/// let cluster = conn.cluster().clone();
/// cluster.set_mode(ClusterMode::PrimaryOnly);
/// assert_eq!(cluster.mode(), ClusterMode::PrimaryOnly);
/// println!("{}", cluster.status()); // a table, a node a line
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cluster<C: ReplicatedConnection>(Arc<Inner<C>>);

struct Inner<C: ReplicatedConnection> {
    id: ClusterId,
    config: ValidConfig,
    primary: Arc<Node<C>>,
    replicas: Vec<Arc<Node<C>>>,
    selector: Arc<dyn Select>,
    bell: Arc<Bell>,
    /// Reads that may be on the primary in place of replicas at once.
    fallback: Arc<Permits>,
    hooks: Arc<Hooks<C>>,
    rules: Rules,
    learned: Learned,
    mode: AtomicU8,
    test_transactions: Arc<AtomicUsize>,
}

/// Whether a caller waits for a connection that another one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    UntilCheckoutTimeout,
}

/// What came of choosing a replica.
enum Pick<'a, C: ReplicatedConnection> {
    Taken(&'a Arc<Node<C>>, Permit),
    /// All that may be asked lend as much as they have.
    Full,
    /// The strategy wants none of them.
    Refused,
}

/// Why no replica lent a connection: each with its reason.
#[derive(Debug)]
pub(crate) struct NoReplica(pub(crate) String);

impl<C: ReplicatedConnection> Cluster<C> {
    /// Builds the cluster; does no I/O.
    pub(crate) fn new(config: ClusterConfig) -> Result<Self, ConfigError> {
        let config = config.validated(C::DIALECT)?;
        event::started(&config.to_string());
        let settings = &config.settings;
        let (bell, hooks) = (Arc::new(Bell::default()), Arc::new(Hooks::default()));
        let timing = Timing::new(settings);
        let node = |place, node: &NodeSettings, role| {
            let (hooks, bell) = (Arc::clone(&hooks), Arc::clone(&bell));
            Node::new(place, role, node.clone(), timing, hooks, bell)
        };
        let replicas = (1..)
            .zip(&config.replicas)
            .map(|(place, replica)| node(place, replica, Role::Replica));
        Ok(Self(Arc::new(Inner {
            id: ClusterId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            primary: node(0, &config.primary, Role::Primary),
            replicas: replicas.collect(),
            selector: settings.strategy.selector(),
            fallback: Permits::new(config.fallback_limit().unwrap_or(0), Arc::clone(&bell)),
            rules: rules(settings, C::DIALECT),
            learned: Learned::default(),
            mode: AtomicU8::new(settings.mode as u8),
            test_transactions: Arc::default(),
            bell,
            hooks,
            config,
        })))
    }

    pub(crate) fn id(&self) -> ClusterId {
        self.0.id
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.config.settings
    }

    pub(crate) fn hooks(&self) -> &Hooks<C> {
        &self.0.hooks
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.0.rules
    }

    pub(crate) fn learned(&self) -> &Learned {
        &self.0.learned
    }

    pub(crate) fn test_transactions(&self) -> &Arc<AtomicUsize> {
        &self.0.test_transactions
    }

    pub(crate) fn sticky_for(&self) -> Duration {
        self.settings().sticky_for
    }

    pub(crate) fn has_replicas(&self) -> bool {
        !self.0.replicas.is_empty()
    }

    /// The node at a place: 0 is the primary.
    pub(crate) fn node(&self, place: usize) -> &Arc<Node<C>> {
        match place.checked_sub(1) {
            None => &self.0.primary,
            Some(replica) => &self.0.replicas[replica],
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node<C>>> {
        std::iter::once(&self.0.primary).chain(&self.0.replicas)
    }

    /// Tells whether any replica may be asked.
    pub(crate) fn any_replica_admits(&self, now: Instant) -> bool {
        self.0.replicas.iter().any(|node| node.admits(now))
    }

    /// Changes at run time which statements are served, for maintenance and roll-back.
    ///
    /// It holds from the next statement on, inside blocks too, and in this process alone. A
    /// transaction that has begun stays on its node.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.cluster().set_mode(ClusterMode::ReadOnly);
    /// let error = diesel::delete(posts::table).execute(&mut conn).unwrap_err();
    /// assert_eq!(RoutedError::downcast(&error), Some(RoutedError::ReadOnlyMode));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_mode(&self, mode: ClusterMode) {
        self.0.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Returns the mode set by [`set_mode`](Self::set_mode) or `ROUTED_MODE`.
    pub fn mode(&self) -> ClusterMode {
        let mode = self.0.mode.load(Ordering::Relaxed);
        [ClusterMode::PrimaryOnly, ClusterMode::ReadOnly]
            .into_iter()
            .find(|candidate| *candidate as u8 == mode)
            .unwrap_or_default()
    }

    /// Lends a connection to the primary, after waiting up to `checkout_timeout`.
    pub(crate) fn lend_primary(&self) -> Result<Lease<C>, RoutedError> {
        let node = &self.0.primary;
        let deadline = self.deadline();
        let name = || node.name().to_string();
        let Some(permit) = node.permits().acquire(deadline) else {
            return Err(RoutedError::PoolTimeout { node: name() });
        };
        node.lend(permit, deadline).map_err(|denial| match denial {
            Denial::NotAnswering(cause) => RoutedError::NoPrimary {
                node: name(),
                cause,
            },
            Denial::Busy => RoutedError::PoolTimeout { node: name() },
        })
    }

    /// Admits one more read to the primary in place of a replica.
    pub(crate) fn admit_fallback(&self) -> Result<Option<Permit>, RoutedError> {
        if !self.has_replicas() {
            return Ok(None);
        }
        match self.0.fallback.acquire(self.deadline()) {
            Some(permit) => Ok(Some(permit)),
            None => Err(RoutedError::FallbackLimit {
                node: self.0.primary.name().to_string(),
            }),
        }
    }

    /// Lends a connection to a replica.
    ///
    /// One that can't be reached is skipped for `quarantine`, a full one is passed over; when all
    /// are full the first free connection is waited for. `only` narrows it to one node, for a
    /// block that has read from it.
    pub(crate) fn lend_replica(
        &self,
        only: Option<usize>,
        wait: Wait,
    ) -> Result<Lease<C>, NoReplica> {
        let deadline = self.deadline();
        let mut failed = vec![];
        loop {
            let now = Instant::now();
            let mut open: Vec<&Arc<Node<C>>> = self.0.replicas.iter().collect();
            open.retain(|node| {
                let wanted = only.is_none_or(|only| only == node.place());
                wanted && node.admits(now) && !failed.contains(&node.place())
            });
            if open.is_empty() {
                return Err(self.no_replica());
            }
            let (node, permit) = match self.pick(&open) {
                Pick::Taken(node, permit) => (node, permit),
                Pick::Refused => return Err(NoReplica("the strategy chose none".to_owned())),
                Pick::Full
                    if wait == Wait::UntilCheckoutTimeout && self.one_frees(&open, deadline) =>
                {
                    continue;
                }
                Pick::Full => {
                    let in_use = "all connections to replicas are in use".to_owned();
                    return Err(NoReplica(in_use));
                }
            };
            match node.lend(permit, deadline) {
                Ok(lease) => return Ok(lease),
                Err(_) => failed.push(node.place()),
            }
        }
    }

    /// Takes a permit of the node that the strategy chooses among those with a free one.
    fn pick<'a>(&self, open: &[&'a Arc<Node<C>>]) -> Pick<'a, C> {
        let mut left = open.to_vec();
        while !left.is_empty() {
            let candidates: Vec<_> = left.iter().map(|node| node.candidate()).collect();
            let chosen = self.0.selector.select(&candidates);
            let Some((place, node)) = chosen.and_then(|at| Some((at, *left.get(at)?))) else {
                return Pick::Refused;
            };
            if let Some(permit) = node.permits().try_acquire() {
                return Pick::Taken(node, permit);
            }
            left.remove(place);
        }
        Pick::Full
    }

    /// Waits until one of these nodes has a connection free; which one serves is asked anew then.
    fn one_frees(&self, nodes: &[&Arc<Node<C>>], deadline: Instant) -> bool {
        let free = || nodes.iter().any(|node| node.permits().any_free());
        self.0
            .bell
            .wait_for(deadline, || free().then_some(()))
            .is_some()
    }

    /// Says why no replica may be asked: each with its last error.
    pub(crate) fn no_replica(&self) -> NoReplica {
        let causes: Vec<String> = self
            .0
            .replicas
            .iter()
            .map(|node| match node.last_error() {
                Some(error) => format!("{}: {error}", node.name()),
                None => format!("{}: drained", node.name()),
            })
            .collect();
        NoReplica(match causes.is_empty() {
            true => "none is configured".to_owned(),
            false => causes.join("; "),
        })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.settings().checkout_timeout
    }
}

/// The rules by which the scanner knows the user's functions.
fn rules(settings: &Settings, dialect: Dialect) -> Rules {
    Rules::new(dialect)
        .primary_functions(&settings.primary_functions)
        .replica_functions(&settings.replica_functions)
        .unknown_functions(match settings.unknown_functions {
            Role::Primary => UnknownFunctions::Primary,
            Role::Replica => UnknownFunctions::Replica,
        })
}

impl<C: ReplicatedConnection> Clone for Cluster<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C: ReplicatedConnection> fmt::Debug for Cluster<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

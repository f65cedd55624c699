//! What exists: the nodes of one database, and which of them lends a connection.

mod config;
mod connect;
mod facts;
mod learn;
mod lend;
mod look;
mod members;
mod monitor;
mod operate;
mod roles;
mod select;
#[cfg(feature = "serde")]
mod serial;
#[cfg(feature = "memcached")]
mod shared_status;
mod snapshot;
mod status;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

pub use self::config::{
    Affinity, ClusterConfig, ClusterMode, ConfigError, Consistency, Fallback, ImplicitContext,
    Mode, MonotonicReads, NodeConfig, Role,
};
pub(crate) use self::config::{NodeSettings, Settings};
use self::config::{RolesFrom, ValidConfig};
#[cfg(feature = "postgres")]
pub(crate) use self::config::{with_option, with_parameter};
pub use self::connect::ConnectError;
pub(crate) use self::connect::shared;
use self::learn::Lore;
pub(crate) use self::lend::{NoReplica, Terms, Wait, Wanted};
pub(crate) use self::members::Members;
use self::members::Seat;
pub use self::select::{Candidate, Select, Strategy};
#[cfg(feature = "memcached")]
pub use self::shared_status::SharedStatus;
pub use self::status::{ClusterStatus, NodeStatus};
use crate::backend::ReplicatedConnection;
use crate::context::{ClusterId, ClusterTag, Ended, Place};
use crate::event::Events;
use crate::node::{Acquaintance, Common, Era, Hooks, Lease, News, Node, Permits, Timing};
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
    place: Place,
    config: ValidConfig,
    /// Read for each statement, replaced when a node or the primary changes.
    members: RwLock<Arc<Members<C>>>,
    lore: Mutex<Lore>,
    selector: Arc<dyn Select>,
    common: Common<C>,
    /// Reads that may be on the primary in place of replicas at once.
    fallback: Arc<Permits>,
    rules: Rules,
    learned: Learned,
    mode: AtomicU8,
    test_transactions: Arc<AtomicUsize>,
    /// For the monitor, which takes it when it starts.
    inbox: Mutex<Option<Receiver<News>>>,
    /// The era of the primary's history, as the monitor has it.
    era: AtomicU64,
    /// When the nodes were first looked at.
    started: Mutex<Option<Instant>>,
    /// Every node has answered or failed once.
    looked: AtomicBool,
    /// When somebody last had the nodes looked at, where that is not done regularly.
    refreshed: Mutex<Option<Instant>>,
    /// Held while the replicas are replaced.
    changing: Mutex<()>,
    next_place: AtomicUsize,
}

impl<C: ReplicatedConnection> Cluster<C> {
    /// Builds the cluster; does no I/O.
    pub(crate) fn new(config: ClusterConfig) -> Result<Self, ConfigError> {
        let config = config.validated(C::DIALECT)?;
        let settings = &config.settings;
        let events = Events::new(settings.observer.clone());
        events.started(&config.to_string());
        let (news, inbox) = mpsc::channel();
        let common = Common {
            timing: Timing::new(settings),
            health: settings.health(),
            hooks: Arc::default(),
            bell: Arc::default(),
            events,
            news,
        };
        let primary = Node::new(0, Role::Primary, config.primary.clone(), &common);
        let fallback = config.fallback_limit(primary.settings()).unwrap_or(0);
        let replicas = (1..)
            .zip(&config.replicas)
            .map(|(place, replica)| Node::new(place, Role::Replica, replica.clone(), &common));
        let nodes: Vec<_> = std::iter::once(primary).chain(replicas).collect();
        let (tag, sticky_for) = (ClusterTag::of(&settings.name), settings.sticky_for);
        let place = |replicas: Weak<Inner<C>>| Place {
            id: ClusterId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            tag,
            sticky_for,
            replicas,
        };
        let (selector, rules) = (settings.strategy.selector(), rules(settings, C::DIALECT));
        let mode = AtomicU8::new(settings.mode as u8);
        Ok(Self(Arc::new_cyclic(|weak| Inner {
            place: place(weak.clone()),
            next_place: AtomicUsize::new(nodes.len()),
            members: RwLock::new(Arc::new(Members::new(nodes, Seat::Taken(0)))),
            lore: Mutex::default(),
            selector,
            fallback: Permits::new(fallback, Arc::clone(&common.bell)),
            rules,
            learned: Learned::default(),
            mode,
            test_transactions: Arc::default(),
            era: AtomicU64::new(Era::default().number()),
            started: Mutex::new(None),
            looked: AtomicBool::new(false),
            inbox: Mutex::new(Some(inbox)),
            refreshed: Mutex::new(None),
            changing: Mutex::new(()),
            common,
            config,
        })))
    }

    /// The cluster, as contexts know it.
    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.config.settings
    }

    pub(crate) fn hooks(&self) -> &Hooks<C> {
        &self.0.common.hooks
    }

    pub(crate) fn events(&self) -> &Events {
        &self.0.common.events
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
        self.0.members().has_replicas()
    }

    /// The nodes as they are now.
    pub(crate) fn members(&self) -> Arc<Members<C>> {
        self.0.members()
    }

    /// The era in which a write on this connection can be waited for, if it runs on the server whose
    /// history is known.
    pub(crate) fn era_of(&self, lease: &mut Lease<C>) -> Option<Era> {
        let era = self.0.era();
        // asked afterwards: a node is retired before another one's era begins
        let known = lease.acquaintance == Acquaintance::Known && !lease.is_retired();
        (era != Era::default() && known).then_some(era)
    }

    /// The era of the primary's history.
    pub(crate) fn era(&self) -> Era {
        self.0.era()
    }

    /// An instant in the primary's history; `None` if there is none.
    pub(crate) fn instant(&self, at: Instant, until: Instant) -> Option<Ended> {
        let era = self.era();
        (era != Era::default()).then(|| Ended::new(at, era, until))
    }

    /// The name of the primary, or of what was meant to be it.
    pub(crate) fn primary_name(&self) -> String {
        let members = self.members();
        let node = members.primary().or(members.nodes.first());
        node.map_or_else(String::new, |node| node.name().to_string())
    }
}

#[cfg(all(test, feature = "sqlite"))]
impl<C: ReplicatedConnection> Cluster<C> {
    /// Runs `f` while nobody gets a lock that handles share.
    pub(crate) fn with_locks_held<R>(&self, f: impl FnOnce() -> R) -> R {
        let inner = &self.0;
        let members = inner.members();
        let _nodes: Vec<_> = members.nodes.iter().map(|node| node.known()).collect();
        let _members = inner.members.write();
        let _others = (
            inner.lore.lock(),
            inner.started.lock(),
            inner.refreshed.lock(),
        );
        let _inbox = inner.inbox.lock();
        inner.learned.with_locks_held(f)
    }
}

impl<C: ReplicatedConnection> Inner<C> {
    fn members(&self) -> Arc<Members<C>> {
        Arc::clone(&self.members.read())
    }

    fn era(&self) -> Era {
        Era::numbered(self.era.load(Ordering::Acquire))
    }

    fn publish(&self, members: Members<C>) {
        let before = std::mem::replace(&mut *self.members.write(), Arc::new(members));
        // the last of a removed node closes its connections: not under the lock
        drop(before);
        self.common.bell.ring();
    }
}

impl<C: ReplicatedConnection> Drop for Inner<C> {
    fn drop(&mut self) {
        // the probers keep the channel open
        let _ = self.common.news.send(News::Stop);
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

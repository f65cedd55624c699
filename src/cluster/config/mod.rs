//! How a cluster is described: by a builder or by the environment, checked as a whole.

mod decided;
mod env;
mod error;
mod node;
mod secret;
mod settings;
#[cfg(test)]
mod tests;
mod types;
mod url;
mod validate;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::decided::NodeSettings;
pub use self::error::ConfigError;
pub use self::node::NodeConfig;
pub(crate) use self::settings::{RolesFrom, Settings};
pub use self::types::{
    Affinity, ClusterMode, Consistency, Fallback, ImplicitContext, Mode, MonotonicReads, Role,
};
#[cfg(feature = "postgres")]
pub(crate) use self::url::postgres::{with_option, with_parameter};
pub(crate) use self::validate::{PROBE_TIMEOUT, ValidConfig};
use super::select::Strategy;
#[cfg(feature = "memcached")]
use super::shared_status::SharedStatus;
use crate::event::Observer;

/// The description of a cluster: its nodes and how they are used.
///
/// Only the primary is required. Every other setting has a default, which its setter names. The
/// setters check nothing: the settings are checked together when a manager is made of them, and
/// what is wrong is then a [`ConfigError`].
///
/// `Debug` shows no connection string.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use diesel_routed::{ClusterConfig, NodeConfig, Strategy};
///
/// let config = ClusterConfig::new("postgres://app:secret@db1/app")
///     .replica("postgres://app:secret@db2/app")
///     .replica(NodeConfig::new("postgres://app:secret@db3/app").name("big").weight(2))
///     .strategy(Strategy::RoundRobin)
///     .max_lag(Duration::from_secs(2));
///
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a configuration does nothing until a manager is made of it"]
pub struct ClusterConfig {
    primary: NodeConfig,
    replicas: Vec<NodeConfig>,
    settings: Settings,
}

impl ClusterConfig {
    /// Describes a cluster that has only this primary, with every setting at its default.
    pub fn new(primary: impl Into<NodeConfig>) -> Self {
        ClusterConfig {
            primary: primary.into(),
            replicas: Vec::new(),
            settings: Settings::default(),
        }
    }

    /// Reads the description from the environment and from a `.env` file.
    ///
    /// Variables of the process win over those of `.env`, which is looked for in the working
    /// directory and above it, may be missing, and is not copied into the process's environment.
    /// An empty value counts as unset.
    ///
    /// `DATABASE_URL` is the primary. `DATABASE_REPLICA_URLS` lists replicas separated by white
    /// space (quote it in `.env`). An entry that has a scheme (`file:` and `sqlite:` are schemes)
    /// or is in keyword form (`host=a dbname=b`) may itself contain blanks: it ends at the line's
    /// end or where the next word starts with a scheme. A plain SQLite path ends at the next
    /// blank. Each connection string may end in the options that [`NodeConfig::new`] describes.
    ///
    /// The settings are named as the setters: `ROUTED_NAME`, `ROUTED_MAX_LAG` and so on. Durations
    /// have a unit (`500ms`, `1s`, `2m`, `1h`). Choices are written in lower case with
    /// underscores: `ROUTED_STRATEGY=round_robin`, `ROUTED_CONSISTENCY=max_lag=2s`,
    /// `ROUTED_FALLBACK=primary=8`, `ROUTED_MAX_LAG=none`.
    ///
    /// # Errors
    ///
    /// If `DATABASE_URL` is missing, a value cannot be understood, `.env` is broken, or there is a
    /// `ROUTED_` variable that is no setting.
    ///
    /// ```no_run
    /// let config = diesel_routed::ClusterConfig::from_env()?.pool_size(16);
    /// # Ok::<(), diesel_routed::ConfigError>(())
    /// ```
    pub fn from_env() -> Result<Self, ConfigError> {
        env::from_env()
    }

    /// Adds a replica. A cluster without any sends everything to its primary.
    pub fn replica(mut self, replica: impl Into<NodeConfig>) -> Self {
        self.replicas.push(replica.into());
        self
    }

    /// Names the cluster in logs and status, for applications that have several.
    ///
    /// Defaults to `default`.
    pub fn name(mut self, name: &str) -> Self {
        self.settings.name = name.to_owned();
        self
    }

    /// Restricts what the cluster does from the start, until it is changed at run time.
    ///
    /// Defaults to [`ClusterMode::Normal`].
    pub fn mode(mut self, mode: ClusterMode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Sets where statements outside of any block go.
    ///
    /// Defaults to [`Mode::Primary`].
    pub fn default_mode(mut self, mode: Mode) -> Self {
        self.settings.default_mode = mode;
        self
    }

    /// Sets how one of several usable replicas is chosen.
    ///
    /// Defaults to [`Strategy::TwoChoices`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.settings.strategy = strategy;
        self
    }

    /// Sets how fresh a replica must be for blocks that do not say so themselves.
    ///
    /// Defaults to [`Consistency::Session`].
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.settings.consistency = consistency;
        self
    }

    /// Sets whether the reads of a block, and of the blocks of one context, stay on one replica.
    ///
    /// Defaults to [`Affinity::Block`].
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.settings.affinity = affinity;
        self
    }

    /// Sets for how long no read shows less than one before it.
    ///
    /// Defaults to [`MonotonicReads::WithinContext`].
    pub fn monotonic_reads(mut self, monotonic: MonotonicReads) -> Self {
        self.settings.monotonic_reads = monotonic;
        self
    }

    /// Sets what happens to reads when no replica may serve them.
    ///
    /// Defaults to [`Fallback::Primary`] with 3/4 of the primary's pool.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.settings.fallback = fallback;
        self
    }

    /// Sets what a handle does when the application entered no context.
    ///
    /// Defaults to [`ImplicitContext::Handle`].
    pub fn implicit_context(mut self, implicit: ImplicitContext) -> Self {
        self.settings.implicit_context = implicit;
        self
    }

    /// Sets the lag beyond which a replica is left out; `None` tolerates any.
    ///
    /// Less than a replica's usual lag sends its reads to the primary. More needs a longer
    /// [`sticky_for`](Self::sticky_for). A replica that was left out comes back at half of it, and
    /// less of the reads go to one that is near it. At least 1.5 x `check_interval`, which is how
    /// old an answer gets. Defaults to 5 s.
    pub fn max_lag(mut self, max_lag: impl Into<Option<Duration>>) -> Self {
        self.settings.max_lag = max_lag.into();
        self
    }

    /// Sets how long after a write its request reads from the primary, where nothing tells whether a
    /// replica has the write.
    ///
    /// It must outlast the lag of any replica still in rotation: at least `max_lag` + 2.2 x
    /// `check_interval` + 1 s (a probe) + 2.6 s (margin). Longer costs the primary some reads.
    /// Defaults to 12 s.
    pub fn sticky_for(mut self, sticky_for: Duration) -> Self {
        self.settings.sticky_for = sticky_for;
        self
    }

    /// Sets how long a replica that died is left alone before requests dial it again, where no
    /// monitor does it for them: with a [`check_interval`](Self::check_interval) of 0.
    ///
    /// It doubles with each failure, to 30 s or what is set here if that is more, give or take
    /// half. Defaults to 1 s.
    pub fn quarantine(mut self, quarantine: Duration) -> Self {
        self.settings.quarantine = quarantine;
        self
    }

    /// Sets how often each node is probed for health, role and lag.
    ///
    /// By a thread and a connection of its own for each node, give or take a tenth; every 250 ms
    /// for 30 s after something has happened. Longer means slower failover and coarser lag. 0: no
    /// regular probes; whoever needs a node when the last look is older than
    /// [`check_ttl`](Self::check_ttl) has them looked at, and goes by what is known meanwhile.
    /// A cluster without replicas is not probed. Defaults to 1 s.
    pub fn check_interval(mut self, interval: Duration) -> Self {
        self.settings.check_interval = interval;
        self
    }

    /// Sets how long a look at the nodes counts if they are not probed regularly.
    ///
    /// Of use only with a [`check_interval`](Self::check_interval) of 0. Defaults to 5 s.
    pub fn check_ttl(mut self, ttl: Duration) -> Self {
        self.settings.check_ttl = ttl;
        self
    }

    /// Sets how long a replica that is up again takes to get its full share of reads.
    ///
    /// Its caches are cold, and it would be late again if all came at once. Defaults to 20 s.
    pub fn slow_start(mut self, time: Duration) -> Self {
        self.settings.slow_start = time;
        self
    }

    /// Sets how long a read waits for a replica to catch up with what its context has written,
    /// before it goes to the primary.
    ///
    /// The nodes are asked again and again meanwhile, once for all who wait. Of use where replicas
    /// are behind by milliseconds and the primary must be spared; under asynchronous commits they
    /// are behind by 0.2 to 0.6 s. Within `checkout_timeout`. Defaults to 0: no waiting.
    pub fn catch_up_wait(mut self, wait: Duration) -> Self {
        self.settings.catch_up_wait = wait;
        self
    }

    /// Sets how long opening a connection may take.
    ///
    /// PostgreSQL counts whole seconds, so this is rounded up there; a `connect_timeout` in the
    /// connection string wins. The first writes wait so long, too, for nodes that do not answer, as
    /// who is primary is not known before, but a quarter of their `checkout_timeout` is left to
    /// them. Defaults to 3 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Sets how long a statement may wait for a node's connection.
    ///
    /// Should be shorter than the timeout of the load balancer in front, so that users see an
    /// error page and not a reset. It is one for all that a statement waits for, from replica to
    /// replica to the primary; the last quarter is kept for the primary, where that may answer in
    /// place of replicas. The time in which servers work does not count. Defaults to 5 s.
    pub fn checkout_timeout(mut self, timeout: Duration) -> Self {
        self.settings.checkout_timeout = timeout;
        self
    }

    /// Sets after how long without use a connection is pinged before it is lent.
    ///
    /// Zero pings every time, at the cost of a round trip. Longer lets more statements meet a
    /// connection that a firewall or restart has cut. Defaults to 1 s.
    pub fn validate_after(mut self, idle: Duration) -> Self {
        self.settings.validate_after = idle;
        self
    }

    /// Sets how many connections the primary's pool holds at most.
    ///
    /// A replica's pool holds 2/3 of it, so that one frozen replica cannot hold every worker;
    /// [`NodeConfig::pool_size`] sets a single node's. Choose the size of the pool of handles.
    /// Defaults to 10.
    pub fn pool_size(mut self, size: u32) -> Self {
        self.settings.pool_size = size;
        self
    }

    /// Adds SQL functions that must run on the primary, such as ones that write.
    ///
    /// Names without arguments; letter case does not matter. None by default.
    pub fn primary_functions<I>(mut self, names: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.settings.primary_functions.extend(lower(names));
        self
    }

    /// Adds SQL functions that may run on a replica although nothing else is known of them.
    ///
    /// Names without arguments; letter case does not matter. None by default.
    pub fn replica_functions<I>(mut self, names: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.settings.replica_functions.extend(lower(names));
        self
    }

    /// Sets where statements with functions on no list run.
    ///
    /// Defaults to [`Role::Replica`]: a replica refuses to write, and a refused statement runs
    /// again on the primary. [`Role::Primary`] is the strict setting.
    pub fn unknown_functions(mut self, role: Role) -> Self {
        self.settings.unknown_functions = role;
        self
    }

    /// Takes the word of the configuration for who is primary and who is replica.
    ///
    /// For what the servers cannot tell: subscribers of logical replication, the endpoints of a
    /// vendor. There is no failover then, a replica may be of another system, and one whose lag
    /// cannot be measured is believed to be fresh. By default the servers are asked.
    pub fn fixed_roles(mut self) -> Self {
        self.settings.roles_from = RolesFrom::Configuration;
        self
    }

    /// Has somebody told of what happens, for metrics and alarms; see [`Observer`].
    ///
    /// A second call replaces the first. Nobody by default.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.settings.observer = Some(Arc::new(observer));
        self
    }

    /// Has the processes of an application ask the servers for their load as if they were one.
    ///
    /// Of use under [`Strategy::LeastLoaded`], which alone asks for it. By default each process
    /// asks for itself.
    #[cfg(feature = "memcached")]
    pub fn shared_status(mut self, shared: SharedStatus) -> Self {
        self.settings.shared_status = Some(shared);
        self
    }

    /// Describes a cluster by its connection strings, the primary first.
    pub(crate) fn from_urls(urls: &str) -> Self {
        let mut nodes = env::split_at_schemes(urls)
            .into_iter()
            .map(NodeConfig::from);
        let primary = nodes.next().unwrap_or_else(|| NodeConfig::new(""));
        Self::new(primary).with_replicas(nodes.collect())
    }

    /// The same cluster with other replicas.
    pub(crate) fn with_replicas(self, replicas: Vec<NodeConfig>) -> Self {
        ClusterConfig { replicas, ..self }
    }
}

fn lower(names: impl IntoIterator<Item: Into<String>>) -> impl Iterator<Item = String> {
    names
        .into_iter()
        .map(|name| name.into().to_ascii_lowercase())
}

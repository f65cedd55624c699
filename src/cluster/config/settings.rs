//! Everything that is configured, with its defaults.

use std::sync::Arc;
use std::time::Duration;

use super::validate::PROBE_TIMEOUT;
use super::{
    Affinity, ClusterMode, Consistency, Fallback, ImplicitContext, Mode, MonotonicReads, Role,
};
use crate::cluster::select::Strategy;
#[cfg(feature = "memcached")]
use crate::cluster::shared_status::SharedStatus;
use crate::event::Observer;
use crate::node::{HealthSettings, Watch};

/// Everything configured that belongs to no single node.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) mode: ClusterMode,
    pub(crate) default_mode: Mode,
    pub(crate) strategy: Strategy,
    pub(crate) consistency: Consistency,
    pub(crate) affinity: Affinity,
    pub(crate) monotonic_reads: MonotonicReads,
    pub(crate) fallback: Fallback,
    pub(crate) implicit_context: ImplicitContext,
    pub(crate) max_lag: Option<Duration>,
    pub(crate) sticky_for: Duration,
    pub(crate) quarantine: Duration,
    pub(crate) check_interval: Duration,
    pub(crate) check_ttl: Duration,
    pub(crate) slow_start: Duration,
    pub(crate) catch_up_wait: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) checkout_timeout: Duration,
    pub(crate) validate_after: Duration,
    pub(crate) pool_size: u32,
    /// Lower case, as are `replica_functions`.
    pub(crate) primary_functions: Vec<String>,
    pub(crate) replica_functions: Vec<String>,
    pub(crate) unknown_functions: Role,
    pub(crate) roles_from: RolesFrom,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    #[cfg(feature = "memcached")]
    pub(crate) shared_status: Option<SharedStatus>,
}

/// How old a server's load gets before it is asked for again.
const LOAD_LIFE: Duration = Duration::from_secs(5);

/// Who says what a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RolesFrom {
    /// The servers.
    Servers,
    /// The configuration.
    Configuration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name: "default".to_owned(),
            mode: ClusterMode::default(),
            default_mode: Mode::default(),
            strategy: Strategy::default(),
            consistency: Consistency::default(),
            affinity: Affinity::default(),
            monotonic_reads: MonotonicReads::default(),
            fallback: Fallback::default(),
            implicit_context: ImplicitContext::default(),
            max_lag: Some(Duration::from_secs(5)),
            sticky_for: Duration::from_secs(12),
            quarantine: Duration::from_secs(1),
            check_interval: Duration::from_secs(1),
            check_ttl: Duration::from_secs(5),
            slow_start: Duration::from_secs(20),
            catch_up_wait: Duration::ZERO,
            connect_timeout: Duration::from_secs(3),
            checkout_timeout: Duration::from_secs(5),
            validate_after: Duration::from_secs(1),
            pool_size: 10,
            primary_functions: Vec::new(),
            replica_functions: Vec::new(),
            unknown_functions: Role::Replica,
            roles_from: RolesFrom::Servers,
            observer: None,
            #[cfg(feature = "memcached")]
            shared_status: None,
        }
    }
}

impl Settings {
    /// Who looks after the nodes.
    pub(crate) fn watch(&self) -> Watch {
        match self.check_interval.is_zero() {
            true => Watch::OnDemand,
            false => Watch::monitored(self.check_interval, PROBE_TIMEOUT),
        }
    }

    /// Tells whether regular probes show whether data is no older than this.
    pub(crate) fn resolves(&self, limit: Duration) -> bool {
        !self.check_interval.is_zero() && limit >= self.check_interval.mul_f64(2.2) + PROBE_TIMEOUT
    }

    /// How old a server's load may get; `None` if the strategy does not use it.
    pub(crate) fn load_life(&self) -> Option<Duration> {
        match self.strategy {
            // what is shared has an age of its own
            #[cfg(feature = "memcached")]
            Strategy::LeastLoaded if self.shared_status.is_some() => Some(Duration::ZERO),
            Strategy::LeastLoaded => Some(LOAD_LIFE),
            _ => None,
        }
    }

    /// What the health of a node depends on.
    pub(crate) fn health(&self) -> HealthSettings {
        HealthSettings {
            watch: self.watch(),
            max_lag: self.max_lag,
            quarantine: self.quarantine,
            slow_start: self.slow_start,
        }
    }
}

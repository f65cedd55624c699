//! Checks a description as a whole and fills in what it leaves open.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::decided::PoolSizes;
use super::error::ConfigError;
use super::url::{self, Located, Visibility};
use super::{
    Affinity, ClusterConfig, Fallback, MonotonicReads, NodeConfig, NodeSettings, Role, Settings,
};
use crate::node::Share;
use crate::statement::Dialect;

/// How long a probe may take.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What `sticky_for` needs beyond lag and probes: 0.6 s in which PostgreSQL may still flush an
/// asynchronous commit, 2 s by which the clocks of hosts that exchange tokens may differ.
pub(super) const STICKY_MARGIN: Duration = Duration::from_millis(2_600);

const INSTANT: Duration = Duration::from_millis(1);

/// Beyond every purpose, and short enough to be added to any point in time.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// A description that was found to make sense for one dialect.
#[derive(Clone)]
pub(crate) struct ValidConfig {
    /// As it was described, to be described anew with other replicas.
    described: NodeConfig,
    pub(crate) settings: Settings,
    pub(crate) primary: NodeSettings,
    pub(crate) replicas: Vec<NodeSettings>,
}

impl ClusterConfig {
    /// Checks everything that can be checked without a server.
    pub(crate) fn validated(self, dialect: Dialect) -> Result<ValidConfig, ConfigError> {
        let ClusterConfig {
            primary,
            replicas,
            settings,
        } = self;
        settings.check(&replicas)?;
        let described = primary.clone();
        let nodes: Vec<_> = std::iter::once(primary).chain(replicas).collect();
        for (i, node) in nodes.iter().enumerate() {
            check_node(i, node)?;
        }
        let replicas = &nodes[1..];
        if !replicas.is_empty() && replicas.iter().all(|node| node.weight == 0) {
            return Err(ConfigError::NoWeight);
        }
        let located = locate_all(dialect, &nodes)?;
        let names = names(&nodes, &located)?;

        let mut nodes: Vec<_> = nodes
            .iter()
            .zip(located)
            .zip(names)
            .map(|((node, located), name)| NodeSettings {
                name,
                weight: node.weight,
                pool_sizes: settings.pool_sizes(node.pool_size),
                url: match dialect {
                    Dialect::Postgres => {
                        url::postgres::with_timeouts(&located.url, settings.connect_timeout)
                    }
                    Dialect::Mysql | Dialect::Sqlite => located.url,
                },
                dialect,
            })
            .collect();
        let primary = nodes.remove(0);
        Ok(ValidConfig {
            described,
            settings,
            primary,
            replicas: nodes,
        })
    }
}

/// The primary comes first in every list of nodes here.
fn role(i: usize) -> Role {
    if i == 0 { Role::Primary } else { Role::Replica }
}

/// What to call a node whose connection string may be unfit to name it.
fn label(i: usize, node: &NodeConfig) -> String {
    match (&node.name, role(i)) {
        (Some(name), role) if is_name(name) => format!("{role} {name:?}"),
        (_, Role::Primary) => "the primary".to_owned(),
        (_, Role::Replica) => format!("replica {i}"),
    }
}

fn check_node(i: usize, node: &NodeConfig) -> Result<(), ConfigError> {
    let label = label(i, node);
    if let Some(rejected) = &node.rejected {
        return Err(rejected.clone());
    }
    if node.url.is_empty() {
        return Err(ConfigError::EmptyUrl { node: label });
    }
    if let Some(name) = &node.name {
        check_name(&format!("name of {label}"), name)?;
    }
    at_least_one(&format!("pool_size of {label}"), node.pool_size)
}

fn locate_all(dialect: Dialect, nodes: &[NodeConfig]) -> Result<Vec<Located>, ConfigError> {
    let mut all: Vec<Located> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let located = url::locate(dialect, &node.url)
            .map_err(|trouble| trouble.at(label(i, node), dialect))?;
        if located.visibility == Visibility::Own && nodes.len() > 1 {
            let node = label(i, node);
            return Err(ConfigError::PrivateMemory { node });
        }
        // A SQLite file may be its own replica: one writer, many readers.
        let first = usize::from(dialect == Dialect::Sqlite);
        let mut earlier = all.iter().enumerate().skip(first);
        if let Some((earlier, _)) = earlier.find(|(_, e)| e.identity == located.identity) {
            return Err(ConfigError::SameNode {
                first: label(earlier, &nodes[earlier]),
                second: label(i, node),
            });
        }
        all.push(located);
    }
    Ok(all)
}

/// Given names must differ; default names are made to, by a number at their end.
fn names(nodes: &[NodeConfig], located: &[Located]) -> Result<Vec<Arc<str>>, ConfigError> {
    let mut taken = HashSet::new();
    for name in nodes.iter().filter_map(|node| node.name.as_ref()) {
        if !taken.insert(name.clone()) {
            return Err(ConfigError::SameName { name: name.clone() });
        }
    }
    let mut default = |located: &Located| {
        let mut name = located.name.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{}-{number}", located.name);
            number += 1;
        }
        name
    };
    let names = nodes.iter().zip(located).map(|(node, located)| {
        let name = node.name.clone().unwrap_or_else(|| default(located));
        Arc::from(name)
    });
    Ok(names.collect())
}

impl Settings {
    /// How many connections the pool of a node holds, which may say so itself.
    fn pool_sizes(&self, own: Option<u32>) -> PoolSizes {
        PoolSizes {
            primary: own.unwrap_or(self.pool_size),
            // a frozen replica cannot hold every worker
            replica: own.unwrap_or(self.pool_size - self.pool_size / 3),
        }
    }

    fn check(&self, replicas: &[NodeConfig]) -> Result<(), ConfigError> {
        check_name("name", &self.name)?;
        at_least_one("pool_size", Some(self.pool_size))?;
        for (setting, duration, least) in [
            ("max_lag", self.max_lag.unwrap_or(INSTANT), INSTANT),
            ("quarantine", self.quarantine, INSTANT),
            ("connect_timeout", self.connect_timeout, INSTANT),
            ("checkout_timeout", self.checkout_timeout, INSTANT),
            ("sticky_for", self.sticky_for, Duration::ZERO),
            ("check_interval", self.check_interval, Duration::ZERO),
            ("check_ttl", self.check_ttl, INSTANT),
            ("slow_start", self.slow_start, Duration::ZERO),
            ("catch_up_wait", self.catch_up_wait, Duration::ZERO),
            ("validate_after", self.validate_after, Duration::ZERO),
        ] {
            if duration < least || duration > LONGEST {
                let accepted = format!("{least:?} to {} days", LONGEST.as_secs() / 86_400);
                return Err(ConfigError::invalid(
                    setting,
                    &format!("{duration:?}"),
                    accepted,
                ));
            }
        }
        if (self.affinity, self.monotonic_reads)
            == (Affinity::Query, MonotonicReads::AcrossRequests)
        {
            let accepted = "within_context where affinity is query".to_owned();
            return Err(ConfigError::invalid(
                "monotonic_reads",
                "across_requests",
                accepted,
            ));
        }
        self.check_functions()?;
        if !replicas.is_empty() {
            self.check_lag()?;
        }
        self.check_sticky()
    }

    /// A healthy replica's last answer is as old as the interval before the next one comes.
    fn check_lag(&self) -> Result<(), ConfigError> {
        let least = self.check_interval.saturating_mul(3) / 2;
        match self.max_lag {
            Some(max_lag) if max_lag < least => Err(ConfigError::invalid(
                "max_lag",
                &format!("{max_lag:?}"),
                format!("{least:?} or more, which is 1.5 x check_interval"),
            )),
            _ => Ok(()),
        }
    }

    fn check_functions(&self) -> Result<(), ConfigError> {
        let valid = |c: char| c.is_alphanumeric() || "_$.".contains(c);
        for (setting, names) in [
            ("primary_functions", &self.primary_functions),
            ("replica_functions", &self.replica_functions),
        ] {
            let wrong = names.iter().find(|n| n.is_empty() || !n.chars().all(valid));
            if let Some(name) = wrong {
                let accepted = "the bare name of a function";
                return Err(ConfigError::invalid(setting, name, accepted));
            }
        }
        let both = |name: &&String| self.primary_functions.contains(name);
        match self.replica_functions.iter().find(both) {
            Some(name) => Err(ConfigError::invalid(
                "replica_functions",
                name,
                "a function that is not among primary_functions, too",
            )),
            None => Ok(()),
        }
    }

    /// A request must not forget its write before every replica still in rotation has it.
    fn check_sticky(&self) -> Result<(), ConfigError> {
        let Some(max_lag) = self.max_lag else {
            return Ok(());
        };
        let probing = self.check_interval.saturating_mul(22) / 10;
        let least = max_lag
            .saturating_add(probing)
            .saturating_add(PROBE_TIMEOUT + STICKY_MARGIN);
        if self.sticky_for >= least {
            return Ok(());
        }
        Err(ConfigError::StickyTooShort {
            sticky_for: self.sticky_for,
            max_lag,
            check_interval: self.check_interval,
            least,
        })
    }
}

fn check_name(setting: &str, name: &str) -> Result<(), ConfigError> {
    if is_name(name) {
        return Ok(());
    }
    let accepted = "a text that is not empty, has no control characters and is no URL";
    Err(ConfigError::invalid(setting, name, accepted))
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control) && !text.contains("://")
}

fn at_least_one(setting: &str, value: Option<u32>) -> Result<(), ConfigError> {
    match value {
        Some(0) => Err(ConfigError::invalid(setting, "0", "1 or more")),
        _ => Ok(()),
    }
}

impl ValidConfig {
    /// How many reads this primary serves at once for want of a replica; `None` if none.
    pub(crate) fn fallback_limit(&self, primary: &NodeSettings) -> Option<u32> {
        let size = primary.pool_size(Role::Primary);
        let most = size - size.div_ceil(4);
        match self.settings.fallback {
            Fallback::Primary { max_concurrent } => Some(max_concurrent.unwrap_or(most.max(1))),
            Fallback::Stale => Some(most.max(1)),
            Fallback::Error => None,
        }
    }

    /// How the numbers of a node are got.
    pub(crate) fn share(&self) -> Share {
        #[cfg(feature = "memcached")]
        if let Some(shared) = self.settings.shared_status.clone() {
            // two applications may call their clusters, and these their nodes, alike
            let cluster = format!("{}/{}", self.settings.name, self.primary.name);
            return Arc::new(move |node, ask| shared.numbers(&cluster, node, ask));
        }
        Arc::new(|_, ask| ask())
    }

    /// The replicas of the same cluster with these.
    pub(crate) fn with_replicas(
        &self,
        replicas: Vec<NodeConfig>,
        dialect: Dialect,
    ) -> Result<Vec<NodeSettings>, ConfigError> {
        let config = ClusterConfig {
            primary: self.described.clone(),
            replicas,
            settings: self.settings.clone(),
        };
        config.validated(dialect).map(|valid| valid.replicas)
    }
}

impl fmt::Debug for ValidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidConfig")
            .field("primary", &self.primary)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

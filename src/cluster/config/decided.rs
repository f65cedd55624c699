//! A node with everything decided, and what the log says of the whole at start.

use std::fmt;
use std::sync::Arc;

use super::validate::ValidConfig;
use super::{Fallback, Role, secret};
use crate::statement::Dialect;

/// One node, with everything decided.
#[derive(Clone)]
pub(crate) struct NodeSettings {
    /// Unique in the cluster.
    pub(crate) name: Arc<str>,
    pub(crate) weight: u32,
    pub(super) pool_sizes: PoolSizes,
    pub(super) dialect: Dialect,
    pub(super) url: String,
}

impl NodeSettings {
    /// The connection string to give to Diesel, with timeouts where its form has them.
    pub(crate) fn dial_url(&self) -> &str {
        &self.url
    }

    /// How many connections its pool holds at most while it is used in a role.
    pub(crate) fn pool_size(&self, role: Role) -> u32 {
        match role {
            Role::Primary => self.pool_sizes.primary,
            Role::Replica => self.pool_sizes.replica,
        }
    }

    /// How many it ever holds.
    pub(crate) fn largest_pool(&self) -> u32 {
        self.pool_sizes.primary.max(self.pool_sizes.replica)
    }

    /// Tells whether both describe the same server in the same way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let parts = |node: &Self| (node.weight, node.pool_sizes);
        self.name == other.name && self.url == other.url && parts(self) == parts(other)
    }

    /// The text of a foreign error about this node, without secrets and on one line.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let scrubbed = secret::scrub(text, self.dialect, &self.name, &self.url);
        let words: Vec<_> = scrubbed.split_whitespace().collect();
        words.join(" ")
    }
}

/// A node may come to be used in the other role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PoolSizes {
    pub(super) primary: u32,
    pub(super) replica: u32,
}

impl fmt::Debug for NodeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeSettings")
            .field("name", &self.name)
            .field("weight", &self.weight)
            .field("pool_sizes", &self.pool_sizes)
            .finish_non_exhaustive()
    }
}

/// One line for the log at start.
impl fmt::Display for ValidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.settings;
        let shown = |node: &NodeSettings, role| {
            let size = node.pool_size(role);
            format!("{role} {} (pool_size {size})", node.name)
        };
        let primary = shown(&self.primary, Role::Primary);
        write!(f, "cluster {:?}: {primary}", s.name)?;
        for replica in &self.replicas {
            let weight = replica.weight;
            write!(f, ", {} weight {weight}", shown(replica, Role::Replica))?;
        }
        write!(
            f,
            "; mode {:?}, default_mode {:?}, strategy {:?}, consistency {:?}, affinity {:?}, \
             monotonic_reads {:?}, ",
            s.mode, s.default_mode, s.strategy, s.consistency, s.affinity, s.monotonic_reads
        )?;
        match (s.fallback, self.fallback_limit(&self.primary)) {
            (Fallback::Stale, _) => f.write_str("fallback Stale, ")?,
            (_, Some(limit)) => write!(f, "fallback Primary (at most {limit}), ")?,
            (_, None) => f.write_str("fallback Error, ")?,
        }
        match s.max_lag {
            Some(max_lag) => write!(f, "max_lag {max_lag:?}, ")?,
            None => f.write_str("max_lag none, ")?,
        }
        for (setting, duration) in [
            ("sticky_for", s.sticky_for),
            ("quarantine", s.quarantine),
            ("check_interval", s.check_interval),
            ("slow_start", s.slow_start),
            ("catch_up_wait", s.catch_up_wait),
            ("connect_timeout", s.connect_timeout),
            ("checkout_timeout", s.checkout_timeout),
            ("validate_after", s.validate_after),
        ] {
            write!(f, "{setting} {duration:?}, ")?;
        }
        write!(f, "implicit_context {:?}, ", s.implicit_context)?;
        for (setting, names) in [
            ("primary_functions", &s.primary_functions),
            ("replica_functions", &s.replica_functions),
        ] {
            if !names.is_empty() {
                write!(f, "{setting} {}, ", names.join(" "))?;
            }
        }
        write!(f, "unknown_functions {}", s.unknown_functions)
    }
}

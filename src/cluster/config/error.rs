//! What can be wrong with a configuration.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::validate::{PROBE_TIMEOUT, STICKY_MARGIN};

/// A configuration that cannot work.
///
/// Names the variable or setter at fault, what it was set to and what would be accepted. Holds no
/// connection string and no password: a value that looks like one is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// `DATABASE_URL` is unset or empty.
    NoPrimary,
    /// A `.env` file was found, but cannot be read or parsed.
    DotEnv,
    /// A variable starts with `ROUTED_`, but there is no such setting.
    UnknownVariable {
        /// The variable.
        name: String,
    },
    /// A setting has a value it cannot have.
    Invalid {
        /// The variable or setter.
        setting: String,
        /// The value, or why it is not shown.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A node has an empty connection string.
    EmptyUrl {
        /// Which node.
        node: String,
    },
    /// A connection string is meant for another database, or its scheme is misspelt.
    WrongScheme {
        /// Which node.
        node: String,
        /// The scheme, if it can be shown.
        scheme: Option<String>,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// A connection string cannot be understood.
    MalformedUrl {
        /// Which node.
        node: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two nodes are the same database of the same server.
    SameNode {
        /// The node listed first.
        first: String,
        /// The node that repeats it.
        second: String,
    },
    /// Two nodes were given the same name.
    SameName {
        /// The name.
        name: String,
    },
    /// No node of the cluster has this name.
    UnknownNode {
        /// The name.
        name: String,
    },
    /// Every replica has weight 0, so none would ever be chosen.
    NoWeight,
    /// A cluster with replicas has a SQLite database that only one connection can see.
    PrivateMemory {
        /// Which node.
        node: String,
    },
    /// A request could forget its own write before every replica in rotation has it.
    StickyTooShort {
        /// The configured `sticky_for`.
        sticky_for: Duration,
        /// The configured `max_lag`.
        max_lag: Duration,
        /// The configured `check_interval`.
        check_interval: Duration,
        /// The least `sticky_for` that goes with the other two.
        least: Duration,
    },
}

impl ConfigError {
    /// `value` is shown only if it does not look like a connection string.
    pub(super) fn invalid(
        setting: impl Into<String>,
        value: &str,
        accepted: impl Into<String>,
    ) -> Self {
        ConfigError::Invalid {
            setting: setting.into(),
            value: shown(value),
            accepted: accepted.into(),
        }
    }
}

fn shown(value: &str) -> String {
    let looks_secret = ["://", "@", "passw"].iter().any(|s| value.contains(s));
    if looks_secret || value.len() > 60 {
        "a value that is not shown here".to_owned()
    } else {
        format!("{value:?}")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::NoPrimary => {
                f.write_str("DATABASE_URL is unset or empty, write the primary's connection string")
            }
            ConfigError::DotEnv => f.write_str(
                "the .env file cannot be read or parsed, write lines of the form KEY=value",
            ),
            ConfigError::UnknownVariable { name } => {
                let accepted = super::env::accepted_names();
                write!(f, "{name} is no setting, accepted are {accepted}")
            }
            ConfigError::Invalid {
                setting,
                value,
                accepted,
            } => write!(f, "{setting}: {value} is not accepted, write {accepted}"),
            ConfigError::EmptyUrl { node } => {
                write!(f, "the connection string of {node} is empty")
            }
            ConfigError::WrongScheme {
                node,
                scheme,
                accepted,
            } => {
                write!(f, "the connection string of {node} ")?;
                match scheme {
                    Some(scheme) => write!(f, "starts with {scheme}://")?,
                    None => f.write_str("has no scheme known here")?,
                }
                write!(f, ", accepted is {accepted}")
            }
            ConfigError::MalformedUrl { node, reason } => {
                write!(f, "the connection string of {node} is malformed: {reason}")
            }
            contradiction => contradiction.fmt_contradiction(f),
        }
    }
}

impl ConfigError {
    /// Displays the errors that lie in no single value, but in how several go together.
    fn fmt_contradiction(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::SameNode { first, second } => write!(
                f,
                "{second} is the same database of the same server as {first}, \
                 an alias of a node is no further node"
            ),
            ConfigError::SameName { name } => write!(
                f,
                "two nodes are named {name:?}, every node needs its own name"
            ),
            ConfigError::UnknownNode { name } => {
                write!(f, "no node of the cluster is named {name:?}")
            }
            ConfigError::NoWeight => f.write_str(
                "every replica has weight 0 and would never be chosen, \
                 at least one needs a weight of 1 or more",
            ),
            ConfigError::PrivateMemory { node } => write!(
                f,
                "{node} is an in-memory database, which each connection would have for itself, \
                 with replicas use a file or file:NAME?mode=memory&cache=shared"
            ),
            ConfigError::StickyTooShort {
                sticky_for,
                max_lag,
                check_interval,
                least,
            } => write!(
                f,
                "sticky_for ({sticky_for:?}) must be at least {least:?}, the sum of \
                 max_lag ({max_lag:?}), 2.2 x check_interval ({check_interval:?}), \
                 the probe timeout ({PROBE_TIMEOUT:?}) and a margin of {STICKY_MARGIN:?}: \
                 raise it, or lower max_lag or check_interval"
            ),
            _ => Ok(()),
        }
    }
}

impl Error for ConfigError {}

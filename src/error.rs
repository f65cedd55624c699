//! What can go wrong in the router itself, carried inside Diesel's error.

use std::fmt;

use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error};

/// What went wrong in the router, as opposed to in the statement.
///
/// It travels inside [`diesel::result::Error::DatabaseError`], mostly with the kind
/// [`ClosedConnection`](DatabaseErrorKind::ClosedConnection), so that code which treats a
/// lost connection as "try again later" keeps working. [`RoutedError::downcast`] gets it back.
///
/// No variant and no message holds a URL, a password or a token.
///
/// ```
/// use diesel_routed::RoutedError;
///
/// let error = diesel::result::Error::from(RoutedError::ReadOnlyMode);
/// assert_eq!(RoutedError::downcast(&error), Some(RoutedError::ReadOnlyMode));
/// assert_eq!(RoutedError::downcast(&diesel::result::Error::NotFound), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoutedError {
    /// The primary can't be reached. Reads inside blocks may still be answered by replicas.
    NoPrimary {
        /// The name of the node.
        node: String,
        /// What the last attempt said, without secrets.
        cause: String,
    },
    /// Two servers take writes, and neither has all that the other has: writes are refused until
    /// one of them is stopped, made read-only or set to follow.
    RoleConflict {
        /// The names of the two.
        nodes: String,
    },
    /// No replica can answer, and [`Fallback::Error`](crate::Fallback::Error) forbids the primary.
    NoReplica {
        /// Each replica with its last error, without secrets.
        cause: String,
    },
    /// All connections to a node were in use until `checkout_timeout` ended.
    PoolTimeout {
        /// The name of the node.
        node: String,
    },
    /// As many reads as [`Fallback::Primary`](crate::Fallback::Primary) admits were on the
    /// primary in place of replicas until `checkout_timeout` ended.
    FallbackLimit {
        /// The name of the primary.
        node: String,
    },
    /// The cluster is in [`ClusterMode::ReadOnly`](crate::ClusterMode::ReadOnly): writes are refused.
    ReadOnlyMode,
    /// The primary was asked for inside a read-only transaction that runs on a replica.
    ReadOnlyTransaction {
        /// The name of the replica.
        node: String,
    },
    /// The server has ended the transaction (a deadlock): what follows in it would run outside.
    TransactionLost {
        /// The name of the node.
        node: String,
    },
    /// A test transaction is open on a handle of the pool, which another handle can't see into:
    /// use `conn.distributed` on the handle you have.
    TestTransaction,
    /// A block ran outside any [`Context`](crate::Context), and
    /// [`ImplicitContext::Forbid`](crate::ImplicitContext::Forbid) is set.
    NoContext,
    /// An ambient block was run before a pool was installed.
    NotInstalled,
}

impl RoutedError {
    /// Gets the router's error out of Diesel's, if it is one.
    ///
    /// The value is rebuilt, not borrowed, because Diesel's error holds no `Any`.
    pub fn downcast(error: &Error) -> Option<Self> {
        let Error::DatabaseError(_, info) = error else {
            return None;
        };
        if info.table_name() != Some(MARK) {
            return None;
        }
        let node = || info.column_name().unwrap_or_default().to_owned();
        let cause = || info.details().unwrap_or_default().to_owned();
        Some(match info.constraint_name()? {
            "no_primary" => Self::NoPrimary {
                node: node(),
                cause: cause(),
            },
            "role_conflict" => Self::RoleConflict { nodes: node() },
            "no_replica" => Self::NoReplica { cause: cause() },
            "pool_timeout" => Self::PoolTimeout { node: node() },
            "fallback_limit" => Self::FallbackLimit { node: node() },
            "read_only_mode" => Self::ReadOnlyMode,
            "read_only_transaction" => Self::ReadOnlyTransaction { node: node() },
            "transaction_lost" => Self::TransactionLost { node: node() },
            "test_transaction" => Self::TestTransaction,
            "no_context" => Self::NoContext,
            "not_installed" => Self::NotInstalled,
            _ => return None,
        })
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NoPrimary { .. } => "no_primary",
            Self::RoleConflict { .. } => "role_conflict",
            Self::NoReplica { .. } => "no_replica",
            Self::PoolTimeout { .. } => "pool_timeout",
            Self::FallbackLimit { .. } => "fallback_limit",
            Self::ReadOnlyMode => "read_only_mode",
            Self::ReadOnlyTransaction { .. } => "read_only_transaction",
            Self::TransactionLost { .. } => "transaction_lost",
            Self::TestTransaction => "test_transaction",
            Self::NoContext => "no_context",
            Self::NotInstalled => "not_installed",
        }
    }

    fn node(&self) -> Option<&str> {
        match self {
            Self::NoPrimary { node, .. }
            | Self::RoleConflict { nodes: node }
            | Self::PoolTimeout { node }
            | Self::FallbackLimit { node }
            | Self::ReadOnlyTransaction { node }
            | Self::TransactionLost { node } => Some(node),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&str> {
        match self {
            Self::NoPrimary { cause, .. } | Self::NoReplica { cause } => Some(cause),
            _ => None,
        }
    }

    fn kind(&self) -> DatabaseErrorKind {
        match self {
            Self::ReadOnlyMode | Self::ReadOnlyTransaction { .. } => {
                DatabaseErrorKind::ReadOnlyTransaction
            }
            Self::TransactionLost { .. } => DatabaseErrorKind::SerializationFailure,
            Self::TestTransaction | Self::NoContext | Self::NotInstalled => {
                DatabaseErrorKind::Unknown
            }
            _ => DatabaseErrorKind::ClosedConnection,
        }
    }
}

impl fmt::Display for RoutedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrimary { node, cause } => {
                write!(f, "the primary {node} cannot be reached: {cause}")
            }
            Self::RoleConflict { nodes } => write!(
                f,
                "{nodes} both take writes and neither has all that the other has, so that \
                 nothing is written; stop one of them or make it follow the other"
            ),
            Self::NoReplica { cause } => write!(f, "no replica can answer: {cause}"),
            Self::PoolTimeout { node } => write!(
                f,
                "every connection to {node} stayed in use until checkout_timeout; \
                 raise its pool_size or hold connections for a shorter time"
            ),
            Self::FallbackLimit { node } => write!(
                f,
                "no replica can answer, and as many reads as the fallback admits \
                 stayed on the primary {node} until checkout_timeout"
            ),
            Self::ReadOnlyMode => f.write_str("the cluster is in read-only mode"),
            Self::ReadOnlyTransaction { node } => write!(
                f,
                "the primary was asked for inside a read-only transaction on the replica {node}"
            ),
            Self::TransactionLost { node } => write!(
                f,
                "{node} has rolled this transaction back after a deadlock; \
                 return the error from the transaction and run it again"
            ),
            Self::TestTransaction => f.write_str(
                "a test transaction is open, which another connection cannot see into; \
                 pass the connection on and use `conn.distributed` in place of `route::distributed`",
            ),
            Self::NoContext => f.write_str(
                "a block ran outside any context, which `implicit_context(Forbid)` does not allow; \
                 run the request inside `Context::new().run(..)`",
            ),
            Self::NotInstalled => {
                f.write_str("no pool is installed; call `route::install` at start")
            }
        }
    }
}

impl std::error::Error for RoutedError {}

impl From<RoutedError> for Error {
    fn from(error: RoutedError) -> Self {
        let kind = error.kind();
        let text = error.to_string();
        Error::DatabaseError(kind, Box::new(Carrier { error, text }))
    }
}

/// The table name that marks an error as ours; no table can be called so.
const MARK: &str = "\0diesel-routed";

/// Diesel asks for its parts as strings, so the fields of the error go where strings may be.
struct Carrier {
    error: RoutedError,
    text: String,
}

impl DatabaseErrorInformation for Carrier {
    fn message(&self) -> &str {
        &self.text
    }

    fn details(&self) -> Option<&str> {
        self.error.cause()
    }

    fn hint(&self) -> Option<&str> {
        None
    }

    fn table_name(&self) -> Option<&str> {
        Some(MARK)
    }

    fn column_name(&self) -> Option<&str> {
        self.error.node()
    }

    fn constraint_name(&self) -> Option<&str> {
        Some(self.error.code())
    }

    fn statement_position(&self) -> Option<i32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_survives_the_way_through_diesel() {
        let node = || "n1".to_owned();
        let cause = || "refused".to_owned();
        let all = [
            RoutedError::NoPrimary {
                node: node(),
                cause: cause(),
            },
            RoutedError::RoleConflict {
                nodes: "n1 and n2".to_owned(),
            },
            RoutedError::NoReplica { cause: cause() },
            RoutedError::PoolTimeout { node: node() },
            RoutedError::FallbackLimit { node: node() },
            RoutedError::ReadOnlyMode,
            RoutedError::ReadOnlyTransaction { node: node() },
            RoutedError::TransactionLost { node: node() },
            RoutedError::TestTransaction,
            RoutedError::NoContext,
            RoutedError::NotInstalled,
        ];
        for error in all {
            let carried = Error::from(error.clone());
            assert_eq!(carried.to_string(), error.to_string());
            assert_eq!(RoutedError::downcast(&carried), Some(error));
        }
    }
}

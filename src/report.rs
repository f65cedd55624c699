//! What a server says of itself.

use std::sync::Arc;
use std::time::Duration;

use crate::position::Position;

/// What a server says of itself when it is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Which server this is, in which run.
    pub identity: Identity,
    /// Whether its sessions may write, as the server itself is set.
    pub access: Access,
    /// Whether it follows another server.
    pub following: Following,
    /// How far it has come: what it has committed if it follows nobody, else what it has applied.
    pub position: Option<Position>,
    /// How far it says that it is behind; of use only where there is no position.
    pub reported_lag: ReportedLag,
    /// The statement that grants what was missing to learn more, to be shown to the operator.
    pub missing_grant: Option<&'static str>,
}

impl Report {
    /// The least that a server can say: it answers, and takes writes.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            access: Access::ReadWrite,
            following: Following::Unknown,
            position: None,
            reported_lag: ReportedLag::Unsupported,
            missing_grant: None,
        }
    }
}

/// Which server answers, in which run; all parts empty if it can't say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Identity {
    /// What a primary shares with all of its replicas and nobody else: PostgreSQL's
    /// system identifier. Empty where there is no such thing.
    pub system: Arc<str>,
    /// What tells the server from every other one that has the same data.
    pub server: Arc<str>,
    /// What tells this run of its process from the one before.
    pub run: Arc<str>,
}

impl Identity {
    /// Describes a server.
    pub fn new(system: &str, server: &str, run: &str) -> Self {
        Self {
            system: system.into(),
            server: server.into(),
            run: run.into(),
        }
    }
}

/// Whether a server lets its sessions write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It does.
    ReadWrite,
    /// It refuses.
    ReadOnly,
}

/// Whether a server follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Following {
    /// It follows nobody.
    Nobody,
    /// It is set up as a replica, whether or not replication runs.
    Somebody,
    /// The user of the connection may not see it, or the server has no such notion.
    Unknown,
}

/// The lag as a server reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportedLag {
    /// It says this; not known exactly, but better than nothing.
    Of(Duration),
    /// It says that it can't tell: replication does not run.
    Unknown,
    /// This kind of server reports none, or its user may not see it.
    Unsupported,
}

/// What an error says of the server that it came from.
///
/// Only [`Death`](Self::Death) takes a replica out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The connection is lost, or was refused: the server may be gone.
    Death,
    /// The server has no connection left to give.
    Load,
    /// It does not accept the name or password.
    Authentication,
    /// The server, its session or its transaction only reads: the statement has done nothing.
    Role,
    /// A standby cancelled the read, because it stood in the way of what the primary had changed.
    Conflict,
    /// A table, column, function or type is missing, which may not have been replicated yet.
    Schema,
    /// Anything else: the user's.
    Query,
}

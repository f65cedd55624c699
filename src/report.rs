//! What a server says of itself.

use std::sync::Arc;
use std::time::Duration;

use crate::position::{GtidState, Position};

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
    /// MariaDB: what tells whether it has gone another way than others.
    pub lineage: Option<GtidState>,
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
            lineage: None,
            reported_lag: ReportedLag::Unsupported,
            missing_grant: None,
        }
    }
}

/// Which server answers, in which run; all parts empty if it can't say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

    /// A short form, which two servers or runs hardly ever share.
    pub(crate) fn tag(&self) -> ServerTag {
        let parts = [&self.system, &self.server, &self.run];
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        ServerTag(fingerprint(bytes))
    }

    /// Tells whether this is the same server, in whichever run.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        (&self.system, &self.server) == (&other.system, &other.server)
    }
}

/// Tells a server in its run from others, in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerTag(pub(crate) u64);

impl ServerTag {
    /// What no server answers to.
    pub(crate) const NOBODY: Self = Self(0);
}

/// A short form of a text that is the same in every process: FNV-1a of 64 bits, which nobody has to
/// keep from colliding on purpose.
pub(crate) fn fingerprint(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
/// | class | PostgreSQL | MySQL, MariaDB | SQLite |
/// |---|---|---|---|
/// | `Death` | connection lost or refused; 57P01, 57P02, 57P04 and all else that ends the session | 2002, 2003, 2006, 2013, 1053, 1927, 4031 | the file is gone, I/O error |
/// | `Load` | 53300 | 1040, 1203, 1226 | |
/// | `Authentication` | 28P01, 28000 | 1044, 1045, 1129, 1130, 1862 | |
/// | `Role` | 25006; 0A000, 25001, 55000 and XX000 of a standby | 1792; 1290 with `read-only` | a read-only session |
/// | `Conflict` | 40001 of a standby that cancels a statement | | |
/// | `Schema` | 42P01, 42703, 42883, 42704, 3F000; 22P02 of an enum | 1146, 1054, 1305, 1049 | no such table, column, function |
/// | `Query` | all else | all else | all else |
///
/// Diesel shows no codes: its kind of the error decides where it has one, else how the message
/// begins. PostgreSQL's messages are known in English (`lc_messages`), so elsewhere a lost
/// connection and a refused write are told, the other classes are `Query`.
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
    /// A standby cancelled the read, because it stood in the way of what the primary had changed;
    /// the connection lives.
    Conflict,
    /// A table, column, function, type or schema is missing, which may not have been replicated
    /// yet.
    Schema,
    /// Anything else: the user's.
    Query,
}

//! The states of a node, and what is told of a change.

use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use crate::cluster::Role;
use crate::node::history::Lag;

/// Whether a node is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeState {
    /// Nothing speaks against it, or for it, yet.
    Unknown,
    /// It is asked.
    Up,
    /// A replica that is further behind than `max_lag`.
    Lagging,
    /// It does not answer.
    Down {
        /// It is not dialled again before this instant.
        until: Instant,
    },
    /// A primary that refuses writes, although it follows nobody.
    ReadOnly,
    /// It answers, but is no replica of the primary, and is not asked; the log and
    /// [`last_error`](crate::NodeStatus::last_error) say why.
    Refused,
    /// The operator has taken it out.
    Drained,
}

impl NodeState {
    /// Tells whether both are the same state, whatever its details.
    pub(super) fn is_same_kind(self, other: Self) -> bool {
        mem::discriminant(&self) == mem::discriminant(&other)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Lagging => "lagging",
            Self::Down { .. } => "down",
            Self::ReadOnly => "read-only",
            Self::Refused => "refused",
            Self::Drained => "drained",
        })
    }
}

/// Why a server that answers is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It holds the data of another database system.
    ForeignSystem,
    /// It is the primary itself, under another address.
    Alias,
    /// It takes writes and follows nobody, but another server is the primary.
    Stray,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ForeignSystem => "it belongs to another database system than the primary",
            Self::Alias => "it is the primary itself",
            Self::Stray => "it takes writes and follows nobody, but is not the primary",
        })
    }
}

/// What is told, once, of a node that has changed: its state, its role, or that it turns the
/// password down, which is no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: NodeState,
    pub(crate) new: NodeState,
    pub(crate) cause: Cause,
    /// How long the old state has lasted.
    pub(crate) lasted: Duration,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            old,
            new,
            cause,
            lasted,
        } = self;
        let lasted = lasted.as_secs_f64();
        match old.is_same_kind(*new) {
            true => write!(f, "still {old} after {lasted:.1} s, but {cause}"),
            false => write!(f, "{old} -> {new} after {lasted:.1} s: {cause}"),
        }
    }
}

/// Why a node has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    DialFailed,
    ProbeFailed,
    ConnectionLost,
    Silence,
    Authentication,
    /// A probe, or without a monitor a dial, has passed.
    Answers,
    NewLife,
    Fresh(Lag),
    Late(Lag),
    /// It cannot be compared with the primary, or may lack what was there before its return.
    Unsure,
    TakesWrites,
    RefusesWrites,
    Drained,
    Resumed,
    RoleChanged(Role),
    Refused(Refusal),
    Accepted,
}

impl Cause {
    /// Tells whether it is worth telling although the state stays.
    pub(super) fn is_told_anyway(self) -> bool {
        matches!(self, Self::Authentication | Self::RoleChanged(_))
    }
}

impl Cause {
    /// Tells whether somebody has to give another name or password.
    pub(crate) fn is_refused_password(self) -> bool {
        self == Self::Authentication
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DialFailed => "it could not be dialled",
            Self::ProbeFailed => "a probe failed",
            Self::ConnectionLost => "a connection was lost",
            Self::Silence => "no probe has passed for too long",
            Self::Authentication => "the name or password is not accepted",
            Self::Answers => "it answers",
            Self::NewLife => "it was restarted",
            Self::Fresh(Lag::Unknown) => "it answers and cannot tell its lag",
            Self::Fresh(lag) => return write!(f, "its lag is {lag}"),
            Self::Late(lag) => return write!(f, "its lag is {lag}"),
            Self::Unsure => "it is not known to be fresh yet",
            Self::TakesWrites => "it takes writes",
            Self::RefusesWrites => "it refuses writes",
            Self::Drained => "the operator drained it",
            Self::Resumed => "the operator resumed it",
            Self::RoleChanged(role) => return write!(f, "it is used as {role} now"),
            Self::Refused(refusal) => return refusal.fmt(f),
            Self::Accepted => "it is one of the cluster again",
        })
    }
}

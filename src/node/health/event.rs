//! What happens to a node.

use std::time::{Duration, Instant};

use super::Watch;
use super::change::Refusal;
use crate::cluster::Role;
use crate::node::history::{Freshness, Lag, Life, Standing};
use crate::report::Access;

/// What happened to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A dial that began then failed.
    DialFailed { began: Instant, failure: Failure },
    /// A caller's dial succeeded.
    Dialled,
    /// A connection opened then was lost.
    ConnectionLost { opened: Instant },
    /// A probe passed.
    ProbePassed { life: Life, access: Access },
    /// A probe failed, or took longer than its timeout.
    ProbeFailed(Failure),
    /// Somebody found the last good probe too old; nothing happens if it is not.
    Silence,
    /// The replica, as its last passed probe has seen it, was compared with the primary; after a
    /// probe of either.
    Measured(Evidence),
    /// The operator takes the node out.
    Drained,
    /// The operator takes the node in again.
    Resumed,
    /// The cluster uses the node as something else from now on.
    RoleChanged(Role),
    /// The server is not one of the cluster.
    Refused(Refusal),
    /// The server is one of the cluster, as far as can be seen.
    Accepted,
}

/// Why a server could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No answer, refused, or lost.
    Death,
    /// It has too many connections.
    Load,
    /// It does not accept the name or password.
    Authentication,
}

/// What is known of how far a replica is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// By the history of positions.
    Standing(Standing),
    /// No position to be had: the server's own number, `None` if it says that it has none.
    Reported(Option<Duration>),
    /// No primary has answered since the start, and no other replica is known to be further: the
    /// best there is.
    Furthest,
    /// This kind of server cannot tell.
    Unreported,
}

/// How a lag compares with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Fresh,
    Late,
    Unsure,
}

impl Evidence {
    pub(super) fn lag(&self, now: Instant, patience: Duration) -> Lag {
        match self {
            Self::Standing(standing) => standing.lag(now, patience),
            Self::Reported(Some(lag)) => Lag::Known(*lag),
            Self::Reported(None) | Self::Furthest | Self::Unreported => Lag::Unknown,
        }
    }

    /// Compares the lag with `limit`; without a limit everything is fresh that follows the primary.
    pub(super) fn judge(
        &self,
        limit: Option<Duration>,
        now: Instant,
        patience: Duration,
    ) -> Verdict {
        let lag = self.lag(now, patience);
        match (self, limit) {
            (Self::Furthest | Self::Unreported, _) => Verdict::Fresh,
            (Self::Standing(standing), None) if standing.fresh_as_of == Freshness::Unknown => {
                Verdict::Unsure
            }
            (_, None) => Verdict::Fresh,
            (_, Some(limit)) if lag.is_within(limit) => Verdict::Fresh,
            (_, Some(limit)) if lag.exceeds(limit) => Verdict::Late,
            (_, Some(_)) => Verdict::Unsure,
        }
    }

    /// Tells whether a replica of which this is known may be asked.
    pub(crate) fn is_fresh(&self, limit: Option<Duration>, watch: Watch, now: Instant) -> bool {
        self.judge(limit, now, watch.patience()) == Verdict::Fresh
    }

    /// Tells whether the data is certainly no older than `limit`.
    pub(super) fn is_within(&self, limit: Duration, now: Instant) -> bool {
        match self {
            Self::Standing(standing) => standing.age(now).is_within(limit),
            Self::Reported(lag) => lag.is_some_and(|lag| lag <= limit),
            Self::Furthest | Self::Unreported => false,
        }
    }

    /// Tells whether everything from before `returned` is there; once the primary is silent,
    /// everything that is known of it. Without positions there is nothing to go by.
    pub(super) fn includes(&self, returned: Instant, now: Instant, patience: Duration) -> bool {
        match self {
            Self::Standing(standing) => {
                standing.includes(returned.min(standing.reference(now, patience)))
            }
            Self::Reported(_) | Self::Furthest | Self::Unreported => true,
        }
    }
}

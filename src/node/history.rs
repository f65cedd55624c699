//! Lag by position history: when did the primary stand where this replica stands now; pure.
//!
//! A sample says that everything committed before an instant lies at or before a position. So
//! the data of a replica is complete as of the newest sample whose position it has applied. That
//! needs no clock but this process's own, holds on an idle primary, with a replica that receives
//! nothing and with a monitor that is dead, and errs on one side only: the lag is over-estimated,
//! by a tick and a probe at most and an eighth of the lag for what was thinned out.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::position::{Coverage, Position};

/// How long samples are kept: a replica further behind than this is late by any measure.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The part of its age by which two neighbouring samples may be apart.
const SPACING: u32 = 8;

/// One run of one server process, by whatever tells it from the run before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Life(Arc<str>);

impl Life {
    pub(crate) fn new(mark: impl Into<Arc<str>>) -> Self {
        Self(mark.into())
    }
}

/// The server whose positions a history holds: the primary, in one life.
///
/// Its timeline needs no mention: it is part of the position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its place in the cluster.
    pub(crate) place: usize,
    pub(crate) life: Life,
}

/// A stretch of history without a break; comparisons across a break mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Era(u64);

impl Era {
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn numbered(number: u64) -> Self {
        Self(number)
    }
}

/// Where the primary stood, and when.
#[derive(Debug, Default)]
pub(crate) struct History {
    source: Option<Source>,
    era: Era,
    /// Oldest first; each covers those before it.
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    /// Before the question was sent: what was committed before it is in the position.
    sent: Instant,
    position: Position,
}

/// What a sample of the primary did to the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It goes on.
    Continued,
    /// It begins anew: the first sample, another server, life or timeline.
    Begun,
    /// It begins anew because the primary has lost what it had shown.
    WentBack,
    /// Nothing is known any more: the primary has no position.
    NoPosition,
    /// The sample came too late to say anything.
    Late,
}

impl History {
    /// Takes in where the primary stands, as asked at `sent`, an instant before sending.
    ///
    /// Only what a primary said of itself belongs here: a replica's position is a lower bound.
    pub(crate) fn record(
        &mut self,
        source: &Source,
        sent: Instant,
        position: Position,
    ) -> Recorded {
        let recorded = self.continuity(source, sent, &position);
        match recorded {
            Recorded::Continued => {}
            Recorded::Begun | Recorded::WentBack | Recorded::NoPosition => self.begin(source),
            Recorded::Late => return recorded,
        }
        match self.samples.back_mut() {
            // nothing was committed in between: what was complete then is complete now
            Some(last) if last.position.covers(&position) == Coverage::Yes => last.sent = sent,
            _ if position.is_empty() => {}
            _ => {
                self.samples.push_back(Sample { sent, position });
                self.thin(sent);
            }
        }
        recorded
    }

    fn continuity(&self, source: &Source, sent: Instant, position: &Position) -> Recorded {
        let last = self.samples.back();
        if last.is_some_and(|last| sent < last.sent) {
            return Recorded::Late;
        }
        if position.is_empty() {
            return Recorded::NoPosition;
        }
        let same_server = |own: &Source| own.place == source.place;
        let Some(last) = last.filter(|_| self.source.as_ref().is_some_and(same_server)) else {
            return Recorded::Begun;
        };
        match position.covers(&last.position) {
            // in whichever life: a crash is how it happens
            Coverage::No => Recorded::WentBack,
            Coverage::Yes if self.source.as_ref() == Some(source) => Recorded::Continued,
            Coverage::Yes | Coverage::Incomparable => Recorded::Begun,
        }
    }

    fn begin(&mut self, source: &Source) {
        self.samples.clear();
        self.source = Some(source.clone());
        self.era.0 += 1;
    }

    /// Drops samples that are close together for their age, and those that are too old.
    fn thin(&mut self, now: Instant) {
        let mut place = 1;
        while place + 1 < self.samples.len() {
            let next = self.samples[place + 1].sent;
            let gap = next.duration_since(self.samples[place - 1].sent);
            if gap * SPACING <= now.duration_since(next) {
                self.samples.remove(place);
            } else {
                place += 1;
            }
        }
        let old = |sample: &Sample| now.duration_since(sample.sent) > KEPT_FOR;
        while self.samples.front().is_some_and(old) {
            self.samples.pop_front();
        }
    }

    /// Compares a replica that has applied `replica` with the primary.
    ///
    /// To be done anew whenever either of them was sampled.
    pub(crate) fn compare(&self, replica: &Position) -> Standing {
        let applied = |sample: &Sample| replica.covers(&sample.position) == Coverage::Yes;
        let count = self.samples.partition_point(applied);
        let fresh_as_of = match (count, self.samples.front()) {
            (1.., _) => Freshness::Known(self.samples[count - 1].sent),
            (0, Some(oldest)) => match replica.covers(&oldest.position) {
                Coverage::Incomparable => Freshness::Unknown,
                _ => Freshness::Before(oldest.sent),
            },
            (0, None) => Freshness::Unknown,
        };
        Standing {
            fresh_as_of,
            newest: self.samples.back().map(|sample| sample.sent),
        }
    }

    /// Returns the present era: while it is the same, a replica whose standing
    /// [includes](Standing::includes) the instant at which a write on the primary ended has it.
    pub(crate) fn era(&self) -> Era {
        self.era
    }
}

/// As of when the data of a replica is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Everything that the primary had committed before this instant is there.
    Known(Instant),
    /// It lacks something that was committed before this instant, the first one known.
    Before(Instant),
    /// Nothing to compare with, or another history.
    Unknown,
}

impl Freshness {
    fn lag(self, now: Instant) -> Lag {
        match self {
            Self::Known(instant) => Lag::Known(now.saturating_duration_since(instant)),
            Self::Before(instant) => Lag::AtLeast(now.saturating_duration_since(instant)),
            Self::Unknown => Lag::Unknown,
        }
    }
}

/// Where a replica stood when it was last compared with the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// As of when its data is complete.
    pub(crate) fresh_as_of: Freshness,
    /// When the primary last answered.
    pub(crate) newest: Option<Instant>,
}

impl Standing {
    /// Tells whether everything committed on the primary before `instant` is known to be there.
    pub(crate) fn includes(&self, instant: Instant) -> bool {
        self.tells(instant) == Some(true)
    }

    /// As [`includes`](Self::includes); `None` if there is nothing to compare with.
    pub(crate) fn tells(&self, instant: Instant) -> Option<bool> {
        match self.fresh_as_of {
            Freshness::Known(fresh) => Some(fresh >= instant),
            Freshness::Before(_) => Some(false),
            Freshness::Unknown => None,
        }
    }

    /// Returns the age of the data, which grows as long as the primary is silent: for a block
    /// that asked for a limit of its own.
    pub(crate) fn age(&self, now: Instant) -> Lag {
        self.fresh_as_of.lag(now)
    }

    /// Returns the lag that counts for ordinary blocks: the age of the data, but as of its last
    /// answer once the primary is silent for longer than `patience`, since nobody can be late
    /// against a primary that is gone.
    pub(crate) fn lag(&self, now: Instant, patience: Duration) -> Lag {
        self.fresh_as_of.lag(self.reference(now, patience))
    }

    /// Returns the lag to be shown: 0 for a replica that has applied all that is known of the
    /// primary, although its data ages until the primary is asked again.
    pub(crate) fn shown_lag(&self, now: Instant, patience: Duration) -> Lag {
        match (self.fresh_as_of, self.newest) {
            (Freshness::Known(fresh), Some(newest)) if fresh == newest => {
                Lag::Known(Duration::ZERO)
            }
            _ => self.lag(now, patience),
        }
    }

    /// Returns the latest instant at which the primary counts as known: `now`, or that of its
    /// last answer if it is silent for longer than `patience`.
    pub(crate) fn reference(&self, now: Instant, patience: Duration) -> Instant {
        match self.newest {
            Some(newest) if now.saturating_duration_since(newest) > patience => newest,
            _ => now,
        }
    }
}

/// How far a replica is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lag {
    /// As far as this.
    Known(Duration),
    /// This far or further.
    AtLeast(Duration),
    /// Not known, which counts as infinite.
    Unknown,
}

impl Lag {
    /// Tells whether it is certainly no more than `limit`.
    pub(crate) fn is_within(self, limit: Duration) -> bool {
        matches!(self, Self::Known(lag) if lag <= limit)
    }

    /// Tells whether it is certainly more than `limit`.
    pub(crate) fn exceeds(self, limit: Duration) -> bool {
        matches!(self, Self::Known(lag) | Self::AtLeast(lag) if lag > limit)
    }

    /// Returns it as a number, if it is one.
    pub(crate) fn known(self) -> Option<Duration> {
        match self {
            Self::Known(lag) => Some(lag),
            Self::AtLeast(_) | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(lag) => write!(f, "{:.1} s", lag.as_secs_f64()),
            Self::AtLeast(lag) => write!(f, "at least {:.1} s", lag.as_secs_f64()),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

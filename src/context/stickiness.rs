//! What one request has written to one cluster: tickets, their end, and the epoch; pure.
//!
//! A write takes a ticket *before* it runs. Whatever is not proven to have left no trace keeps
//! its ticket; a proven failure gives back its own and nobody else's.
//!
//! What is kept ends in one of three ways: a replica's data is complete as of an instant after the
//! write; it has applied the position that was read after the write; or enough time has passed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::seen::{Seen, Who};
use crate::node::Era;
use crate::position::{Coverage, Position};

/// The right of one write to be seen by the reads that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// How a write, transaction or unit ended, as far as the marks are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has, or may have, left something behind.
    Kept,
    /// It is proven to have left nothing behind.
    GivenBack,
}

/// A write that has ended, in the primary's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// A replica whose data is complete as of this instant has it.
    pub(crate) at: Instant,
    /// Comparisons with another stretch of history mean nothing.
    pub(crate) era: Era,
    /// From this instant on it is not waited for where nothing can be told of it.
    until: Instant,
}

impl Ended {
    pub(crate) fn new(at: Instant, era: Era, until: Instant) -> Self {
        Self { at, era, until }
    }
}

/// What a replica must have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one lives as long as a block, in one place"
)]
pub(crate) enum Need {
    /// Nothing was written that it could miss.
    Nothing,
    /// More than can be told of a replica: a write still runs, or only time will tell.
    Primary,
    /// All of these.
    Data {
        /// It must include this write.
        ended: Option<Ended>,
        /// It must have applied this.
        reached: Option<Reached>,
        /// It must show nothing older than this.
        seen: Option<Seen>,
    },
}

/// Whether a replica misses anything that a context needs; from the worst to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Has {
    NotAll,
    /// It had not when it was last asked; by now it may.
    NotKnownToHave,
    All,
}

impl Need {
    /// Tells whether a replica has all of this at `now`: which ended writes its data includes, `None`
    /// where nothing can be told of that, and which positions it covers, as far as it was asked.
    pub(crate) fn met_by(
        &self,
        who: Who,
        now: Instant,
        tells: impl Fn(&Ended) -> Option<bool>,
        covers: impl Fn(&Position) -> Coverage,
    ) -> Has {
        let includes = |ended: &Ended| tells(ended) == Some(true);
        let (ended, reached, seen) = match self {
            Self::Nothing => return Has::All,
            Self::Primary => return Has::NotAll,
            Self::Data {
                ended,
                reached,
                seen,
            } => (ended, reached, seen),
        };
        let has = |ended: &Ended| tells(ended).unwrap_or(now >= ended.until);
        if !ended.as_ref().is_none_or(has) {
            return Has::NotAll;
        }
        let written = match reached {
            None => Has::All,
            Some(reached) if reached.same_as.as_ref().is_some_and(includes) => Has::All,
            Some(reached) => Has::by(covers(&reached.position)),
        };
        match seen {
            Some(seen) => written.min(seen.met_by(who, includes, covers)),
            None => written,
        }
    }

    /// Needs, besides, that nothing older is shown than was seen.
    pub(crate) fn after(self, seen: Option<Seen>) -> Self {
        match self {
            Self::Primary => Self::Primary,
            Self::Nothing if seen.is_none() => Self::Nothing,
            Self::Nothing => Self::Data {
                ended: None,
                reached: None,
                seen,
            },
            Self::Data { ended, reached, .. } => Self::Data {
                ended,
                reached,
                seen,
            },
        }
    }

    /// The position that is waited for, unless it stands for a write to the primary of this era: then
    /// that has it.
    pub(crate) fn unproven(self, era: Era) -> Option<Position> {
        let Self::Data { reached, .. } = self else {
            return None;
        };
        let reached = reached?;
        let own = reached.same_as.is_some_and(|ended| ended.era == era);
        (!own).then_some(reached.position)
    }

    /// The node that was read from last, which is preferred.
    pub(crate) fn preferred(&self) -> Option<usize> {
        match self {
            Self::Data { seen, .. } => seen.as_ref()?.node,
            Self::Nothing | Self::Primary => None,
        }
    }
}

impl Has {
    pub(super) fn by(coverage: Coverage) -> Self {
        match coverage {
            Coverage::Yes => Self::All,
            Coverage::No => Self::NotKnownToHave,
            Coverage::Incomparable => Self::NotAll,
        }
    }
}

/// A position to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) position: Position,
    /// Whoever includes this write has reached it, too; `None` if the position came from elsewhere.
    pub(crate) same_as: Option<Ended>,
    /// Until when it sticks even if it turns out to be void.
    until: Option<Instant>,
}

/// The marks of one context for one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stickiness {
    next: u64,
    /// The writes that run, with the era in which they can be waited for.
    running: BTreeMap<Ticket, Option<Era>>,
    /// What nothing but time ends.
    until: Option<Instant>,
    /// As far as another request has written it, nobody knows on which server.
    elsewhere: Option<Instant>,
    ended: Option<Ended>,
    reached: Option<Reached>,
}

impl Stickiness {
    /// Takes a ticket for a write that is about to run.
    ///
    /// `era` is that of the history of the server that it runs on; `None` if there is none.
    pub(crate) fn begin(&mut self, era: Option<Era>) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.running.insert(ticket, era);
        ticket
    }

    /// Notes that a write may end later than it seems to: its connection is lost.
    pub(crate) fn doubt(&mut self, ticket: Ticket) {
        if let Some(era) = self.running.get_mut(&ticket) {
            *era = None;
        }
    }

    /// Ends a ticket; a kept one counts for `sticky_for` from now, the end of the write.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Instant,
        sticky_for: Duration,
    ) {
        match (self.running.remove(&ticket), outcome) {
            (None, _) | (_, Outcome::GivenBack) => {}
            (Some(None), Outcome::Kept) => self.mark(now, sticky_for),
            (Some(Some(era)), Outcome::Kept) => self.end(Ended {
                at: now,
                era,
                until: now + sticky_for,
            }),
        }
    }

    /// Marks without a ticket, as if a write had ended now of which nothing is known.
    pub(crate) fn mark(&mut self, now: Instant, sticky_for: Duration) {
        self.until = self.until.max(Some(now + sticky_for));
    }

    /// As [`mark`](Self::mark), for what another request has written, nobody knows on which server.
    pub(crate) fn mark_elsewhere(&mut self, now: Instant, sticky_for: Duration) {
        self.mark(now, sticky_for);
        self.elsewhere = self.elsewhere.max(Some(now + sticky_for));
    }

    /// Tells whether something sticks by time of which nobody knows on which server it was written.
    pub(crate) fn is_elsewhere(&self, now: Instant) -> bool {
        self.elsewhere.is_some_and(|until| now < until)
    }

    /// Takes in a write that has ended; of another era than the last one, that ends by time.
    fn end(&mut self, new: Ended) {
        self.ended = Some(match self.ended.take() {
            Some(old) if old.era == new.era => Ended {
                at: old.at.max(new.at),
                era: new.era,
                until: old.until.max(new.until),
            },
            Some(old) => {
                self.until = self.until.max(Some(old.until));
                new
            }
            None => new,
        });
    }

    /// Notes the position that was read, beginning at `asked`, from the server that has run the
    /// writes: all that have ended before are waited for by it.
    pub(crate) fn reach(&mut self, position: Position, asked: Instant) {
        let same_as = self.ended.take_if(|ended| ended.at <= asked);
        self.take_reached(Reached {
            position,
            same_as,
            until: same_as.map(|ended| ended.until),
        });
    }

    /// Waits for a position that another request has left; should it be void, until then.
    pub(crate) fn resume(&mut self, position: Position, until: Instant) {
        self.take_reached(Reached {
            position,
            same_as: None,
            until: Some(until),
        });
    }

    fn take_reached(&mut self, new: Reached) {
        let Some(old) = self.reached.take() else {
            self.reached = Some(new);
            return;
        };
        let same_as = match (old.same_as, new.same_as) {
            (Some(old), Some(new)) if old.era == new.era => Some(new),
            _ => None,
        };
        let until = old.until.max(new.until);
        self.reached = match old.position.merge(&new.position) {
            Some(position) => Some(Reached {
                position,
                same_as,
                until,
            }),
            // of two systems: the one that was written to last
            None => Some(new),
        };
    }

    /// Drops the position, which the primary itself has not reached: it was invented, or lost, and
    /// only time counts.
    pub(crate) fn void(&mut self) {
        if let Some(reached) = self.reached.take() {
            self.until = self.until.max(reached.until);
        }
    }

    /// Tells what a replica must have at `now`.
    pub(crate) fn need(&self, now: Instant) -> Need {
        if !self.running.is_empty() || self.until.is_some_and(|until| now < until) {
            return Need::Primary;
        }
        match (self.ended, &self.reached) {
            (None, None) => Need::Nothing,
            (ended, reached) => Need::Data {
                ended,
                reached: reached.clone(),
                seen: None,
            },
        }
    }

    /// Tells for how much longer time alone would stick, and the position that stands for all
    /// that was written, if there is one.
    pub(crate) fn carried(
        &self,
        now: Instant,
        sticky_for: Duration,
    ) -> (Duration, Option<Position>) {
        let left = |until: Instant| until.saturating_duration_since(now);
        match self.need(now) {
            Need::Nothing => (Duration::ZERO, None),
            Need::Data {
                ended: None,
                reached: Some(reached),
                ..
            } => (sticky_for, Some(reached.position)),
            // a replica lacks it all the same
            Need::Data {
                ended: Some(ended), ..
            } if now >= ended.until => (sticky_for, None),
            Need::Primary if !self.running.is_empty() => (sticky_for, None),
            Need::Primary | Need::Data { .. } => {
                let ended = self.ended.map(|ended| ended.until);
                let until = self.until.max(ended).map_or(Duration::ZERO, left);
                // a position without its own end is given the longest time there is
                let reached = self.reached.as_ref().map_or(Duration::ZERO, |_| sticky_for);
                (until.max(reached), None)
            }
        }
    }

    /// Tells whether a replica could miss something that this context wrote.
    pub(crate) fn is_sticky(&self, now: Instant) -> bool {
        self.need(now) != Need::Nothing
    }

    /// Forgets what was written; writes that still run keep their tickets.
    pub(crate) fn unstick(&mut self) {
        self.until = None;
        self.elsewhere = None;
        self.ended = None;
        self.reached = None;
    }

    /// Takes over the ended writes of a context that ran inside this one.
    pub(crate) fn absorb(&mut self, inner: &Self) {
        self.until = self.until.max(inner.until);
        self.elsewhere = self.elsewhere.max(inner.elsewhere);
        if let Some(ended) = inner.ended {
            self.end(ended);
        }
        if let Some(reached) = inner.reached.clone() {
            self.take_reached(reached);
        }
    }

    /// The writes that still run, with the era in which they can be waited for.
    pub(crate) fn running(&self) -> impl Iterator<Item = (Ticket, Option<Era>)> {
        self.running.iter().map(|(ticket, era)| (*ticket, *era))
    }
}

#[cfg(test)]
mod tests;

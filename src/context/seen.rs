//! What a context has read last, so that its next blocks see nothing older.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::stickiness::{Ended, Has, Need};
use super::{Context, Place};
use crate::position::{Coverage, Position};
use crate::report::ServerTag;

/// What a context has read last.
///
/// Whoever meets one of these shows nothing older: the node that has answered, one whose data is
/// complete as of a later instant, one that has reached all that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The place of the node, if it was in this process.
    pub(crate) node: Option<usize>,
    /// The end of the read, in the primary's history.
    pub(crate) by: Option<Ended>,
    /// What the server had at most when it answered, where somebody has asked.
    pub(crate) floor: Option<Arc<Floor>>,
    /// From this instant on no replica that is fresh enough to serve is as old.
    pub(crate) until: Instant,
}

/// What a server had at most when it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Floor {
    /// The server in its run.
    pub(crate) server: ServerTag,
    pub(crate) position: Option<Position>,
}

impl Floor {
    /// What two servers have shown.
    pub(super) fn and(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        let positions = self.position.zip(other.position);
        Self {
            server: match self.server == other.server {
                true => self.server,
                false => ServerTag::NOBODY,
            },
            position: positions.and_then(|(one, other)| one.merge(&other)),
        }
    }
}

/// Who is asked whether it shows nothing older.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    /// Its place, if what is known of the node holds for it.
    pub(crate) node: Option<usize>,
    pub(crate) server: Option<ServerTag>,
}

impl Seen {
    pub(crate) fn met_by(
        &self,
        who: Who,
        includes: impl Fn(&Ended) -> bool,
        covers: impl Fn(&Position) -> Coverage,
    ) -> Has {
        let server = self.floor.as_ref().map(|floor| floor.server);
        if self.node.is_some() && self.node == who.node
            || server.is_some() && server == who.server
            || self.by.as_ref().is_some_and(includes)
        {
            return Has::All;
        }
        let floor = self.floor.as_ref();
        let position = floor.and_then(|floor| floor.position.as_ref());
        position.map_or(Has::NotAll, |position| Has::by(covers(position)))
    }
}

impl Context {
    /// Tells what a replica of the cluster must have to miss nothing that was written here, and to
    /// show nothing older than was seen here.
    pub(crate) fn demand_for(&self, place: &Place, now: Instant) -> Need {
        self.take_up(place);
        let marks = self.0.marks.lock();
        marks.of(place.id).map_or(Need::Nothing, |marks| {
            let seen = marks.seen.as_ref().filter(|seen| now < seen.until);
            marks.stickiness.need(now).after(seen.cloned())
        })
    }

    /// Notes what was read last.
    pub(crate) fn saw(&self, place: &Place, seen: Seen) {
        if seen.floor.is_some() {
            self.0.has_viewed.store(true, Ordering::Release);
        }
        self.with_marks(place, |marks| marks.seen = Some(seen));
    }
}

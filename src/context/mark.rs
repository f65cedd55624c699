//! A write on its way.

use std::time::Instant;

use super::stickiness::{Outcome, Ticket};
use super::{ClusterId, Context};

/// A write on its way, and the context that will have to see it.
///
/// Dropped without being settled, the write counts as done: nobody knows better.
#[derive(Debug)]
pub(crate) struct WriteMark {
    pub(super) context: Context,
    pub(super) cluster: ClusterId,
    pub(super) ticket: Ticket,
}

impl WriteMark {
    pub(crate) fn belongs_to(&self, context: &Context) -> bool {
        self.context.is(context)
    }

    /// Notes that the write may end later than it seems to, because its connection is lost.
    pub(crate) fn doubt(&self) {
        let mut all = self.context.0.marks.lock();
        if let Some(marks) = all.of_mut(self.cluster) {
            marks.stickiness.doubt(self.ticket);
            let outer = marks.outer.get(&self.ticket);
            let outer: Vec<_> = outer.into_iter().flatten().map(WriteMark::handle).collect();
            // never two of these locks at once
            drop(all);
            for (context, cluster, ticket) in outer {
                context.doubt(cluster, ticket);
            }
        }
    }

    fn handle(&self) -> (Context, ClusterId, Ticket) {
        (self.context.clone(), self.cluster, self.ticket)
    }

    pub(crate) fn give_back(self) {
        self.settle(Outcome::GivenBack);
    }

    fn settle(&self, outcome: Outcome) {
        // the lock is free again before those of the contexts around are taken
        for mark in self.settle_here(outcome) {
            mark.settle(outcome);
        }
    }

    /// Settles the ticket in its own context and returns the marks that end with it.
    fn settle_here(&self, outcome: Outcome) -> Vec<WriteMark> {
        let now = Instant::now();
        let mut all = self.context.0.marks.lock();
        let Some(marks) = all.of_mut(self.cluster) else {
            return vec![];
        };
        let sticky_for = marks.place.sticky_for;
        marks
            .stickiness
            .settle(self.ticket, outcome, now, sticky_for);
        marks.outer.remove(&self.ticket).unwrap_or_default()
    }
}

impl Drop for WriteMark {
    fn drop(&mut self) {
        // a ticket that was given back is not running any more, and this does nothing
        self.settle(Outcome::Kept);
    }
}

//! What a context knows of each cluster: what was written there, and what was read last.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::stickiness::{Stickiness, Ticket};
use super::{ClusterId, Context, Place, Seen, WriteMark};

/// What a context knows of one cluster.
#[derive(Debug)]
pub(super) struct Marks {
    pub(super) stickiness: Stickiness,
    /// What was read last.
    pub(super) seen: Option<Seen>,
    pub(super) place: Place,
    /// The marks that running writes have in contexts around this one, which was left meanwhile.
    pub(super) outer: BTreeMap<Ticket, Vec<WriteMark>>,
}

impl Marks {
    pub(super) fn new(stickiness: Stickiness, place: &Place) -> Self {
        Self {
            stickiness,
            seen: None,
            place: place.clone(),
            outer: BTreeMap::new(),
        }
    }
}

impl Context {
    /// Tells whether nothing was written or read here, nor by the requests before.
    pub(crate) fn is_blank(&self) -> bool {
        let noted = [&self.0.is_marked, &self.0.has_resumed];
        !noted.iter().any(|noted| noted.load(Ordering::Acquire))
    }

    /// Looks at the marks of a cluster, or makes them.
    pub(super) fn with_marks<R>(&self, place: &Place, f: impl FnOnce(&mut Marks) -> R) -> R {
        self.take_up(place);
        let mut all = self.0.marks.lock();
        self.0.is_marked.store(true, Ordering::Release);
        let new = || Box::new(Marks::new(Stickiness::default(), place));
        f(all.entry(place.id).or_insert_with(new))
    }

    pub(super) fn change<R>(&self, place: &Place, change: impl FnOnce(&mut Stickiness) -> R) -> R {
        self.with_marks(place, |marks| {
            let result = change(&mut marks.stickiness);
            self.0.epoch.fetch_add(1, Ordering::Release);
            result
        })
    }

    /// Takes over what was written and read in a context inside this one, which was left at `now`.
    pub(super) fn absorb(&self, inner: &Self, now: Instant) {
        if self.is(inner) {
            return;
        }
        let copy = |marks: &Marks| {
            let sticky = marks.stickiness.is_sticky(now);
            let stickiness = sticky.then(|| marks.stickiness.clone());
            (stickiness, marks.seen.clone(), marks.place.clone())
        };
        // copied first: never two of these locks at once
        let all = inner.0.marks.lock();
        let taken: Vec<_> = all.values().map(|marks| copy(marks)).collect();
        drop(all);
        for (stickiness, seen, place) in taken {
            if let Some(seen) = seen {
                self.saw(&place, seen);
            }
            let Some(stickiness) = stickiness else {
                continue;
            };
            self.change(&place, |outer| outer.absorb(&stickiness));
            for (ticket, era) in stickiness.running() {
                inner.bequeath(ticket, self.begin_write(&place, era));
            }
        }
    }

    pub(super) fn doubt(&self, cluster: ClusterId, ticket: Ticket) {
        if let Some(marks) = self.0.marks.lock().get_mut(&cluster) {
            marks.stickiness.doubt(ticket);
        }
    }

    /// Lets a mark of the context around this one end with the write that still runs in this one.
    fn bequeath(&self, ticket: Ticket, mark: WriteMark) {
        let mut all = self.0.marks.lock();
        if let Some(marks) = all.get_mut(&mark.cluster) {
            if marks
                .stickiness
                .running()
                .any(|(running, _)| running == ticket)
            {
                let outer = marks.outer.entry(ticket).or_default();
                if !outer.iter().any(|known| known.belongs_to(&mark.context)) {
                    outer.push(mark);
                    return;
                }
            }
        }
        // it has ended by now, or has such a mark; never two of these locks at once
        drop(all);
        drop(mark);
    }
}

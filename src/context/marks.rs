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

/// The marks of all clusters; mostly there is one cluster.
#[derive(Debug, Default)]
pub(super) struct AllMarks(Vec<Marks>);

impl AllMarks {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Marks> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Marks> {
        self.0.iter_mut()
    }

    pub(super) fn of(&self, cluster: ClusterId) -> Option<&Marks> {
        self.iter().find(|marks| marks.place.id == cluster)
    }

    pub(super) fn of_mut(&mut self, cluster: ClusterId) -> Option<&mut Marks> {
        self.iter_mut().find(|marks| marks.place.id == cluster)
    }

    /// Adds those of a cluster that has none.
    pub(super) fn add(&mut self, marks: Marks) {
        self.0.reserve_exact(1);
        self.0.push(marks);
    }
}

impl Context {
    /// Tells whether nothing was written or read here, nor by the requests before.
    pub(crate) fn is_blank(&self) -> bool {
        !self.0.is_noted.load(Ordering::Acquire)
    }

    /// Looks at the marks of a cluster, or makes them.
    pub(super) fn with_marks<R>(&self, place: &Place, f: impl FnOnce(&mut Marks) -> R) -> R {
        self.take_up(place);
        let mut all = self.0.marks.lock();
        self.0.is_noted.store(true, Ordering::Release);
        if all.of(place.id).is_none() {
            all.add(Marks::new(Stickiness::default(), place));
        }
        f(all.of_mut(place.id).expect("was added above"))
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
        let taken: Vec<_> = inner.0.marks.lock().iter().map(copy).collect();
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
        if let Some(marks) = self.0.marks.lock().of_mut(cluster) {
            marks.stickiness.doubt(ticket);
        }
    }

    /// Lets a mark of the context around this one end with the write that still runs in this one.
    fn bequeath(&self, ticket: Ticket, mark: WriteMark) {
        let mut all = self.0.marks.lock();
        if let Some(marks) = all.of_mut(mark.cluster) {
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

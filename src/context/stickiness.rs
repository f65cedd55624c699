//! What one request has written to one cluster: tickets, their end, and the epoch; pure.
//!
//! A write takes a ticket *before* it runs. Whatever is not proven to have left no trace keeps
//! its ticket; a proven failure gives back its own and nobody else's.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

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

/// The marks of one context for one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stickiness {
    next: u64,
    running: BTreeSet<Ticket>,
    until: Option<Instant>,
}

impl Stickiness {
    /// Takes a ticket for a write that is about to run.
    pub(crate) fn begin(&mut self) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.running.insert(ticket);
        ticket
    }

    /// Ends a ticket; a kept one counts for `sticky_for` from now, the end of the write.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Instant,
        sticky_for: Duration,
    ) {
        if self.running.remove(&ticket) && outcome == Outcome::Kept {
            self.mark(now, sticky_for);
        }
    }

    /// Marks without a ticket, as if a write had ended now.
    pub(crate) fn mark(&mut self, now: Instant, sticky_for: Duration) {
        self.until = self.until.max(Some(now + sticky_for));
    }

    /// Tells whether a replica could miss something that this context wrote.
    pub(crate) fn is_sticky(&self, now: Instant) -> bool {
        !self.running.is_empty() || self.until.is_some_and(|until| now < until)
    }

    /// Forgets what was written; writes that still run keep their tickets.
    pub(crate) fn unstick(&mut self) {
        self.until = None;
    }

    /// Takes over the ended writes of a context that ran inside this one.
    pub(crate) fn absorb(&mut self, inner: &Self) {
        self.until = self.until.max(inner.until);
    }

    /// The writes that still run.
    pub(crate) fn running(&self) -> impl Iterator<Item = Ticket> {
        self.running.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STICKY: Duration = Duration::from_secs(12);

    fn clock() -> impl Fn(u64) -> Instant {
        let start = Instant::now();
        move |seconds| start + Duration::from_secs(seconds)
    }

    #[test]
    fn a_write_sticks_from_its_start_until_sticky_for_after_its_end() {
        let at = clock();
        let mut marks = Stickiness::default();
        assert!(!marks.is_sticky(at(0)), "nothing written");
        let ticket = marks.begin();
        assert!(
            marks.is_sticky(at(1000)),
            "a running write sticks however long it takes"
        );
        marks.settle(ticket, Outcome::Kept, at(1000), STICKY);
        assert!(
            marks.is_sticky(at(1011)),
            "counted from the end of the write"
        );
        assert!(!marks.is_sticky(at(1012)), "and no longer");
    }

    #[test]
    fn a_proven_failure_gives_back_its_own_ticket_only() {
        let at = clock();
        let mut marks = Stickiness::default();
        let (first, second) = (marks.begin(), marks.begin());
        marks.settle(second, Outcome::GivenBack, at(0), STICKY);
        assert!(marks.is_sticky(at(0)), "the first still runs");
        marks.settle(first, Outcome::Kept, at(0), STICKY);
        let third = marks.begin();
        marks.settle(third, Outcome::GivenBack, at(1), STICKY);
        assert!(marks.is_sticky(at(1)), "the first has written");
        assert!(!marks.is_sticky(at(12)), "the failure did not prolong it");
    }

    #[test]
    fn unstick_leaves_the_tickets_of_running_writes() {
        let at = clock();
        let mut marks = Stickiness::default();
        marks.mark(at(0), STICKY);
        marks.unstick();
        assert!(!marks.is_sticky(at(0)), "forgotten");
        let ticket = marks.begin();
        marks.unstick();
        assert!(marks.is_sticky(at(0)), "a write runs");
        marks.settle(ticket, Outcome::Kept, at(0), STICKY);
        assert!(marks.is_sticky(at(0)), "and has ended after unstick");
    }

    #[test]
    fn the_marks_of_an_inner_context_reach_the_outer_one() {
        let at = clock();
        let (mut outer, mut inner) = (Stickiness::default(), Stickiness::default());
        inner.mark(at(5), STICKY);
        outer.absorb(&inner);
        assert!(outer.is_sticky(at(16)) && !outer.is_sticky(at(17)));
    }

    /// A step of an interleaving: begin a write, or end the n-th running one.
    #[derive(Debug, Clone)]
    enum Step {
        Begin,
        End(usize, Outcome),
        Unstick,
        Tick,
    }

    fn step() -> impl Strategy<Value = Step> {
        let outcome = prop_oneof![Just(Outcome::Kept), Just(Outcome::GivenBack)];
        prop_oneof![
            3 => Just(Step::Begin),
            3 => (0usize..4, outcome).prop_map(|(n, outcome)| Step::End(n, outcome)),
            1 => Just(Step::Unstick),
            2 => Just(Step::Tick),
        ]
    }

    proptest! {
        #[test]
        fn sticky_exactly_while_a_write_runs_or_has_ended_recently(
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            let at = clock();
            let mut marks = Stickiness::default();
            let (mut now, mut running, mut last_kept) = (0, Vec::new(), None);
            for step in steps {
                match step {
                    Step::Begin => running.push(marks.begin()),
                    Step::End(n, outcome) if n < running.len() => {
                        marks.settle(running.remove(n), outcome, at(now), STICKY);
                        if outcome == Outcome::Kept {
                            last_kept = Some(now);
                        }
                    }
                    Step::End(..) => {}
                    Step::Unstick => {
                        marks.unstick();
                        last_kept = None;
                    }
                    Step::Tick => now += 5,
                }
                let expected = !running.is_empty()
                    || last_kept.is_some_and(|kept: u64| now < kept + STICKY.as_secs());
                prop_assert_eq!(marks.is_sticky(at(now)), expected);
            }
        }
    }
}

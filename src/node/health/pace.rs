//! When a node may be dialled again.

use std::time::{Duration, Instant};

use rand::Rng;

use super::view::Dialler;

/// The least time between two attempts with a name or password that was not accepted: servers
/// ban hosts that insist.
const REFUSED: Duration = Duration::from_secs(30);

/// Delays that double from `first` to `longest`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ladder {
    first: Duration,
    longest: Duration,
}

impl Ladder {
    /// Of dials that must go on: the primary's, and those to a server that is merely full.
    pub(super) const DIALS: Self = Self {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(2),
    };

    /// Of a replica that is down.
    pub(super) fn quarantine(first: Duration) -> Self {
        let longest = first.max(Duration::from_secs(30));
        Self { first, longest }
    }

    fn step(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.min(20));
        doubled.min(self.longest)
    }
}

/// What a delay is multiplied by, so that a fleet does not act in step: 0.5 to 1.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Jitter(f64);

impl Jitter {
    /// Leaves a delay as it is.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self(1.0);

    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        Self(rng.random_range(0.5..1.5))
    }

    fn of(self, delay: Duration) -> Duration {
        delay.mul_f64(self.0)
    }
}

/// The failed attempts since the last success, and when the next may be made.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    failures: u32,
    redial: Option<Instant>,
    /// Before this instant not even a monitor dials: the server has asked for a pause.
    pause: Option<Instant>,
    /// A refusal of the password has been told.
    refused: bool,
}

impl Pace {
    pub(super) fn allows(&self, dialler: Dialler, now: Instant) -> bool {
        let until = match dialler {
            // it looks regularly, whether the server is there or not
            Dialler::Monitor => self.pause,
            Dialler::Caller => self.redial,
        };
        until.is_none_or(|until| now >= until)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.redial
    }

    /// Forgets all failures.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Notes the first failure of a kind; returns when the next attempt may be made.
    pub(super) fn begin(&mut self, ladder: Ladder, at: Instant, jitter: Jitter) -> Instant {
        self.failures = 0;
        self.back_off(ladder, at, jitter)
    }

    /// Notes one more failure; returns when the next attempt may be made.
    pub(super) fn back_off(&mut self, ladder: Ladder, at: Instant, jitter: Jitter) -> Instant {
        let delay = jitter.of(ladder.step(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.hold(at + delay)
    }

    /// Notes that the server was full, unless that is known.
    pub(super) fn slow_down(&mut self, at: Instant, jitter: Jitter) {
        if self.allows(Dialler::Caller, at) {
            self.pause = Some(self.back_off(Ladder::DIALS, at, jitter));
        }
    }

    /// Notes that the password was refused; returns when the next attempt may be made, and
    /// whether a refusal had been told before.
    pub(super) fn refuse(&mut self, at: Instant, jitter: Jitter) -> (Instant, bool) {
        // never less than `REFUSED`, so that the jitter only adds
        let delay = REFUSED / 2 + jitter.of(REFUSED);
        let told = std::mem::replace(&mut self.refused, true);
        let until = self.hold(at + delay);
        self.pause = Some(until);
        (until, told)
    }

    fn hold(&mut self, until: Instant) -> Instant {
        let later = self.redial.map_or(until, |redial| redial.max(until));
        self.redial = Some(later);
        later
    }
}

//! What a reader asks of the state of a node.

use std::time::{Duration, Instant};

use super::event::Verdict;
use super::{Evidence, Health, NodeState, Refusal, Watch};
use crate::cluster::Role;

/// The share of a replica that has just come back, in its first moment.
const FIRST_SHARE: f64 = 0.1;

/// Who wants to dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialler {
    Monitor,
    Caller,
}

impl Health {
    /// Returns the state as it is at `now`: a node that was not heard of for too long is down,
    /// even if the thread that should have told is stuck in it.
    pub(crate) fn state(&self, now: Instant) -> NodeState {
        match (self.visible(), self.heard) {
            (state @ (NodeState::Drained | NodeState::Down { .. }), _) => state,
            (_, Some(heard)) if self.is_silent(now) => NodeState::Down {
                until: heard + self.settings.watch.patience(),
            },
            (state, _) => state,
        }
    }

    /// Returns when the visible state began.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Returns when the last probe passed.
    pub(crate) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Tells whether the node may be asked with a connection that is open: a replica if it is up
    /// and its lag, which grows by itself, is within `max_lag`; the primary unless it is drained.
    ///
    /// Without a monitor somebody has to try: also a replica of which nothing is known, or whose
    /// quarantine is over.
    pub(crate) fn is_eligible(&self, now: Instant) -> bool {
        let on_demand = self.settings.watch == Watch::OnDemand;
        match (self.role, self.state(now)) {
            (_, NodeState::Drained) => false,
            (Role::Primary, _) => true,
            (Role::Replica, NodeState::Up) => self.evidence.is_some_and(|evidence| {
                let patience = self.settings.watch.patience();
                evidence.judge(self.settings.max_lag, now, patience) == Verdict::Fresh
            }),
            (Role::Replica, NodeState::Unknown) => on_demand && self.evidence.is_none(),
            (Role::Replica, NodeState::Down { until }) => on_demand && now >= until,
            (Role::Replica, NodeState::Lagging | NodeState::ReadOnly | NodeState::Refused) => false,
        }
    }

    /// Tells whether the node may be asked for a read that accepts data no older than `limit`, if
    /// it says so.
    pub(crate) fn admits(&self, limit: Option<Duration>, now: Instant) -> bool {
        let fresh = |limit| {
            self.evidence
                .is_some_and(|evidence| evidence.is_within(limit, now))
        };
        self.is_eligible(now) && limit.is_none_or(fresh)
    }

    /// Tells whether everything that the primary had committed before `instant` is there; `None` if
    /// the two can't be compared.
    pub(crate) fn includes(&self, instant: Instant) -> Option<bool> {
        match self.evidence {
            Some(Evidence::Standing(standing)) => standing.tells(instant),
            _ => None,
        }
    }

    /// Returns the state as of the last event.
    pub(crate) fn last_state(&self) -> NodeState {
        self.visible()
    }

    /// Returns why the server is not used although it answers.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Returns the lag to be shown; that of a node which does not answer is not known.
    pub(crate) fn shown_lag(&self, now: Instant) -> Option<Duration> {
        if matches!(self.state(now), NodeState::Down { .. }) {
            return None;
        }
        let patience = self.settings.watch.patience();
        match self.evidence? {
            Evidence::Standing(standing) => standing.shown_lag(now, patience).known(),
            Evidence::Reported(lag) => lag,
            Evidence::Furthest | Evidence::Unreported => None,
        }
    }

    /// Returns when the node may be dialled next.
    pub(crate) fn next_dial(&self) -> Option<Instant> {
        self.pace.next()
    }

    /// Tells whether a connection may be opened; a monitored replica that is down is dialled by
    /// its monitor alone.
    pub(crate) fn may_dial(&self, dialler: Dialler, now: Instant) -> bool {
        let monitored = self.settings.watch != Watch::OnDemand;
        let barred = match (self.role, self.state(now)) {
            (_, NodeState::Drained) => true,
            (Role::Replica, NodeState::Down { .. }) => monitored,
            _ => false,
        };
        self.pace.allows(dialler, now) && (dialler == Dialler::Monitor || !barred)
    }

    /// Returns the part of its weight that the node gets, above 0 and at most 1: a replica that
    /// is up again is cold, and late again if all come at once.
    pub(crate) fn weight_factor(&self, now: Instant) -> f64 {
        let slow_start = self.settings.slow_start;
        let elapsed = self
            .ramp_from
            .map(|from| now.saturating_duration_since(from));
        match elapsed {
            Some(elapsed) if elapsed < slow_start => {
                FIRST_SHARE + (1.0 - FIRST_SHARE) * elapsed.div_duration_f64(slow_start)
            }
            _ => 1.0,
        }
    }
}

//! The state of a node and what changes it; pure.
//!
//! ```text
//! Unknown -> Up <-> Lagging     by comparison with the primary
//!    ^        |        |
//!    |        v        v
//!    +------ Down { until }     only a passed probe ends it
//! ```
//! `ReadOnly` is a primary that refuses writes; `Refused` is a server that is no replica of the
//! primary; `Drained` is the operator's word and wins.
//!
//! *Replicas.* Death opens the circuit at once; the quarantine doubles with each failed attempt.
//! A node that is back, or in another life, may be in its own past: it is `Up` only when it has
//! applied what the primary had committed before its return.
//!
//! *The primary.* Its circuit never opens: `Down` is what is shown, and paces the dialling, while
//! pooled connections stay in use.
//!
//! *Hysteresis.* A replica goes out beyond `max_lag` and comes back at half of it, so that one that
//! wavers around the limit, or is late because of its readers, does not flap. Half is something
//! that the lag has to reach; a number of good samples in a row would let a slow wave through. It
//! is never less than a tick and a probe, which is what a healthy replica can show when probed.

mod change;
mod event;
mod pace;
#[cfg(test)]
mod tests;
mod view;

use std::time::{Duration, Instant};

pub use change::NodeState;
pub(crate) use change::{Cause, Change, Refusal};
use event::Verdict;
pub(crate) use event::{Event, Evidence, Failure};
pub(crate) use pace::Jitter;
use pace::{Ladder, Pace};
pub(crate) use view::Dialler;

use super::history::Life;
use crate::cluster::Role;
use crate::report::Access;

/// What the state of a node depends on besides events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HealthSettings {
    pub(crate) watch: Watch,
    /// The lag beyond which a replica is not asked; `None`: however late.
    pub(crate) max_lag: Option<Duration>,
    /// The first quarantine of a replica.
    pub(crate) quarantine: Duration,
    /// How long a replica that is up again takes to get its full share.
    pub(crate) slow_start: Duration,
}

impl HealthSettings {
    /// The lag at which a replica that was late is asked again.
    fn good_again(&self) -> Option<Duration> {
        let half = |max_lag: Duration| (max_lag / 2).max(self.watch.patience().min(max_lag));
        self.max_lag.map(half)
    }
}

/// Who looks after a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// A monitor; a node that nothing was heard of for longer than `patience` is down.
    Monitored { patience: Duration },
    /// Whoever needs it.
    OnDemand,
}

impl Watch {
    /// A monitor that probes each `check_interval`, give or take a tenth.
    pub(crate) fn monitored(check_interval: Duration, probe_timeout: Duration) -> Self {
        Self::Monitored {
            patience: check_interval + check_interval / 10 + probe_timeout,
        }
    }

    /// How long a server may be silent before it counts as gone; without a monitor its last
    /// answer is all there is.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Self::Monitored { patience } => patience,
            Self::OnDemand => Duration::ZERO,
        }
    }
}

/// The state of one node, and what is needed to find the next one.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    settings: HealthSettings,
    role: Role,
    /// Never `Drained` or `Refused`, which lie over the other states.
    state: NodeState,
    drained: bool,
    refusal: Option<Refusal>,
    /// When the visible state began.
    since: Instant,
    life: Option<Life>,
    /// When the last probe passed.
    heard: Option<Instant>,
    /// When it came back last, or was first known of.
    returned: Instant,
    /// It has been seen to include what was committed before its return.
    proven: bool,
    evidence: Option<Evidence>,
    pace: Pace,
    /// It has been in a state besides the first one.
    settled: bool,
    /// When it was up again.
    ramp_from: Option<Instant>,
}

impl Health {
    /// A node of which nothing is known, as of `now`, before the primary is first asked.
    pub(crate) fn new(role: Role, settings: HealthSettings, now: Instant) -> Self {
        Self {
            settings,
            role,
            state: NodeState::Unknown,
            drained: false,
            refusal: None,
            since: now,
            life: None,
            heard: None,
            returned: now,
            proven: false,
            evidence: None,
            pace: Pace::default(),
            settled: false,
            ramp_from: None,
        }
    }

    /// Takes in what happened at `at` and tells what it changed, to be logged once.
    pub(crate) fn on(&mut self, event: Event, at: Instant, jitter: Jitter) -> Option<Change> {
        let old = self.visible();
        let cause = self.apply(event, at, jitter)?;
        let new = self.visible();
        let lasted = at.saturating_duration_since(self.since);
        let same = old.is_same_kind(new);
        if !same {
            self.since = at;
            self.settled = true;
        }
        (!same || cause.is_told_anyway()).then_some(Change {
            old,
            new,
            cause,
            lasted,
        })
    }

    fn visible(&self) -> NodeState {
        match (self.drained, self.refusal) {
            (true, _) => NodeState::Drained,
            // a server that does not answer is no server of another system for now
            (_, Some(_)) if !self.is_down() => NodeState::Refused,
            _ => self.state,
        }
    }

    fn is_down(&self) -> bool {
        matches!(self.state, NodeState::Down { .. })
    }

    fn is_silent(&self, now: Instant) -> bool {
        match (self.settings.watch, self.heard) {
            (Watch::Monitored { patience }, Some(heard)) => {
                now.saturating_duration_since(heard) > patience
            }
            _ => false,
        }
    }

    /// Changes the state; `None` if the event is no cause of anything.
    fn apply(&mut self, event: Event, at: Instant, jitter: Jitter) -> Option<Cause> {
        match event {
            // news of something begun before the node came back is old
            Event::DialFailed { began, .. } if began < self.returned => None,
            Event::ConnectionLost { opened } if opened < self.returned => None,
            Event::DialFailed { failure, .. } => self.fail(failure, Cause::DialFailed, at, jitter),
            Event::ProbeFailed(failure) => self.fail(failure, Cause::ProbeFailed, at, jitter),
            Event::ConnectionLost { .. } => match self.role {
                // one lost connection does not make the others useless
                Role::Primary => None,
                Role::Replica => self.go_down(Cause::ConnectionLost, at, jitter),
            },
            Event::Silence if self.is_silent(at) => self.go_down(Cause::Silence, at, jitter),
            Event::Silence => None,
            Event::Dialled => self.dialled(at),
            Event::ProbePassed { life, access } => self.pass(life, access, at),
            Event::Measured(evidence) => self.measure(evidence, at),
            Event::Drained => {
                self.drained = true;
                Some(Cause::Drained)
            }
            Event::Resumed if !self.drained => None,
            Event::Resumed => {
                self.drained = false;
                self.ramp_from = Some(at);
                Some(Cause::Resumed)
            }
            Event::RoleChanged(role) => self.change_role(role, at),
            Event::Refused(refusal) if self.refusal == Some(refusal) => None,
            Event::Refused(refusal) => {
                self.refusal = Some(refusal);
                Some(Cause::Refused(refusal))
            }
            Event::Accepted if self.refusal.is_none() => None,
            Event::Accepted => {
                self.refusal = None;
                match self.is_down() {
                    true => Some(Cause::Accepted),
                    false => Some(self.come_back(Cause::Accepted, at)),
                }
            }
        }
    }

    fn fail(
        &mut self,
        failure: Failure,
        cause: Cause,
        at: Instant,
        jitter: Jitter,
    ) -> Option<Cause> {
        match failure {
            Failure::Death => self.go_down(cause, at, jitter),
            Failure::Load => {
                self.pace.slow_down(at, jitter);
                None
            }
            Failure::Authentication => {
                let (until, told) = self.pace.refuse(at, jitter);
                if self.is_down() {
                    self.state = NodeState::Down { until };
                }
                (!told).then_some(Cause::Authentication)
            }
        }
    }

    fn go_down(&mut self, cause: Cause, at: Instant, jitter: Jitter) -> Option<Cause> {
        let ladder = match self.role {
            Role::Primary => Ladder::DIALS,
            Role::Replica => Ladder::quarantine(self.settings.quarantine),
        };
        let until = match self.state {
            // the same death, told by another connection
            NodeState::Down { until } if at < until => return None,
            NodeState::Down { .. } => self.pace.back_off(ladder, at, jitter),
            _ => self.pace.begin(ladder, at, jitter),
        };
        self.state = NodeState::Down { until };
        Some(cause)
    }

    fn dialled(&mut self, at: Instant) -> Option<Cause> {
        self.pace.reset();
        match (self.settings.watch, self.role) {
            (Watch::OnDemand, Role::Primary) if self.is_down() => {
                self.state = NodeState::Up;
                Some(Cause::Answers)
            }
            (Watch::OnDemand, Role::Replica) if self.is_down() => {
                Some(self.come_back(Cause::Answers, at))
            }
            _ => None,
        }
    }

    fn pass(&mut self, life: Life, access: Access, at: Instant) -> Option<Cause> {
        let reborn = self.life.as_ref().is_some_and(|known| *known != life);
        self.life = Some(life);
        self.heard = Some(at);
        self.pace.reset();
        match (self.role, access) {
            (Role::Replica, _) if self.is_down() => Some(self.come_back(Cause::Answers, at)),
            (Role::Replica, _) if reborn => Some(self.come_back(Cause::NewLife, at)),
            (Role::Replica, _) => None,
            (Role::Primary, Access::ReadOnly) => {
                self.state = NodeState::ReadOnly;
                Some(Cause::RefusesWrites)
            }
            (Role::Primary, Access::ReadWrite) => {
                let before = std::mem::replace(&mut self.state, NodeState::Up);
                match before {
                    NodeState::ReadOnly => Some(Cause::TakesWrites),
                    _ => Some(Cause::Answers),
                }
            }
        }
    }

    /// Begins anew with a replica that may be in its own past.
    fn come_back(&mut self, cause: Cause, at: Instant) -> Cause {
        self.state = NodeState::Unknown;
        self.returned = at;
        self.proven = false;
        self.evidence = None;
        cause
    }

    fn measure(&mut self, evidence: Evidence, at: Instant) -> Option<Cause> {
        if self.role == Role::Primary || self.is_down() || self.heard.is_none() {
            return None;
        }
        self.evidence = Some(evidence);
        let patience = self.settings.watch.patience();
        let limit = match self.state {
            NodeState::Lagging => self.settings.good_again(),
            _ => self.settings.max_lag,
        };
        let lag = evidence.lag(at, patience);
        match evidence.judge(limit, at, patience) {
            Verdict::Fresh if self.proven || evidence.includes(self.returned, at, patience) => {
                self.proven |= matches!(evidence, Evidence::Standing(_));
                if self.settled && self.state != NodeState::Up {
                    self.ramp_from = Some(at);
                }
                self.state = NodeState::Up;
                Some(Cause::Fresh(lag))
            }
            Verdict::Late => {
                self.state = NodeState::Lagging;
                Some(Cause::Late(lag))
            }
            Verdict::Fresh | Verdict::Unsure => {
                self.state = NodeState::Unknown;
                Some(Cause::Unsure)
            }
        }
    }

    fn change_role(&mut self, role: Role, at: Instant) -> Option<Cause> {
        let cause = Cause::RoleChanged(role);
        if self.role == role {
            return None;
        }
        self.role = role;
        match role {
            // only a passed probe ends that
            _ if self.is_down() => {}
            Role::Primary => self.state = NodeState::Up,
            Role::Replica => return Some(self.come_back(cause, at)),
        }
        Some(cause)
    }
}

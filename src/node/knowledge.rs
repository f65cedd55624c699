//! What is known of one server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dialer::DialError;
use super::health::{Change, Event, Failure, Health, Jitter, NodeState};
use super::history::Era;
use super::latency::Latency;
use super::lease::Acquaintance;
use super::prober::Numbers;
use crate::context::{Has, Need, Who};
use crate::position::{Coverage, Position};
use crate::report::{ErrorClass, Identity, Report};

/// What is known of one server; changes only when something happens to it.
#[derive(Debug)]
pub(crate) struct Known {
    /// The node's place in the cluster.
    place: usize,
    pub(crate) health: Health,
    /// Connections that were last proven before this moment are pinged before they are lent.
    pub(crate) last_loss: Option<Instant>,
    /// The last failure to reach it, without secrets, and what it was.
    pub(crate) last_failure: Option<(Arc<str>, ErrorClass)>,
    /// What it said last when it was probed.
    pub(crate) report: Option<Report>,
    /// The server's load and lag as somebody asked for them, and when they were told.
    pub(crate) numbers: Option<(Numbers, Instant)>,
    /// How long its connections were in use lately.
    pub(crate) latency: Option<Latency>,
    /// When the last question was sent that was answered, or failed.
    pub(crate) asked: Option<Instant>,
    /// When the question was sent that the report answers, and when the answer was there.
    pub(crate) said: Option<(Instant, Instant)>,
    /// Several servers were met behind its URL: what one of them has says nothing of the others.
    pub(crate) is_shared: bool,
    /// The grant that is missing was told.
    grant_told: bool,
}

/// How long a server is not asked again for what it did not have yet.
const ASK_AGAIN: Duration = Duration::from_millis(20);

impl Known {
    pub(super) fn new(place: usize, health: Health) -> Self {
        Self {
            place,
            health,
            last_loss: None,
            last_failure: None,
            report: None,
            numbers: None,
            latency: None,
            asked: None,
            said: None,
            is_shared: false,
            grant_told: false,
        }
    }

    pub(super) fn on(&mut self, event: Event, at: Instant) -> Option<Change> {
        self.health.on(event, at, Jitter::draw(&mut rand::rng()))
    }

    /// Takes in what the server said; returns the grant that is missing, once.
    pub(super) fn heard(
        &mut self,
        sent: Instant,
        report: Report,
        numbers: Option<Numbers>,
    ) -> Option<&'static str> {
        self.asked = Some(sent);
        self.said = Some((sent, Instant::now()));
        self.meet(Some(&report.identity));
        if let Some(numbers) = numbers {
            self.numbers = Some((numbers, sent));
        }
        let missing = report.missing_grant;
        self.report = Some(report);
        let told = std::mem::replace(&mut self.grant_told, missing.is_some());
        missing.filter(|_| !told)
    }

    /// Notes that it could not be reached; tells whether that is another cause than before.
    pub(super) fn failed(&mut self, error: &DialError, now: Instant) -> bool {
        if error.failure() == Failure::Death {
            self.last_loss = Some(now);
        }
        let before = self.last_error();
        self.last_failure = Some((error.cause.as_str().into(), error.class));
        before != self.last_error()
    }

    /// The last failure to reach it, without secrets.
    pub(crate) fn last_error(&self) -> Option<Arc<str>> {
        self.last_failure
            .as_ref()
            .map(|(cause, _)| Arc::clone(cause))
    }

    /// Tells whether this is the server that the probes have met last, in the same run.
    pub(super) fn meet(&mut self, identity: Option<&Identity>) -> Acquaintance {
        let known = self.report.as_ref().map(|report| &report.identity);
        match (known, identity) {
            (Some(known), Some(met)) if known == met => Acquaintance::Known,
            (Some(known), Some(met)) if known.is_same_server(met) => Acquaintance::Reborn,
            (Some(_), Some(_)) => {
                self.is_shared = true;
                Acquaintance::Stranger
            }
            _ => Acquaintance::Known,
        }
    }

    /// Tells whether a replica misses nothing of what a context needs, in this era of the primary's
    /// history.
    pub(crate) fn has(&self, need: &Need, era: Era, now: Instant) -> Has {
        if *need == Need::Nothing {
            return Has::All;
        }
        let report = self.report.as_ref();
        let who = Who {
            node: (!self.is_shared).then_some(self.place),
            server: report.map(|report| report.identity.tag()),
        };
        need.met_by(
            who,
            now,
            |ended| match ended.era == era {
                true => self.health.includes(ended.at),
                false => None,
            },
            |position| self.covers(position),
        )
    }

    /// Tells whether it is so long ago that the server was asked that another answer may come.
    pub(crate) fn is_worth_asking(&self, now: Instant) -> bool {
        let recent = |asked: Instant| now.saturating_duration_since(asked) < ASK_AGAIN;
        !self.asked.is_some_and(recent)
    }

    /// Takes in how far the server says that it has come.
    pub(super) fn has_come(&mut self, report: Report, sent: Instant) {
        if self
            .report
            .as_ref()
            .is_some_and(|known| known.identity == report.identity)
        {
            self.report = Some(report);
            self.asked = Some(sent);
            self.said = Some((sent, Instant::now()));
        }
    }

    /// Tells whether it had reached a position when it was last asked.
    pub(crate) fn covers(&self, position: &Position) -> Coverage {
        let own = self
            .report
            .as_ref()
            .and_then(|report| report.position.as_ref());
        own.map_or(Coverage::Incomparable, |own| own.covers(position))
    }

    /// Tells whether a question that was sent since then was answered, or has failed.
    pub(crate) fn was_asked_since(&self, then: Instant) -> bool {
        self.asked.is_some_and(|sent| sent >= then)
    }

    /// Tells whether statements should not go on there.
    pub(super) fn is_gone(&self) -> bool {
        matches!(
            self.health.last_state(),
            NodeState::Down { .. } | NodeState::Refused
        )
    }
}

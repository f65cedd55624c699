//! What the cluster makes of the answers to probes: roles, lag, retirement.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::members::{Members, Seat};
use super::roles::{Part, Roles, Verdict, Voice, Witness};
use super::{Inner, Role, RolesFrom, Terms};
use crate::backend::ReplicatedConnection;
use crate::context::{Ended, Has, Need, Who};
use crate::node::{
    Answer, Event, Evidence, Freshness, History, Life, Node, NodeState, Recorded, Source,
};
use crate::position::{Coverage, Position};
use crate::report::{Identity, Report, ReportedLag};

/// What was learned from probes.
///
/// Only the monitor's thread changes it, so that what follows can be done outside the lock.
#[derive(Debug, Default)]
pub(super) struct Lore {
    history: History,
    roles: Roles,
}

impl<C: ReplicatedConnection> Inner<C> {
    /// Takes in the answer to a probe, and does what follows from it.
    pub(super) fn learn(&self, answer: Answer) {
        let members = self.members();
        let Some(node) = members.find(answer.place) else {
            return;
        };
        let (sent, now) = (answer.sent, answer.received);
        let position = match &answer.report {
            Ok(report) => report.position.clone(),
            Err(_) => None,
        };
        take_in(node, answer);
        self.tell_roles(now);
        let members = self.members();
        let is_primary = members.seat == Seat::Taken(node.place());
        if let (true, Some(position)) = (is_primary, position) {
            self.record(node, sent, position);
        }
        for replica in &members.replicas {
            if is_primary || replica.place() == node.place() {
                self.measure(&members, replica, now);
            }
        }
        self.common.bell.ring();
    }

    /// Tells the roles anew: by what was just learned, or because a node has gone silent.
    pub(super) fn tell_roles(&self, now: Instant) {
        if self.config.settings.roles_from == RolesFrom::Configuration {
            return;
        }
        let members = self.members();
        let reports: Vec<_> = members.nodes.iter().map(|node| report_of(node)).collect();
        let witnesses: Vec<_> = members
            .nodes
            .iter()
            .zip(&reports)
            .map(|(node, report)| {
                let said = node.known().said;
                Witness {
                    place: node.place(),
                    configured: node.configured(),
                    report: report.as_ref(),
                    said,
                    voice: voice(node, now),
                }
            })
            .collect();
        let (verdict, parts) = self.lore.lock().roles.tell(&witnesses);
        let seat = match verdict {
            Verdict::Primary(place) => Seat::Taken(place),
            Verdict::Conflict(one, other) => Seat::Contested(one, other),
            Verdict::Nobody => Seat::Empty,
        };
        // first, so that whoever sees the new primary finds the connections of the old one retired
        for (node, part) in members.nodes.iter().zip(parts) {
            take_part(node, part, seat, now);
        }
        if seat != members.seat {
            self.change_seat(&members, seat, now);
        }
    }

    /// Forgets what a node that was removed has said.
    pub(super) fn forget(&self, place: usize) {
        self.lore.lock().roles.forget(place);
    }

    fn change_seat(&self, members: &Members<C>, seat: Seat, now: Instant) {
        let changed = Members::new(members.nodes.clone(), seat);
        let before = members.primary().map(|node| node.name().as_ref());
        match changed.primary() {
            Some(node) => {
                if node.role() != Role::Primary {
                    node.begin_term(Role::Primary, now);
                }
                let limit = self.config.fallback_limit(node.settings());
                self.fallback.resize(limit.unwrap_or(0));
                self.common.events.primary_changed(before, Ok(node.name()));
            }
            None => {
                let why = changed.no_primary().to_string();
                self.common.events.primary_changed(before, Err(&why));
            }
        }
        self.publish(changed);
    }

    /// Notes where the primary stands.
    fn record(&self, node: &Node<C>, sent: Instant, position: Position) {
        let Some(report) = report_of(node) else {
            return;
        };
        let source = Source {
            place: node.place(),
            life: life(&report.identity),
        };
        let (recorded, era) = {
            let history = &mut self.lore.lock().history;
            (history.record(&source, sent, position), history.era())
        };
        self.era.store(era.number(), Ordering::Release);
        if recorded == Recorded::WentBack {
            self.common.events.position_went_back(node.name());
        }
    }

    /// Compares a replica with the primary, as both were when they answered last.
    fn measure(&self, members: &Members<C>, replica: &Node<C>, now: Instant) {
        let Some(report) = report_of(replica) else {
            return;
        };
        if let Some(evidence) = self.evidence(members, &report, now) {
            replica.note(Event::Measured(evidence), now);
        }
    }

    fn evidence(&self, members: &Members<C>, replica: &Report, now: Instant) -> Option<Evidence> {
        let reported = match replica.reported_lag {
            ReportedLag::Of(lag) => Evidence::Reported(Some(lag)),
            ReportedLag::Unknown => Evidence::Reported(None),
            ReportedLag::Unsupported => Evidence::Unreported,
        };
        let Some(position) = &replica.position else {
            return Some(reported);
        };
        let standing = self.lore.lock().history.compare(position);
        if standing.newest.is_some() {
            let vouched = self.config.settings.roles_from == RolesFrom::Configuration;
            return Some(match standing.fresh_as_of {
                Freshness::Unknown if vouched => reported,
                _ => Evidence::Standing(standing),
            });
        }
        let primary = members.primary();
        match primary.and_then(|primary| report_of(primary)) {
            // it answers, and has no position to compare with
            Some(primary) if primary.position.is_none() => Some(reported),
            Some(_) => None,
            None if primary.is_some_and(|primary| !primary.was_asked()) => None,
            None => self
                .is_furthest(members, position, now)
                .then_some(Evidence::Furthest),
        }
    }

    /// Tells whether no other replica that answers is known to have more.
    fn is_furthest(&self, members: &Members<C>, position: &Position, now: Instant) -> bool {
        !members.replicas.iter().any(|other| {
            let heard = voice(other, now) == Voice::Heard;
            let other = report_of(other).and_then(|report| report.position);
            other.is_some_and(|other| heard && position.covers(&other) == Coverage::No)
        })
    }

    /// Tells whether a server that was met behind the URL of a replica, and is not the one that the
    /// probes have met there, may serve reads all the same.
    pub(super) fn may_serve(&self, report: &Report, terms: &Terms) -> bool {
        let members = self.members();
        let primary = members.primary().and_then(|primary| report_of(primary));
        let accepted = self.lore.lock().roles.accepts(report, primary.as_ref());
        let settings = &self.config.settings;
        let now = Instant::now();
        let evidence = self.evidence(&members, report, now);
        accepted
            && evidence.is_some_and(|evidence| {
                let limit = terms.limit.or(settings.max_lag);
                evidence.is_fresh(limit, settings.watch(), now)
            })
    }

    /// Tells whether a server that was just asked, behind the URL of `node` if it is known to be the
    /// one that the probes have met, misses nothing of what a context needs.
    pub(super) fn has(&self, report: &Report, node: Option<usize>, need: &Need) -> bool {
        let now = Instant::now();
        let who = Who {
            node,
            server: Some(report.identity.tag()),
        };
        let Some(position) = &report.position else {
            return need.met_by(who, now, |_| None, |_| Coverage::Incomparable) == Has::All;
        };
        let (standing, era) = {
            let history = &self.lore.lock().history;
            (history.compare(position), history.era())
        };
        let tells = |ended: &Ended| match ended.era == era {
            true => standing.tells(ended.at),
            false => None,
        };
        need.met_by(who, now, tells, |own| position.covers(own)) == Has::All
    }
}

/// Notes on the node what came of a probe.
fn take_in<C: ReplicatedConnection>(node: &Node<C>, answer: Answer) {
    let now = answer.received;
    match answer.report {
        Ok(report) => {
            let passed = Event::ProbePassed {
                life: life(&report.identity),
                access: report.access,
            };
            // whoever sees that it was asked also sees what that made of it
            node.note(passed, now);
            node.heard(answer.sent, report, answer.numbers);
        }
        Err(error) => node.probe_failed(answer.sent, error, now),
    }
}

/// Uses the node as what it was found to be.
fn take_part<C: ReplicatedConnection>(node: &Node<C>, part: Part, seat: Seat, now: Instant) {
    match part {
        Part::Refused(refusal) => node.note(Event::Refused(refusal), now),
        Part::Primary | Part::Replica => node.note(Event::Accepted, now),
    }
    // in a conflict nobody is anything new
    let demoted = node.role() == Role::Primary && !matches!(seat, Seat::Contested(..));
    if demoted && seat != Seat::Taken(node.place()) {
        node.begin_term(Role::Replica, now);
    }
}

pub(super) fn report_of<C: ReplicatedConnection>(node: &Node<C>) -> Option<Report> {
    node.known().report.clone()
}

fn voice<C: ReplicatedConnection>(node: &Node<C>, now: Instant) -> Voice {
    match node.known().health.state(now) {
        NodeState::Down { .. } => Voice::Silent,
        _ => Voice::Heard,
    }
}

pub(super) fn life(identity: &Identity) -> Life {
    let Identity {
        system,
        server,
        run,
    } = identity;
    Life::new(format!("{system}/{server}/{run}"))
}

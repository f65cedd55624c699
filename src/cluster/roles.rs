//! Who is primary, and who may be a replica of it; pure.
//!
//! A primary takes writes and follows nobody, and it is of the same system as the others. Of two
//! such servers the one wins that has everything the other has: on PostgreSQL the one with the
//! higher timeline, elsewhere the one whose executed transactions contain the other's. Nothing is
//! guessed: if neither has, writes are refused. What the configuration calls primary counts only
//! until the others have been seen.

use std::sync::Arc;
use std::time::Instant;

use super::Role;
use crate::node::Refusal;
use crate::position::{Coverage, Position};
use crate::report::{Access, Following, Report};

/// What is known of a node when the roles are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Witness<'a> {
    pub(crate) place: usize,
    pub(crate) configured: Role,
    /// What it said last; `None` if it never answered.
    pub(crate) report: Option<&'a Report>,
    /// When the question was sent that it answered last, and when the answer was there.
    pub(crate) said: Option<(Instant, Instant)>,
    /// Whether it answers at present.
    pub(crate) voice: Voice,
}

/// Whether a node answers at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Heard,
    Silent,
}

/// Who takes the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Primary(usize),
    /// Two servers would, and neither has all that the other has.
    Conflict(usize, usize),
    /// The one that did follows another server now.
    Nobody,
}

/// What a node is to be used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Primary,
    Replica,
    Refused(Refusal),
}

/// What is remembered from one time to the next.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    /// The system that the cluster is; empty while nobody has told.
    system: Arc<str>,
    primary: Option<usize>,
    /// Servers that were primary until another took over, and have not been seen to follow since.
    deposed: Vec<usize>,
    /// The highest timeline seen; a server below it has missed a promotion.
    timeline: u32,
}

impl Roles {
    /// Tells who is primary, and what each of the others is; remembers who was primary.
    pub(crate) fn tell(&mut self, witnesses: &[Witness<'_>]) -> (Verdict, Vec<Part>) {
        let verdict = self.elect(witnesses);
        let is_primary = |witness: &&Witness<'_>| verdict == Verdict::Primary(witness.place);
        let primary = witnesses.iter().find(is_primary);
        let primary = primary.and_then(|witness| witness.report);
        let parts = witnesses.iter().map(|witness| match witness.report {
            _ if verdict == Verdict::Primary(witness.place) => Part::Primary,
            Some(report) => self.part(report, primary),
            None => Part::Replica,
        });
        (verdict, parts.collect())
    }

    fn elect(&mut self, witnesses: &[Witness<'_>]) -> Verdict {
        self.learn(witnesses);
        let verdict = self.judge(witnesses);
        if let Verdict::Primary(place) = verdict {
            if let Some(before) = self.primary.replace(place) {
                if before != place && !self.deposed.contains(&before) {
                    self.deposed.push(before);
                }
            }
            self.deposed.retain(|deposed| *deposed != place);
        }
        verdict
    }

    /// Forgets a node that was removed.
    pub(crate) fn forget(&mut self, place: usize) {
        self.deposed.retain(|deposed| *deposed != place);
        self.primary = self.primary.filter(|primary| *primary != place);
    }

    fn learn(&mut self, witnesses: &[Witness<'_>]) {
        self.system = self.system_by(witnesses);
        for witness in witnesses {
            let Some(report) = witness.report else {
                continue;
            };
            if report.following == Following::Somebody {
                self.deposed.retain(|deposed| *deposed != witness.place);
            }
            if let (Some(Position::Postgres(wal)), false) =
                (&report.position, self.is_foreign(report))
            {
                self.timeline = self.timeline.max(wal.timeline);
            }
        }
    }

    /// The system that the configured primary belongs to, or else the first node that told.
    fn system_by(&self, witnesses: &[Witness<'_>]) -> Arc<str> {
        let told = |witness: &Witness<'_>| {
            let system = &witness.report?.identity.system;
            (!system.is_empty()).then(|| Arc::clone(system))
        };
        let configured = |witness: &&Witness<'_>| witness.configured == Role::Primary;
        if let Some(system) = witnesses.iter().find(configured).and_then(told) {
            return system;
        }
        match self.system.is_empty() {
            true => witnesses.iter().find_map(told).unwrap_or_default(),
            false => Arc::clone(&self.system),
        }
    }

    fn judge(&self, witnesses: &[Witness<'_>]) -> Verdict {
        let mut candidates: Vec<_> = witnesses
            .iter()
            .filter(|witness| witness.voice == Voice::Heard && self.is_candidate(witness))
            .collect();
        // the configured primary first: one server at two addresses is one, and not its alias
        candidates.sort_by_key(|witness| {
            let configured = witness.configured == Role::Primary;
            (!configured, Some(witness.place) != self.primary)
        });
        candidates.dedup_by(|one, other| is_same(one.report, other.report));
        match candidates[..] {
            [] => self.without_candidate(witnesses),
            [only] => Verdict::Primary(only.place),
            _ => self.best(&candidates),
        }
    }

    fn is_candidate(&self, witness: &Witness<'_>) -> bool {
        let Some(report) = witness.report else {
            return false;
        };
        let follows_nobody = match report.following {
            Following::Nobody => true,
            // whether it follows is not known: it is believed to be what it was meant to be
            Following::Unknown => witness.configured == Role::Primary,
            Following::Somebody => false,
        };
        let behind = match &report.position {
            Some(Position::Postgres(wal)) => wal.timeline < self.timeline,
            _ => false,
        };
        report.access == Access::ReadWrite
            && follows_nobody
            && !behind
            && !self.is_foreign(report)
            && !self.deposed.contains(&witness.place)
    }

    /// Nobody takes writes: the primary stays who it is, unless it follows somebody now.
    fn without_candidate(&self, witnesses: &[Witness<'_>]) -> Verdict {
        let configured = || witnesses.iter().find(|w| w.configured == Role::Primary);
        let present = witnesses.iter().find(|w| Some(w.place) == self.primary);
        match present.or_else(configured) {
            Some(witness) if !follows(witness) && !self.deposed.contains(&witness.place) => {
                Verdict::Primary(witness.place)
            }
            _ => Verdict::Nobody,
        }
    }

    fn best(&self, candidates: &[&Witness<'_>]) -> Verdict {
        let others = |one: &Witness<'_>| {
            let place = one.place;
            candidates.iter().filter(move |other| other.place != place)
        };
        let has_more = |one: &Witness<'_>| {
            others(one).all(|other| has_all_of(one, other) && !has_all_of(other, one))
        };
        if let Some(best) = candidates.iter().find(|candidate| has_more(candidate)) {
            // what the other has written since it was asked is not in the comparison: until it is
            // asked again nobody decides
            return match others(best).find(|other| !is_lasting(best, other)) {
                Some(other) => Verdict::Conflict(best.place, other.place),
                None => Verdict::Primary(best.place),
            };
        }
        // as long as they have the same, the one that takes the writes goes on
        let ties = |one: &Witness<'_>| candidates.iter().all(|other| has_all_of(one, other));
        let present = candidates.iter().find(|c| Some(c.place) == self.primary);
        match present {
            Some(present) if ties(present) => Verdict::Primary(present.place),
            _ => Verdict::Conflict(candidates[0].place, candidates[1].place),
        }
    }

    fn is_foreign(&self, report: &Report) -> bool {
        let system = &report.identity.system;
        !system.is_empty() && !self.system.is_empty() && *system != self.system
    }

    /// What a server that is not the primary is to be used as.
    fn part(&self, report: &Report, primary: Option<&Report>) -> Part {
        let takes_writes = report.access == Access::ReadWrite;
        if self.is_foreign(report) {
            Part::Refused(Refusal::ForeignSystem)
        } else if is_same(Some(report), primary) {
            Part::Refused(Refusal::Alias)
        } else if takes_writes && report.following == Following::Nobody {
            Part::Refused(Refusal::Stray)
        } else {
            Part::Replica
        }
    }

    /// Tells whether a server is a replica of `primary`, as far as can be seen.
    pub(crate) fn accepts(&self, report: &Report, primary: Option<&Report>) -> bool {
        self.part(report, primary) == Part::Replica
    }
}

/// Tells whether what `one` has more than `other` still holds: the other was asked after it.
///
/// A higher timeline holds for ever.
fn is_lasting(one: &Witness<'_>, other: &Witness<'_>) -> bool {
    let position = one.report.and_then(|report| report.position.as_ref());
    match (one.said, other.said) {
        _ if matches!(position, Some(Position::Postgres(_))) => true,
        (Some((_, answered)), Some((asked, _))) => asked >= answered,
        _ => false,
    }
}

/// Tells whether one server has said both.
fn is_same(one: Option<&Report>, other: Option<&Report>) -> bool {
    match (one, other) {
        // a server without a position, a file, may well be its own replica
        (Some(one), Some(other)) => one.position.is_some() && one.identity == other.identity,
        _ => false,
    }
}

fn follows(witness: &Witness<'_>) -> bool {
    let report = witness.report;
    report.is_some_and(|report| report.following == Following::Somebody)
}

fn has_all_of(one: &Witness<'_>, other: &Witness<'_>) -> bool {
    let position =
        |witness: &Witness<'_>| witness.report.and_then(|report| report.position.clone());
    let lineage = one.report.and_then(|report| report.lineage.as_ref());
    match (position(one), position(other)) {
        (Some(Position::Postgres(one)), Some(Position::Postgres(other))) => {
            one.timeline > other.timeline
        }
        (Some(_), Some(Position::Mariadb(other))) if lineage.is_some() => {
            lineage.is_some_and(|lineage| lineage.includes(&other))
        }
        (Some(one), Some(other)) => one.covers(&other) == Coverage::Yes,
        _ => false,
    }
}

#[cfg(test)]
mod tests;

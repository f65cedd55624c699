//! Running a statement on the node it needs, and going on elsewhere where that is right.

use std::sync::Arc;

use diesel::result::{Error, QueryResult};

use super::RoutedConnection;
use super::failure::{
    Next, after_replica_error, answer_of, may_resend, note_loss, shows_nothing, spent_by,
};
use super::lend::{Borrower, REPLICA_TRIES};
use super::settle::{after_error, after_success, answered, mark_for};
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Consistency, Fallback, NoReplica, Role, Wait, Wanted};
use crate::decision::{Course, Rule};
use crate::error::RoutedError;
use crate::node::{Permit, Tenancy, Use};
use crate::statement::Statement;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Runs a statement that leaves no cursor behind.
    pub(super) fn run<R>(
        &mut self,
        statement: &Statement,
        f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        let course = self.begin_statement(statement)?;
        match course.target {
            Role::Primary => self.run_on_primary(statement, course.rule, f),
            Role::Replica => self.run_on_replica(statement, course.rule, f),
        }
    }

    /// Sends a read that prefers the primary to a replica, if the primary is gone.
    pub(super) fn prefer_primary(&mut self, course: Course) -> QueryResult<Course> {
        if course.rule != Rule::Forced || self.unit.forced || !self.unit.prefers_primary() {
            return Ok(course);
        }
        self.leases.give_back_replicas();
        let Err(error) = self.open_proven_primary() else {
            return Ok(course);
        };
        match RoutedError::downcast(&error) {
            Some(RoutedError::NoPrimary { .. }) if self.cluster.has_replicas() => {
                Ok(Course::replica(Rule::Distributed))
            }
            _ => Err(error),
        }
    }

    /// Borrows the primary on a connection that answers: one that has died in the pool would fail
    /// the read, where a replica can still serve it.
    fn open_proven_primary(&mut self) -> QueryResult<()> {
        let (leases, _, borrower) = self.parts();
        // the second one is new, or was pinged because of the first
        for _ in 0..2 {
            if leases.primary.is_some() {
                return Ok(());
            }
            let lease = borrower.primary(&mut leases.primary, Wait::No, || Ok(None))?;
            leases.primary_lost = lease.connection().ping().is_err();
            leases.tidy();
        }
        match leases.primary {
            Some(_) => Ok(()),
            None => Err(RoutedError::NoPrimary {
                node: borrower.cluster.primary_name(),
                cause: "it takes connections, but answers nothing".to_owned(),
            }
            .into()),
        }
    }

    fn run_on_replica<R>(
        &mut self,
        statement: &Statement,
        mut rule: Rule,
        mut f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        let (mut instead, mut failed) = (Rule::NoReplica, None);
        let mut first = None;
        for _ in 0..REPLICA_TRIES {
            if let Err(none) = self.open_replica(rule, failed)? {
                instead = fall_back(&self.cluster, none)?;
                break;
            }
            let Some(lease) = self.leases.replica() else {
                break;
            };
            let result = lease.run(&mut f);
            let origin = lease.origin();
            let error = match result {
                Ok(value) => {
                    self.unit.pin(origin.node.place());
                    let (last, cluster) = (&mut self.last_answer, &self.cluster);
                    answered(last, cluster, origin.node, Course::replica(rule), statement);
                    return Ok(value);
                }
                Err(error) => error,
            };
            failed = Some(origin.node.place());
            let next = after_replica_error(&self.cluster, &self.unit, &origin, statement, &error);
            self.leases.replicas[0].spent = spent_by::<C>(&self.unit, &error);
            match next {
                Next::Return => return Err(error),
                Next::OtherReplica => rule = Rule::Distributed,
                Next::Primary(why) => {
                    (instead, first) = (why, Some(error));
                    break;
                }
            }
            self.leases.tidy();
        }
        check_fallback(&self.cluster, instead)?;
        let result = self.run_on_primary(&statement.because_of(instead), instead, f);
        result.map_err(|error| answer_of::<C>(instead, first, error))
    }

    /// Runs a statement on the primary, where the replicas leave it.
    pub(super) fn run_on_primary<R>(
        &mut self,
        statement: &Statement,
        rule: Rule,
        mut f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        let result = self.run_there(statement, rule, &mut f);
        match result {
            Err(error) if self.was_deposed(statement, &error) => {
                self.leases.give_back_retired();
                self.run_there(statement, rule, f)
            }
            result => result,
        }
    }

    /// Tells whether a write was refused because its server is not the primary any more, and
    /// another one is.
    fn was_deposed(&mut self, statement: &Statement, error: &Error) -> bool {
        let Some(lease) = &mut self.leases.primary else {
            return false;
        };
        let stateless = lease.tenancy != Tenancy::Session;
        let may = stateless && may_resend::<C>(&self.unit, statement, error);
        let node = Arc::clone(lease.node());
        may && self.parts().2.was_deposed(&node)
    }

    fn run_there<R>(
        &mut self,
        statement: &Statement,
        rule: Rule,
        mut f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        self.leases.give_back_replicas();
        let (leases, unit, borrower) = self.parts();
        let cluster = borrower.cluster;
        let lease = borrower.primary_for(&mut leases.primary, unit, rule)?;
        let mark = mark_for(cluster, unit, lease, statement);
        let result = lease.run(&mut f);
        match &result {
            Ok(_) => after_success(unit, lease, statement, mark),
            Err(error) => {
                after_error(unit, lease, statement, mark, error);
                leases.primary_lost = note_loss(&lease.origin(), unit, error);
            }
        }
        if !result.as_ref().is_err_and(shows_nothing::<C>) {
            unit.used_primary();
        }
        let node = Arc::clone(lease.node());
        let (last, cluster) = (&mut self.last_answer, &self.cluster);
        answered(last, cluster, &node, Course::primary(rule), statement);
        result
    }

    /// Borrows a replica for the block, unless it has one.
    pub(super) fn open_replica(
        &mut self,
        rule: Rule,
        except: Option<usize>,
    ) -> QueryResult<Result<(), NoReplica>> {
        let (leases, unit, borrower) = self.parts();
        let wait = leases.wait();
        let slot = &mut leases.replicas[0].lease;
        let opened = borrower.replica(slot, unit.wanted(rule), except, wait)?;
        Ok(opened.map(drop))
    }

    /// Sends a read to a replica that is late, where that is wanted rather than the primary.
    ///
    /// Never one of a context that has written what it may miss.
    pub(super) fn prefer_stale(&mut self, course: Course) -> Course {
        let fell = matches!(course.rule, Rule::NoReplica | Rule::Lagging);
        if !fell || self.cluster.settings().fallback != Fallback::Stale {
            return course;
        }
        let begun = self.unit.pinned().is_some();
        self.unit.look(self.cluster.place());
        match begun || !self.cluster.any_late(&self.unit.terms().need) {
            true => course,
            false => Course::replica(Rule::Stale),
        }
    }
}

/// Tells whether the primary may answer in place of replicas, and for which reason.
pub(super) fn fall_back<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    none: NoReplica,
) -> QueryResult<Rule> {
    match (none, cluster.settings().fallback) {
        // healthy, and that is no reason to refuse what was just written
        (NoReplica::Behind, _) => Ok(Rule::NotCaughtUp),
        (NoReplica::Unable(cause), Fallback::Error) if cluster.has_replicas() => {
            Err(RoutedError::NoReplica { cause }.into())
        }
        _ => Ok(Rule::NoReplica),
    }
}

/// Checks that the primary may answer for this reason.
pub(super) fn check_fallback<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    rule: Rule,
) -> QueryResult<()> {
    match rule {
        Rule::NoReplica | Rule::Lagging => fall_back(cluster, cluster.no_replica()).map(drop),
        _ => Ok(()),
    }
}

/// The permit that a read needs to be on the primary in place of a replica.
pub(super) fn admission<C: ReplicatedConnection>(
    borrower: Borrower<'_, C>,
    rule: Rule,
) -> Result<Option<Permit>, RoutedError> {
    match rule {
        Rule::NoReplica | Rule::Lagging => {
            borrower.cluster.events().fell_back(rule);
            borrower.wait(|deadline| borrower.cluster.admit_fallback(deadline))
        }
        _ => Ok(None),
    }
}

impl Statement {
    /// What the primary is to make of a statement that comes for this reason.
    pub(super) fn because_of(&self, rule: Rule) -> Self {
        match rule {
            Rule::ReadOnlyRefused => self.refused(),
            _ => self.clone(),
        }
    }

    pub(super) fn use_(&self) -> Use {
        match self.writes() {
            true => Use::Write,
            false => Use::Read,
        }
    }
}

impl Unit {
    /// Tells whether the block wants the primary and takes a replica when there is none.
    pub(super) fn prefers_primary(&mut self) -> bool {
        self.block_mut()
            .is_some_and(|block| block.consistency == Consistency::PrimaryPreferred)
    }

    /// The replica that may serve a statement.
    ///
    /// A block that has read from one goes on there alone, so that it sees nothing older; one that
    /// asks for nothing goes on anywhere, and a transaction is where it is.
    #[inline]
    pub(super) fn wanted(&self, rule: Rule) -> Wanted<'_> {
        match self.pinned() {
            _ if rule == Rule::Stale => Wanted::Stale(self.terms()),
            Some(place) if !self.goes_on_anywhere() && !self.in_transaction() => {
                Wanted::Only(place)
            }
            _ => Wanted::Fit(self.terms()),
        }
    }

    #[inline]
    pub(super) fn goes_on_anywhere(&self) -> bool {
        self.block()
            .is_some_and(|block| block.consistency == Consistency::Eventual)
    }
}

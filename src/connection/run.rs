//! Running a statement on the node it needs, and going on elsewhere where that is right.

use diesel::result::{Error, QueryResult};

use super::lend::{REPLICA_TRIES, Spent, open_primary, open_replica};
use super::settle::{after_error, after_success, mark_for};
use super::unit::Unit;
use super::{RoutedConnection, answered};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Consistency, Fallback, NoReplica, Role};
use crate::decision::{Decision, Reason};
use crate::error::RoutedError;
use crate::event;
use crate::node::{Permit, Use};
use crate::statement::Statement;

/// What to do after a statement failed on a replica.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The error is the user's.
    Return,
    /// Another replica may answer.
    OtherReplica,
    /// The primary answers, for this reason.
    Primary(Reason),
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Runs a statement that leaves no cursor behind.
    pub(super) fn run<R>(
        &mut self,
        statement: &Statement,
        f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        let decision = self.begin_statement(statement)?;
        match decision.target {
            Role::Primary => self.run_on_primary(statement, decision.reason, f),
            Role::Replica => self.run_on_replica(statement, decision.reason, f),
        }
    }

    /// Sends a read that prefers the primary to a replica, if the primary is gone.
    pub(super) fn prefer_primary(&mut self, decision: Decision) -> QueryResult<Decision> {
        if decision.reason != Reason::Forced || self.unit.forced || !self.unit.prefers_primary() {
            return Ok(decision);
        }
        self.leases.give_back_replicas();
        let Err(error) = self.open_proven_primary() else {
            return Ok(decision);
        };
        match RoutedError::downcast(&error) {
            Some(RoutedError::NoPrimary { .. }) if self.cluster.has_replicas() => Ok(Decision {
                target: Role::Replica,
                reason: Reason::Distributed,
            }),
            _ => Err(error),
        }
    }

    /// Borrows the primary on a connection that answers: one that has died in the pool would fail
    /// the read, where a replica can still serve it.
    fn open_proven_primary(&mut self) -> QueryResult<()> {
        let Self {
            leases,
            cluster,
            outfit,
            ..
        } = self;
        // the second one is new, or was pinged because of the first
        for _ in 0..2 {
            if leases.primary.is_some() {
                return Ok(());
            }
            let lease = open_primary(&mut leases.primary, cluster, outfit, || Ok(None))?;
            leases.primary_lost = lease.connection().ping().is_err();
            leases.tidy();
        }
        match leases.primary {
            Some(_) => Ok(()),
            None => Err(RoutedError::NoPrimary {
                node: cluster.node(0).name().to_string(),
                cause: "it takes connections, but answers nothing".to_owned(),
            }
            .into()),
        }
    }

    fn run_on_replica<R>(
        &mut self,
        statement: &Statement,
        mut reason: Reason,
        mut f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        let mut instead = Reason::NoReplica;
        for _ in 0..REPLICA_TRIES {
            let place = match self.open_replica()? {
                Ok(place) => place,
                Err(none) => {
                    instead = fall_back(&self.cluster, none)?;
                    break;
                }
            };
            let Some(lease) = self.leases.replica() else {
                break;
            };
            let error = match lease.run(&mut f) {
                Ok(value) => {
                    self.unit.pin(place);
                    self.last_route = Some(answered(&self.cluster, place, reason, Use::Read));
                    return Ok(value);
                }
                Err(error) => error,
            };
            self.leases.replicas[0].spent = spent_by::<C>(&self.unit, &error);
            match after_replica_error(&self.cluster, &self.unit, place, statement, &error) {
                Next::Return => return Err(error),
                Next::OtherReplica => reason = Reason::Distributed,
                Next::Primary(why) => {
                    instead = why;
                    break;
                }
            }
            self.leases.tidy();
        }
        check_fallback(&self.cluster, &instead)?;
        self.run_on_primary(&statement.because_of(&instead), instead, f)
    }

    /// Runs a statement on the primary, where the replicas leave it.
    pub(super) fn run_on_primary<R>(
        &mut self,
        statement: &Statement,
        reason: Reason,
        mut f: impl FnMut(&mut C) -> QueryResult<R>,
    ) -> QueryResult<R> {
        self.leases.give_back_replicas();
        let Self {
            leases,
            unit,
            cluster,
            outfit,
            ..
        } = self;
        let admission = || admission(cluster, &reason);
        let lease = open_primary(&mut leases.primary, cluster, outfit, admission)?;
        let mark = mark_for(cluster, unit, statement);
        let result = lease.run(&mut f);
        match &result {
            Ok(_) => after_success(unit, lease, statement, mark),
            Err(error) => {
                after_error(unit, lease, statement, mark, error);
                leases.primary_lost = note_loss(cluster, unit, error);
            }
        }
        self.unit.used_primary();
        self.last_route = Some(answered(&self.cluster, 0, reason, statement.use_()));
        result
    }

    /// Borrows a replica for the block, unless it has one, and returns the node's place.
    pub(super) fn open_replica(&mut self) -> QueryResult<Result<usize, NoReplica>> {
        let Self {
            leases,
            unit,
            cluster,
            outfit,
            ..
        } = self;
        let wait = leases.wait();
        let slot = &mut leases.replicas[0].lease;
        let opened = open_replica(slot, cluster, outfit, unit.only(), wait)?;
        Ok(opened.map(|lease| lease.node().place()))
    }
}

/// Tells whether the primary may answer in place of replicas, and for which reason.
pub(super) fn fall_back<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    none: NoReplica,
) -> QueryResult<Reason> {
    match cluster.settings().fallback {
        Fallback::Error if cluster.has_replicas() => {
            Err(RoutedError::NoReplica { cause: none.0 }.into())
        }
        _ => Ok(Reason::NoReplica),
    }
}

/// Checks that the primary may answer for this reason.
pub(super) fn check_fallback<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    reason: &Reason,
) -> QueryResult<()> {
    match reason {
        Reason::NoReplica | Reason::Lagging => fall_back(cluster, cluster.no_replica()).map(drop),
        _ => Ok(()),
    }
}

/// The permit that a read needs to be on the primary in place of a replica.
pub(super) fn admission<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    reason: &Reason,
) -> Result<Option<Permit>, RoutedError> {
    match reason {
        Reason::NoReplica | Reason::Lagging => cluster.admit_fallback(),
        _ => Ok(None),
    }
}

/// Decides what happens after an error on a replica, and tells the cluster what it means.
pub(super) fn after_replica_error<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    unit: &Unit,
    place: usize,
    statement: &Statement,
    error: &Error,
) -> Next {
    let lost = C::was_lost(error);
    if lost {
        cluster.node(place).died();
    }
    if unit.in_transaction() {
        return Next::Return;
    }
    if lost {
        // a block that has read goes on only where it sees nothing older
        return match unit.only() {
            Some(_) => Next::Primary(Reason::NoReplica),
            None => Next::OtherReplica,
        };
    }
    if !C::was_refused(error) {
        return Next::Return;
    }
    if statement.learn(cluster.learned()) {
        event::refused(statement.describe());
    }
    Next::Primary(Reason::ReadOnlyRefused)
}

/// Tells the primary's node of a lost connection, and whether the handle may open another one.
pub(super) fn note_loss<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    unit: &Unit,
    error: &Error,
) -> bool {
    let lost = C::was_lost(error);
    if lost {
        cluster.node(0).lost();
    }
    lost && !unit.in_transaction()
}

/// What becomes of a replica's connection after an error.
pub(super) fn spent_by<C: ReplicatedConnection>(unit: &Unit, error: &Error) -> Spent {
    if unit.in_transaction() {
        // the transaction ends first
        Spent::No
    } else if C::was_lost(error) {
        Spent::Lost
    } else if C::was_refused(error) {
        Spent::GiveBack
    } else {
        Spent::No
    }
}

impl Statement {
    /// What the primary is to make of a statement that comes for this reason.
    pub(super) fn because_of(&self, reason: &Reason) -> Self {
        match reason {
            Reason::ReadOnlyRefused => self.refused(),
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

    /// The one replica that may serve the block from here on, if it has read from one.
    ///
    /// A block that asks for nothing goes on anywhere, and a transaction is where it is.
    pub(super) fn only(&self) -> Option<usize> {
        let block = self.block()?;
        match block.consistency {
            _ if self.in_transaction() => None,
            Consistency::Eventual => None,
            _ => block.pin.as_ref().map(|pin| pin.node),
        }
    }
}

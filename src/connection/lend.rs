//! The node connections that a handle holds.

use std::cell::Cell;
use std::time::{Duration, Instant};

use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::result::QueryResult;

use super::outfit::Outfit;
use super::position::check_primary;
use super::run::admission;
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Fallback, NoReplica, Role, Terms, Wait, Wanted};
use crate::context::Need;
use crate::decision::{Rule, Transaction};
use crate::error::RoutedError;
use crate::node::{Lease, Node, Permit, Tenancy};

/// How many replicas one statement tries before it goes to the primary.
pub(super) const REPLICA_TRIES: usize = 2;

/// The node connections that a handle holds: one to the primary and one to a replica at most.
///
/// A second slot for replicas exists because the cursor of a first, failed try keeps its slot
/// borrowed for as long as the caller's: what came of each try is noted, and acted on before the
/// next statement.
pub(super) struct Leases<C: ReplicatedConnection> {
    pub(super) primary: Option<Lease<C>>,
    /// The primary's connection is of no more use.
    pub(super) primary_lost: bool,
    /// To the server that took over, for a write that the old primary refused: its failed try
    /// keeps the first slot borrowed.
    pub(super) successor: Option<Lease<C>>,
    pub(super) replicas: [Slot<C>; REPLICA_TRIES],
}

pub(super) struct Slot<C: ReplicatedConnection> {
    pub(super) lease: Option<Lease<C>>,
    pub(super) spent: Spent,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    No,
    /// The connection is whole, but of no more use to this block.
    GiveBack,
    /// The connection is gone.
    Lost,
}

impl<C: ReplicatedConnection> Leases<C> {
    pub(super) fn new() -> Self {
        let slot = || Slot {
            lease: None,
            spent: Spent::No,
        };
        Self {
            primary: None,
            primary_lost: false,
            successor: None,
            replicas: [slot(), slot()],
        }
    }

    /// Gives back what the last statement has left behind; the replica in use is the first then.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if !self.is_tidy() {
            self.clear_up();
        }
    }

    /// Tells whether the last statement has left nothing behind.
    #[inline]
    fn is_tidy(&self) -> bool {
        let is_spent = |slot: &Slot<C>| slot.spent != Spent::No;
        !self.primary_lost
            && self.successor.is_none()
            && self.replicas[1].lease.is_none()
            && !self.replicas.iter().any(is_spent)
    }

    fn clear_up(&mut self) {
        for slot in &mut self.replicas {
            if slot.spent == Spent::Lost {
                if let Some(lease) = &mut slot.lease {
                    lease.lose();
                }
            }
            if slot.spent != Spent::No {
                slot.lease = None;
                slot.spent = Spent::No;
            }
        }
        let [first, second] = &mut self.replicas;
        if first.lease.is_none() {
            first.lease = second.lease.take();
        }
        if std::mem::take(&mut self.primary_lost) {
            // what was set in its session is gone: no other connection may go on without it
            let stateless = |lease: &mut Lease<C>| lease.tenancy != Tenancy::Session;
            if let Some(mut lease) = self.primary.take_if(stateless) {
                lease.lose();
            }
        }
        if let Some(successor) = self.successor.take() {
            self.primary = Some(successor);
        }
    }

    /// Gives back what was opened on a node that is used as something else by now. What was set in
    /// a session is kept: no other connection may go on without it.
    pub(super) fn give_back_retired(&mut self) {
        drop(self.primary.take_if(Lease::is_to_be_replaced));
        for slot in &mut self.replicas {
            drop(slot.lease.take_if(Lease::is_to_be_replaced));
        }
    }

    pub(super) fn give_back_replicas(&mut self) {
        for slot in &mut self.replicas {
            if slot.spent == Spent::No {
                slot.lease = None;
            }
        }
        self.tidy();
    }

    /// The connection that a transaction runs on, if it is open.
    pub(super) fn of(&mut self, transaction: Transaction) -> Option<&mut Lease<C>> {
        match transaction {
            Transaction::ReadOnly(Role::Replica) => self.replica(),
            _ => self.primary.as_mut(),
        }
    }

    /// The replica in use.
    pub(super) fn replica(&mut self) -> Option<&mut Lease<C>> {
        self.replicas[0].lease.as_mut()
    }

    /// The node of the replica in use, if that is all there is, and as it should be.
    #[inline]
    pub(super) fn only_replica(&self) -> Option<&Node<C>> {
        if self.primary.is_some() || !self.is_tidy() {
            return None;
        }
        let lease = self.replicas[0].lease.as_ref()?;
        (!lease.is_retired()).then(|| &**lease.node())
    }

    /// A handle that holds the primary never waits for a replica: whoever holds that one may be
    /// waiting for the primary.
    pub(super) fn wait(&self) -> Wait {
        match self.primary {
            Some(_) => Wait::No,
            None => Wait::UntilCheckoutTimeout,
        }
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Lease<C>> {
        let replicas = self.replicas.iter_mut().map(|slot| &mut slot.lease);
        let primaries = [&mut self.primary, &mut self.successor];
        replicas.chain(primaries).flatten()
    }

    pub(super) fn status_of(lease: &mut Lease<C>) -> &mut TransactionManagerStatus {
        C::TransactionManager::transaction_manager_status_mut(lease.connection())
    }
}

/// How long a statement may still wait for connections, whichever nodes it goes to; the time that
/// the servers work on it does not count.
#[derive(Debug, Default)]
pub(super) struct Patience(Cell<Option<Duration>>);

impl Patience {
    /// Begins anew, for another statement.
    pub(super) fn renew(&self) {
        self.0.set(None);
    }

    /// Waits for something from now until a deadline, which leaves `reserve` of all that there is, `most`,
    /// to whatever is waited for next.
    fn wait<R>(
        &self,
        most: Duration,
        reserve: Duration,
        f: impl FnOnce(Instant, Instant) -> R,
    ) -> R {
        let began = Instant::now();
        let left = self.0.get().unwrap_or(most);
        let result = f(began, began + left.saturating_sub(reserve));
        self.0.set(Some(left.saturating_sub(began.elapsed())));
        result
    }
}

/// Borrows node connections for a handle.
pub(super) struct Borrower<'a, C: ReplicatedConnection> {
    pub(super) cluster: &'a Cluster<C>,
    pub(super) outfit: &'a Outfit<C>,
    pub(super) patience: &'a Patience,
}

impl<C: ReplicatedConnection> Clone for Borrower<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: ReplicatedConnection> Copy for Borrower<'_, C> {}

impl<C: ReplicatedConnection> Borrower<'_, C> {
    /// Waits for something for as long as the statement still may.
    pub(super) fn wait<R>(self, f: impl FnOnce(Instant) -> R) -> R {
        let most = self.cluster.settings().checkout_timeout;
        self.patience
            .wait(most, Duration::ZERO, |_, deadline| f(deadline))
    }

    /// Waits for a replica: the last quarter is the primary's, where that can serve instead.
    fn wait_for_replica<R>(self, f: impl FnOnce(Instant, Instant) -> R) -> R {
        let most = self.cluster.settings().checkout_timeout;
        let reserve = match self.cluster.settings().fallback {
            Fallback::Error => Duration::ZERO,
            Fallback::Primary { .. } | Fallback::Stale => most / 4,
        };
        self.patience.wait(most, reserve, f)
    }

    /// Tells whether another server takes the writes in place of one that has refused one.
    pub(super) fn was_deposed(self, node: &Node<C>) -> bool {
        self.wait(|deadline| self.cluster.is_deposed(node, deadline))
    }

    /// Borrows the primary into `slot` for a statement that comes for this reason, unless it is
    /// there already.
    pub(super) fn primary_for<'s>(
        self,
        slot: &'s mut Option<Lease<C>>,
        unit: &mut Unit,
        rule: Rule,
    ) -> QueryResult<&'s mut Lease<C>> {
        check_primary(slot, self, unit, rule)?;
        let admission = || admission(self, rule);
        self.primary(slot, Wait::UntilCheckoutTimeout, admission)
    }

    /// Borrows the primary into `slot`, unless it is there already.
    pub(super) fn primary(
        self,
        slot: &mut Option<Lease<C>>,
        wait: Wait,
        admission: impl FnOnce() -> Result<Option<Permit>, RoutedError>,
    ) -> QueryResult<&mut Lease<C>> {
        if slot.is_none() {
            let admission = admission()?;
            let mut lease = self.wait(|deadline| self.cluster.lend_primary(wait, deadline))?;
            lease.admission = admission;
            self.outfit.put_on(&mut lease)?;
            *slot = Some(lease);
        }
        Ok(slot.as_mut().expect("was filled above"))
    }

    /// Tells whether the replica in use is one that is wanted.
    #[inline]
    fn may_serve(self, lease: &Lease<C>, wanted: Wanted<'_>) -> bool {
        let node = lease.node();
        match wanted {
            Wanted::Only(only) => only == node.place(),
            Wanted::Fit(Terms { limit, need }) => {
                let admits = |limit| node.admits(Some(limit), Instant::now());
                limit.is_none_or(admits)
                    && (*need == Need::Nothing || self.cluster.has(node.place(), need))
            }
            Wanted::Stale(_) => true,
        }
    }

    /// Borrows a replica into `slot`, unless one is there already that may serve.
    #[inline]
    pub(super) fn replica<'s>(
        self,
        slot: &'s mut Option<Lease<C>>,
        wanted: Wanted<'_>,
        except: Option<usize>,
        wait: Wait,
    ) -> QueryResult<Result<&'s mut Lease<C>, NoReplica>> {
        // a block inside this one may have gone on elsewhere
        drop(slot.take_if(|lease| !self.may_serve(lease, wanted)));
        if slot.is_none() {
            if let Err(none) = self.fill(slot, wanted, except, wait)? {
                return Ok(Err(none));
            }
        }
        Ok(Ok(slot.as_mut().expect("was filled above")))
    }

    /// Borrows a replica into a slot that has none.
    fn fill(
        self,
        slot: &mut Option<Lease<C>>,
        wanted: Wanted<'_>,
        except: Option<usize>,
        wait: Wait,
    ) -> QueryResult<Result<(), NoReplica>> {
        let lend = |now, deadline| {
            let cluster = self.cluster;
            cluster.lend_replica(wanted, except, wait, now, deadline)
        };
        let mut lease = match self.wait_for_replica(lend) {
            Ok(lease) => lease,
            Err(none) => return Ok(Err(none)),
        };
        self.outfit.put_on(&mut lease)?;
        *slot = Some(lease);
        Ok(Ok(()))
    }
}

//! The node connections that a handle holds.

use std::time::Instant;

use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::result::QueryResult;

use super::outfit::Outfit;
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, NoReplica, Role, Wait, Wanted};
use crate::context::Need;
use crate::decision::Transaction;
use crate::error::RoutedError;
use crate::node::{Lease, Permit, Tenancy};

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
    pub(super) fn tidy(&mut self) {
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

/// Borrows the primary into `slot`, unless it is there already.
pub(super) fn open_primary<'a, C: ReplicatedConnection>(
    slot: &'a mut Option<Lease<C>>,
    cluster: &Cluster<C>,
    outfit: &Outfit<C>,
    wait: Wait,
    admission: impl FnOnce() -> Result<Option<Permit>, RoutedError>,
) -> QueryResult<&'a mut Lease<C>> {
    if slot.is_none() {
        let admission = admission()?;
        let mut lease = cluster.lend_primary(wait)?;
        lease.admission = admission;
        outfit.put_on(&mut lease)?;
        *slot = Some(lease);
    }
    Ok(slot.as_mut().expect("was filled above"))
}

/// Borrows a replica into `slot`, unless one is there already that may serve.
pub(super) fn open_replica<'a, C: ReplicatedConnection>(
    slot: &'a mut Option<Lease<C>>,
    cluster: &Cluster<C>,
    outfit: &Outfit<C>,
    wanted: Wanted<'_>,
    except: Option<usize>,
    wait: Wait,
) -> QueryResult<Result<&'a mut Lease<C>, NoReplica>> {
    // a block inside this one may have gone on elsewhere
    let elsewhere = |lease: &mut Lease<C>| match wanted {
        Wanted::Only(only) => only != lease.node().place(),
        Wanted::Fit(terms) => {
            let admits = |limit| lease.node().admits(limit, Instant::now());
            terms.limit.is_some_and(|limit| !admits(Some(limit)))
                || terms.need != Need::Nothing && !cluster.has(lease.node().place(), &terms.need)
        }
        Wanted::Stale(_) => false,
    };
    drop(slot.take_if(elsewhere));
    if slot.is_none() {
        let mut lease = match cluster.lend_replica(wanted, except, wait) {
            Ok(lease) => lease,
            Err(none) => return Ok(Err(none)),
        };
        outfit.put_on(&mut lease)?;
        *slot = Some(lease);
    }
    Ok(Ok(slot.as_mut().expect("was filled above")))
}

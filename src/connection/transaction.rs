//! Transactions: the whole stack runs on one node.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::result::{Error, QueryResult};

use super::RoutedConnection;
use super::lend::{Leases, REPLICA_TRIES, Spent};
use super::run::fall_back;
use super::settle::same_evidence;
use super::unit::{Block, Pin};
use crate::backend::ReplicatedConnection;
use crate::cluster::{ClusterMode, Role};
use crate::context::WriteMark;
use crate::decision::{Course, Rule, Transaction};
use crate::error::RoutedError;
use crate::node::Lease;
use crate::report::ErrorClass;
use crate::statement::Statement;

/// Hands transactions over to the transaction manager of the node that they run on.
pub struct RoutedTransactionManager<C>(PhantomData<fn() -> C>);

impl<C> fmt::Debug for RoutedTransactionManager<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoutedTransactionManager")
    }
}

impl<C: ReplicatedConnection> TransactionManager<RoutedConnection<C>>
    for RoutedTransactionManager<C>
{
    type TransactionStateData = TransactionManagerStatus;

    fn begin_transaction(conn: &mut RoutedConnection<C>) -> QueryResult<()> {
        conn.check_transaction()?;
        if conn.unit.transaction == Transaction::None {
            return conn.begin(C::TransactionManager::begin_transaction);
        }
        C::TransactionManager::begin_transaction(conn.transaction_connection()?)?;
        conn.unit.savepoints += 1;
        Ok(())
    }

    fn rollback_transaction(conn: &mut RoutedConnection<C>) -> QueryResult<()> {
        let result = C::TransactionManager::rollback_transaction(conn.transaction_connection()?);
        conn.leave_level(Ending::RolledBack);
        result
    }

    fn commit_transaction(conn: &mut RoutedConnection<C>) -> QueryResult<()> {
        if let Err(lost) = conn.check_transaction() {
            // a commit would succeed, of nothing
            Self::rollback_transaction(conn)?;
            return Err(lost);
        }
        let result = C::TransactionManager::commit_transaction(conn.transaction_connection()?);
        conn.leave_level(Ending::Unproven);
        result
    }

    fn transaction_manager_status_mut(
        conn: &mut RoutedConnection<C>,
    ) -> &mut TransactionManagerStatus {
        conn.status_mut()
    }
}

/// Counts a test transaction for as long as it is open: no other handle can see into it.
pub(super) struct TestTransaction(Arc<AtomicUsize>);

impl TestTransaction {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for TestTransaction {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is known of the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was rolled back as a whole.
    RolledBack,
    /// It was committed, or nobody knows.
    Unproven,
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    pub(super) fn status_mut(&mut self) -> &mut TransactionManagerStatus {
        let Self {
            leases,
            unit,
            status,
            ..
        } = self;
        match leases.of(unit.transaction) {
            Some(lease) => Leases::status_of(lease),
            None => status,
        }
    }

    /// Begins a transaction on the primary.
    pub(super) fn begin(
        &mut self,
        mut begin: impl FnMut(&mut C) -> QueryResult<()>,
    ) -> QueryResult<()> {
        if self.cluster.mode() == ClusterMode::ReadOnly {
            return Err(RoutedError::ReadOnlyMode.into());
        }
        self.leases.tidy();
        self.patience.renew();
        let result = self.begin_on_primary(Rule::Transaction, &mut begin);
        match result {
            // nothing was said yet: a connection that died in the pool is worth a second try
            Err(error)
                if C::class_of(&error) == ErrorClass::Death
                    && !self.unit.raw_transaction
                    && RoutedError::downcast(&error).is_none() =>
            {
                self.begin_on_primary(Rule::Transaction, &mut begin)?;
            }
            result => result?,
        }
        self.unit.transaction = Transaction::ReadWrite;
        // marks from before are not the transaction's to give back
        self.unit.unprovable = !self.unit.marks.is_empty();
        Ok(())
    }

    fn begin_on_primary(
        &mut self,
        rule: Rule,
        begin: &mut impl FnMut(&mut C) -> QueryResult<()>,
    ) -> QueryResult<()> {
        self.leases.give_back_replicas();
        let (leases, unit, borrower) = self.parts();
        let lease = borrower.primary_for(&mut leases.primary, unit, rule)?;
        let result = lease.run(begin);
        let death = |error: &Error| C::class_of(error) == ErrorClass::Death;
        if result.as_ref().is_err_and(death) {
            // what a statement has begun on it is lost, and nothing may go on without it
            lease.node().lost();
            leases.primary_lost = !unit.raw_transaction;
            leases.tidy();
        }
        unit.used_primary();
        result
    }

    /// Begins a read-only transaction where a read of a block would go.
    pub(super) fn begin_read_only(
        &mut self,
        mut begin: impl FnMut(&mut C) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let course = self.course_of_reads()?;
        let mut rule = match course.target {
            Role::Primary => course.rule,
            Role::Replica => match self.begin_on_replica(course.rule, &mut begin)? {
                Ok(()) => {
                    self.unit.transaction = Transaction::ReadOnly(Role::Replica);
                    return Ok(());
                }
                Err(rule) => rule,
            },
        };
        if rule == Rule::PrimaryMode {
            rule = Rule::ReadOnlyTransaction;
        }
        let begun = self.begin_on_primary(rule, &mut begin);
        self.unit.transaction = Transaction::ReadOnly(Role::Primary);
        if begun.is_err() {
            self.end_read_only();
            self.unit.transaction = Transaction::None;
        }
        begun
    }

    /// Where a read would go that is in a block: the one around, or else one of its own.
    fn course_of_reads(&mut self) -> QueryResult<Course> {
        let block = self.unit.block.clone();
        if block.is_none() && self.unit.ambient.is_none() {
            let settings = self.cluster.settings();
            self.unit.block = Some(Block::new(settings.consistency, settings.affinity));
        }
        let course = self.begin_statement(&Statement::read());
        self.unit.block = block;
        course
    }

    /// Begins on a replica, or says why the primary has to serve.
    fn begin_on_replica(
        &mut self,
        rule: Rule,
        begin: &mut impl FnMut(&mut C) -> QueryResult<()>,
    ) -> QueryResult<Result<(), Rule>> {
        let mut failed = None;
        for _ in 0..REPLICA_TRIES {
            if let Err(none) = self.open_replica(rule, failed)? {
                return fall_back(&self.cluster, none).map(Err);
            }
            let Some(lease) = self.leases.replica() else {
                break;
            };
            let begun = lease.run(&mut *begin);
            let origin = lease.origin();
            match begun {
                Ok(()) => {
                    self.unit.pin(origin.node.place());
                    return Ok(Ok(()));
                }
                Err(error) if C::class_of(&error) == ErrorClass::Death => {
                    failed = Some(origin.node.place());
                    origin.died();
                    self.leases.replicas[0].spent = Spent::Lost;
                    self.leases.tidy();
                }
                Err(error) => {
                    self.end_of_block();
                    return Err(error);
                }
            }
        }
        fall_back(&self.cluster, self.cluster.no_replica()).map(Err)
    }

    /// Ends a transaction as Diesel does: commit on `Ok`, rollback on `Err`.
    pub(super) fn finish<T, E: From<Error>>(&mut self, result: Result<T, E>) -> Result<T, E> {
        type Manager<C> = RoutedTransactionManager<C>;
        match result {
            Ok(value) => {
                Manager::<C>::commit_transaction(self)?;
                Ok(value)
            }
            Err(error) => match Manager::<C>::rollback_transaction(self) {
                // the first error is the one that says what happened
                Ok(()) | Err(Error::BrokenTransactionManager) => Err(error),
                Err(rollback) => Err(rollback.into()),
            },
        }
    }

    /// Test transactions and those with options of their own don't nest.
    pub(super) fn check_not_in_transaction(&mut self) -> QueryResult<()> {
        self.leases.tidy();
        self.notice_ended_transaction();
        match self.unit.transaction {
            Transaction::None => Ok(()),
            _ => Err(Error::AlreadyInTransaction),
        }
    }

    pub(super) fn begin_test(&mut self) -> QueryResult<()> {
        self.check_not_in_transaction()?;
        self.begin(C::begin_test_transaction)?;
        let open = self.cluster.test_transactions();
        self.test_transaction = Some(TestTransaction::new(open));
        Ok(())
    }

    /// The connection of the transaction that is open.
    fn transaction_lease(&mut self) -> QueryResult<&mut Lease<C>> {
        let lease = match self.unit.transaction {
            Transaction::None => None,
            transaction => self.leases.of(transaction),
        };
        lease.ok_or(Error::NotInTransaction)
    }

    fn transaction_connection(&mut self) -> QueryResult<&mut C> {
        self.transaction_lease().map(Lease::connection)
    }

    /// Refuses to go on in a transaction that the server has ended.
    pub(super) fn check_transaction(&self) -> QueryResult<()> {
        match self.unit.transaction_lost {
            false => Ok(()),
            true => Err(RoutedError::TransactionLost {
                node: self.cluster.primary_name(),
            }
            .into()),
        }
    }

    /// Leaves a savepoint, or the transaction itself.
    ///
    /// Counted here and not read from the connection's own state: when that is broken the
    /// transaction lasts until its outermost closure ends, so that nothing in it runs outside.
    fn leave_level(&mut self, ending: Ending) {
        match self.unit.savepoints.checked_sub(1) {
            Some(left) => self.unit.savepoints = left,
            None => self.after_transaction(ending),
        }
    }

    /// Acts on the end of a transaction.
    fn after_transaction(&mut self, ending: Ending) {
        let broken = self.status_mut().transaction_depth().is_err();
        if broken {
            self.lose_transaction();
        }
        self.end_read_only();
        self.touch();
        self.test_transaction = None;
        let snapshot = self.snapshot();
        let unit = &mut self.unit;
        unit.transaction = Transaction::None;
        unit.transaction_lost = false;
        unit.savepoints = 0;
        let provable = ending == Ending::RolledBack && !broken && !unit.unprovable;
        unit.unprovable = false;
        let marks = std::mem::take(&mut unit.marks);
        if !marks.is_empty() && provable && self.left_no_trace() {
            marks.into_iter().for_each(|mark| mark.give_back());
        } else if broken {
            // a commit that was not answered may still be under way
            marks.iter().for_each(WriteMark::doubt);
        }
        self.note_seen(snapshot);
        self.end_of_block();
    }

    /// What a read-only transaction is with regard to what it has read: a block, unless it is
    /// inside one.
    fn snapshot(&mut self) -> Option<Block> {
        let Transaction::ReadOnly(role) = self.unit.transaction else {
            return None;
        };
        if self.unit.block().is_some() {
            return None;
        }
        let settings = self.cluster.settings();
        let mut block = Block::new(settings.consistency, settings.affinity);
        match role {
            Role::Primary => block.used_primary = true,
            Role::Replica => {
                let context = self.unit.context();
                block.pin = self.leases.replica().map(|lease| Pin {
                    node: lease.node().place(),
                    context,
                    epoch: None,
                });
            }
        }
        Some(block)
    }

    /// Notes that the connection of the transaction is of no use any more.
    fn lose_transaction(&mut self) {
        match self.unit.transaction {
            Transaction::ReadOnly(Role::Replica) => self.leases.replicas[0].spent = Spent::Lost,
            _ => self.leases.primary_lost = true,
        }
    }

    fn left_no_trace(&mut self) -> bool {
        C::ROLLBACK_IS_PROOF || self.leases.primary.as_mut().is_some_and(same_evidence)
    }

    /// On the primary the session must write again.
    fn end_read_only(&mut self) {
        if self.unit.transaction != Transaction::ReadOnly(Role::Primary) {
            return;
        }
        let Some(lease) = &mut self.leases.primary else {
            return;
        };
        if lease.connection().end_read_only().is_err() {
            self.leases.primary_lost = true;
        }
    }

    /// Notices a transaction that a statement has ended behind Diesel's back (`COMMIT`).
    pub(super) fn notice_ended_transaction(&mut self) {
        if self.unit.transaction != Transaction::None
            && matches!(self.status_mut().transaction_depth(), Ok(None))
        {
            self.after_transaction(Ending::Unproven);
        }
    }
}

//! The connection that the user holds: statement -> decide -> choose -> delegate.

mod ambient;
mod blocks;
mod catch_up;
mod facts;
mod failure;
mod forward;
mod lend;
mod load;
#[cfg(feature = "mysql")]
mod mysql;
mod outfit;
mod position;
#[cfg(feature = "postgres")]
mod postgres;
mod replay;
mod run;
mod settle;
#[cfg(feature = "sqlite")]
mod sqlite;
mod steady;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod transaction;
mod unit;

use std::fmt;
use std::sync::Arc;

use diesel::connection::{TransactionManagerStatus, ValidTransactionManagerStatus};
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::result::QueryResult;

use self::facts::replica_facts;
use self::lend::{Borrower, Leases, Patience};
use self::outfit::Outfit;
#[cfg(feature = "postgres")]
pub use self::postgres::TransactionBuilder;
pub use self::replay::Peeked;
use self::settle::Answer;
pub use self::transaction::RoutedTransactionManager;
use self::transaction::TestTransaction;
use self::unit::{Ambient, Unit};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Affinity, Cluster, ClusterMode, ImplicitContext, Mode, Role};
use crate::context::Context;
use crate::decision::{self, Course, Decision, Demand, Facts, Reason, Rule, Transaction};
use crate::error::RoutedError;
use crate::node::Tenancy;
use crate::statement::{Known, Statement};

/// A Diesel connection that is a whole replicated database.
///
/// Every statement is sent to the node it needs: writes, and by default everything else, to the
/// primary; inside [`distributed`](Self::distributed) reads go to a replica. It implements all of
/// Diesel's connection traits, so that queries, transactions, migrations and `save_changes` work
/// as on the connection `C`. What Diesel offers on `C` alone is reached by
/// [`primary_connection`](Self::primary_connection).
///
/// It opens nothing until a statement needs it: a replica for the length of a block, the primary
/// until the handle goes back to its pool.
pub struct RoutedConnection<C: ReplicatedConnection> {
    cluster: Cluster<C>,
    /// Boxed, as is the unit: pools of handles move them about at each checkout.
    leases: Box<Leases<C>>,
    unit: Box<Unit>,
    outfit: Outfit<C>,
    patience: Patience,
    known: Known,
    /// The state of transactions while no node is open.
    status: TransactionManagerStatus,
    test_transaction: Option<TestTransaction>,
    last_answer: Option<Answer>,
    metadata: C::MetadataCache,
}

/// Which node answered a statement, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The name of the node.
    pub node: Arc<str>,
    /// What the node is used as.
    pub role: Role,
    /// Why it was asked.
    pub reason: Reason,
}

impl<C: ReplicatedConnection> Cluster<C> {
    /// Returns a handle of its own, outside any pool.
    ///
    /// It opens nothing until a statement needs it. How many connections are open at once is
    /// still bounded by the `pool_size` of each node. Dropping it gives everything back.
    pub fn connection(&self) -> RoutedConnection<C> {
        RoutedConnection {
            unit: Box::new(new_unit(self)),
            cluster: self.clone(),
            leases: Box::new(Leases::new()),
            outfit: Outfit::new(),
            patience: Patience::default(),
            known: Known::default(),
            status: TransactionManagerStatus::default(),
            test_transaction: None,
            last_answer: None,
            metadata: C::MetadataCache::default(),
        }
    }
}

fn new_unit<C: ReplicatedConnection>(cluster: &Cluster<C>) -> Unit {
    let settings = cluster.settings();
    Unit::new(match settings.default_mode {
        Mode::Primary => None,
        Mode::Distributed => Some(Ambient::new(settings.consistency, settings.affinity)),
    })
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Returns the cluster that the handle belongs to.
    pub fn cluster(&self) -> &Cluster<C> {
        &self.cluster
    }

    /// Returns where the last statement went and why; `None` before the first.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.distributed(|conn| posts::table.first::<(i32, String)>(conn))?;
    /// assert_eq!(conn.last_route().unwrap().reason, Reason::Distributed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_route(&self) -> Option<Route> {
        self.last_answer.as_ref().map(Answer::route)
    }

    /// Tells where a query would go now, and why, without running it.
    ///
    /// A bare table is no query yet: say `&posts::table.as_query()`.
    ///
    /// # Errors
    ///
    /// If the query can't be turned into SQL, or would be refused by the router.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let decision = conn.explain(&diesel::delete(posts::table.find(1)))?;
    /// assert_eq!((decision.target, decision.reason), (Role::Primary, Reason::Write));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain<T>(&mut self, query: &T) -> QueryResult<Decision>
    where
        T: QueryFragment<C::Backend> + QueryId,
    {
        let statement = self.statement(query)?;
        let Course { target, rule } = self.decide(&statement)?;
        let reason = rule.reason(statement.function());
        Ok(Decision { target, reason })
    }

    /// Marks the context as if something had been written now: blocks read from the primary until
    /// the replicas are known to have caught up.
    pub fn stick_to_primary(&mut self) {
        self.unit.context().mark(self.cluster.place());
        if let Some(block) = self.unit.block_mut() {
            block.used_primary = true;
        }
    }

    /// Forgets what was written, for this cluster in the present context and for the block.
    ///
    /// Writes that still run keep their marks.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.stick_to_primary(); // something was written by other means
    /// conn.unstick(); // and may be missed
    /// conn.distributed(|conn| posts::table.first::<(i32, String)>(conn))?;
    /// assert_eq!(conn.last_route().unwrap().role, Role::Replica);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unstick(&mut self) {
        self.unit.context().unstick_for(self.cluster.place());
        if let Some(block) = self.unit.block_mut() {
            block.used_primary = false;
            block.pin = None;
        }
    }

    /// Runs `f` on every node connection that this handle uses until it goes back, those in use
    /// now included: settings of one request, such as a tenant.
    ///
    /// The connections are closed at the end, so that the next request does not see the
    /// settings. What every connection should have belongs into
    /// [`with_setup`](crate::RoutedConnectionManager::with_setup).
    ///
    /// # Errors
    ///
    /// The error of `f` on a connection in use now. On one that is opened later, the statement
    /// that opened it fails.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// use diesel::connection::SimpleConnection;
    /// conn.session(|conn| conn.batch_execute("PRAGMA cache_size = -64000"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn session(
        &mut self,
        f: impl Fn(&mut C) -> QueryResult<()> + Send + 'static,
    ) -> QueryResult<()> {
        self.outfit.add_session_hook(Box::new(f));
        let Self { leases, outfit, .. } = self;
        leases
            .all()
            .try_for_each(|lease| outfit.put_on_newest_hook(lease))
    }

    fn statement<T>(&mut self, query: &T) -> QueryResult<Arc<Statement>>
    where
        T: QueryFragment<C::Backend> + QueryId,
    {
        self.known.look_up(
            query,
            &C::Backend::default(),
            self.cluster.rules(),
            self.cluster.learned(),
        )
    }

    fn statement_of_text(&mut self, sql: &str) -> Arc<Statement> {
        self.known
            .look_up_text(sql, self.cluster.rules(), self.cluster.learned())
    }

    fn decide(&mut self, statement: &Statement) -> QueryResult<Course> {
        let mode = self.cluster.mode();
        self.check_allowed(statement, mode)?;
        let pin = self.pin_facts();
        let session = self.leases.primary.as_ref().map(|lease| lease.tenancy);
        let facts = Facts {
            demand: match statement.was_refused() {
                true => Demand::Refused,
                false => Demand::Scanned(statement.kind().need()),
            },
            transaction: match self.unit.raw_transaction {
                true => Transaction::ReadWrite,
                false => self.unit.transaction,
            },
            session_state: session == Some(Tenancy::Session),
            forced: self.unit.forced,
            block: match mode {
                ClusterMode::PrimaryOnly => None,
                _ => self.unit.block_mut().map(|block| block.facts(pin)),
            },
        };
        let Self { cluster, unit, .. } = self;
        Ok(decision::decide(&facts, || replica_facts(cluster, unit)))
    }

    /// Refuses what may not run now whichever node it would go to.
    fn check_allowed(&mut self, statement: &Statement, mode: ClusterMode) -> QueryResult<()> {
        let on_replica = self.unit.transaction == Transaction::ReadOnly(Role::Replica);
        if on_replica && (self.unit.forced || statement.is_anything()) {
            let node = match self.leases.replica() {
                Some(lease) => lease.node().name().to_string(),
                None => String::new(),
            };
            return Err(RoutedError::ReadOnlyTransaction { node }.into());
        }
        self.check_transaction()?;
        if mode == ClusterMode::ReadOnly && statement.writes() {
            return Err(RoutedError::ReadOnlyMode.into());
        }
        if self.unit.block.is_some()
            && self.cluster.settings().implicit_context == ImplicitContext::Forbid
            && Context::current().is_none()
        {
            return Err(RoutedError::NoContext.into());
        }
        Ok(())
    }

    /// What a statement is run with.
    fn parts(&mut self) -> (&mut Leases<C>, &mut Unit, Borrower<'_, C>) {
        let borrower = Borrower {
            cluster: &self.cluster,
            outfit: &self.outfit,
            patience: &self.patience,
        };
        (&mut self.leases, &mut self.unit, borrower)
    }

    /// Begins a statement: acts on what the last one has left behind, then decides.
    fn begin_statement(&mut self, statement: &Statement) -> QueryResult<Course> {
        self.patience.renew();
        if self.is_steady(statement) {
            let course = Course::replica(Rule::Pinned);
            debug_assert!(self.decide(statement) == Ok(course) || !self.is_steady(statement));
            return Ok(course);
        }
        self.leases.tidy();
        self.touch();
        match self.unit.in_transaction() {
            true => self.notice_ended_transaction(),
            false => {
                self.leases.give_back_retired();
                if self.unit.affinity() == Affinity::Query {
                    self.leases.give_back_replicas();
                }
            }
        }
        let course = self.decide(statement);
        if self.unit.transaction_lost && self.unit.is_closed_by(statement) {
            // it was told now that nothing is left to commit
            self.unit.close_raw_transaction();
        }
        let course = course?;
        if course.target == Role::Replica {
            return Ok(course);
        }
        // instead of the primary a replica may do after all
        let course = self.catch_up(statement, course)?;
        let course = self.prefer_stale(course);
        run::check_fallback(&self.cluster, course.rule)?;
        self.prefer_primary(course)
    }

    /// Ends one use of the handle: node connections go back or are closed, marks are delivered.
    ///
    /// A test transaction is spared, and with it the connection it is open on.
    pub(crate) fn give_back(&mut self) {
        if self.test_transaction.is_some() && self.is_in_test_transaction() {
            return;
        }
        self.test_transaction = None;
        if self.unit.raw_transaction {
            if let Some(lease) = &mut self.leases.primary {
                lease.tenancy = Tenancy::Session;
            }
        }
        let ambient = self.unit.ambient.take();
        self.note_seen(ambient.map(|ambient| ambient.block));
        self.read_position_for_tokens();
        self.leases.tidy();
        *self.leases = Leases::new();
        *self.unit = new_unit(&self.cluster);
        self.outfit.end_unit();
        self.status = TransactionManagerStatus::default();
        self.last_answer = None;
    }

    /// Tells whether a test transaction is open, as far as the last use of the handle showed.
    pub(crate) fn holds_test_transaction(&self) -> bool {
        self.test_transaction.is_some()
    }

    fn is_in_test_transaction(&mut self) -> bool {
        matches!(
            self.status_mut(),
            TransactionManagerStatus::Valid(ValidTransactionManagerStatus {
                in_transaction: Some(transaction),
                ..
            }) if transaction.test_transaction
        )
    }
}

impl<C: ReplicatedConnection> Drop for RoutedConnection<C> {
    fn drop(&mut self) {
        // the marks are delivered after the connections are closed, as at give-back
        self.test_transaction = None;
        self.give_back();
    }
}

impl<C: ReplicatedConnection> fmt::Debug for RoutedConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedConnection")
            .field("cluster", &self.cluster)
            .field("last_route", &self.last_route())
            .finish_non_exhaustive()
    }
}

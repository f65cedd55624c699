//! Loading rows: as running, but the cursor stays borrowed from the node that answers.

use diesel::connection::LoadConnection;
use diesel::expression::QueryMetadata;
use diesel::query_builder::{Query, QueryFragment, QueryId};
use diesel::result::QueryResult;

use super::RoutedConnection;
use super::failure::{
    Next, after_replica_error, answer_of, may_resend, note_loss, shows_nothing, spent_by,
};
use super::lend::{Borrower, Leases, Slot};
use super::replay::{Peeked, Shared, Told};
use super::run::{check_fallback, fall_back};
use super::settle::{Answer, answered, mark_for, note_failure, note_success, occupy};
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Role};
use crate::context::WriteMark;
use crate::decision::{Course, Rule};
use crate::node::{Lease, Origin, Tenancy};
use crate::statement::{Form, Statement};

/// The cursor of a routed connection over `C`.
type PeekedOf<'conn, 'query, C, B> = Peeked<
    <C as LoadConnection<B>>::Cursor<'conn, 'query>,
    <C as LoadConnection<B>>::Row<'conn, 'query>,
>;

impl<B, C> LoadConnection<B> for RoutedConnection<C>
where
    C: ReplicatedConnection + LoadConnection<B>,
{
    type Cursor<'conn, 'query> = PeekedOf<'conn, 'query, C, B>;
    type Row<'conn, 'query> = <C as LoadConnection<B>>::Row<'conn, 'query>;

    fn load<'conn, 'query, T>(
        &'conn mut self,
        source: T,
    ) -> QueryResult<Self::Cursor<'conn, 'query>>
    where
        T: Query + QueryFragment<Self::Backend> + QueryId + 'query,
        Self::Backend: QueryMetadata<T::SqlType>,
    {
        let statement = self.statement(&source)?;
        let source = Told::new(source, statement.text());
        let course = self.begin_statement(&statement)?;
        match course.target {
            Role::Primary => {
                self.leases.give_back_replicas();
                let rest = self.rest();
                match statement.form() {
                    Form::Dml => rest.write::<B, _>(source, &statement, course.rule),
                    _ => rest.load::<B, _>(source, &statement, course.rule),
                }
            }
            Role::Replica => self.load_on_replica::<B, _>(source, &statement, course.rule),
        }
    }
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    fn load_on_replica<'conn, 'query, B, T>(
        &'conn mut self,
        source: T,
        statement: &Statement,
        mut rule: Rule,
    ) -> QueryResult<<Self as LoadConnection<B>>::Cursor<'conn, 'query>>
    where
        C: LoadConnection<B>,
        T: Query + QueryFragment<C::Backend> + QueryId + 'query,
        C::Backend: QueryMetadata<T::SqlType>,
    {
        let (source, wait) = (Shared::new(source), self.leases.wait());
        let (mut instead, mut failed, mut first) = (Rule::NoReplica, None, None);
        let (replicas, mut rest) = self.split();
        let Borrower { cluster, .. } = rest.borrower;
        // each try has a slot of its own: a failed one's stays borrowed as long as the cursor
        for slot in replicas {
            let wanted = rest.unit.wanted(rule);
            let place = &mut slot.lease;
            let lease = match rest.borrower.replica(place, wanted, failed, wait)? {
                Ok(lease) => lease,
                Err(none) => {
                    instead = fall_back(cluster, none)?;
                    break;
                }
            };
            let (origin, conn) = lease.split();
            let loaded = Peeked::new(LoadConnection::<B>::load(conn, source.clone()));
            let Err(error) = loaded else {
                rest.read_by(&origin, rule, statement);
                return loaded;
            };
            failed = Some(origin.node.place());
            slot.spent = spent_by::<C>(rest.unit, &error);
            match after_replica_error(cluster, rest.unit, &origin, statement, &error) {
                Next::Return => return Err(error),
                Next::OtherReplica => rule = Rule::Distributed,
                Next::Primary(why) => {
                    (instead, first) = (why, Some(error));
                    break;
                }
            }
        }
        check_fallback(cluster, instead)?;
        let loaded = rest.load::<B, _>(source, &statement.because_of(instead), instead);
        loaded.map_err(|error| answer_of::<C>(instead, first, error))
    }

    fn rest(&mut self) -> Rest<'_, C> {
        self.split().1
    }

    /// Splits the handle into its replicas and the rest, so that a cursor may borrow one of them.
    fn split(&mut self) -> (&mut [Slot<C>], Rest<'_, C>) {
        let Leases {
            primary,
            primary_lost,
            successor,
            replicas,
        } = &mut *self.leases;
        let rest = Rest {
            primary,
            primary_lost,
            successor,
            unit: &mut self.unit,
            borrower: Borrower {
                cluster: &self.cluster,
                outfit: &self.outfit,
                patience: &self.patience,
            },
            last_answer: &mut self.last_answer,
        };
        (replicas, rest)
    }
}

/// A handle without its replicas.
struct Rest<'conn, C: ReplicatedConnection> {
    primary: &'conn mut Option<Lease<C>>,
    primary_lost: &'conn mut bool,
    successor: &'conn mut Option<Lease<C>>,
    unit: &'conn mut Unit,
    borrower: Borrower<'conn, C>,
    last_answer: &'conn mut Option<Answer>,
}

impl<'conn, C: ReplicatedConnection> Rest<'conn, C> {
    /// Notes which replica has answered.
    fn read_by(&mut self, origin: &Origin<'_, C>, rule: Rule, statement: &Statement) {
        self.unit.pin(origin.node.place());
        let (cluster, course) = (self.borrower.cluster, Course::replica(rule));
        answered(self.last_answer, cluster, origin.node, course, statement);
    }

    /// Loads from the primary.
    fn load<'query, B, T>(
        self,
        source: T,
        statement: &Statement,
        rule: Rule,
    ) -> QueryResult<PeekedOf<'conn, 'query, C, B>>
    where
        C: LoadConnection<B>,
        T: Query + QueryFragment<C::Backend> + QueryId + 'query,
        C::Backend: QueryMetadata<T::SqlType>,
    {
        let Self {
            primary,
            borrower,
            primary_lost,
            unit,
            last_answer,
            ..
        } = self;
        let (cluster, course) = (borrower.cluster, Course::primary(rule));
        let lease = borrower.primary_for(primary, unit, rule)?;
        let (origin, conn, mark) = enter(lease, unit, cluster, statement);
        let mut loaded = Peeked::new(LoadConnection::<B>::load(conn, source));
        settle::<C, _, _>(&mut loaded, unit, statement, mark);
        answered(last_answer, cluster, origin.node, course, statement);
        if let Err(error) = &loaded {
            *primary_lost = note_loss(&origin, unit, error);
        }
        loaded
    }

    /// Loads the rows that a single write returns; if its server refuses it because another one is
    /// the primary by now, from that one.
    fn write<'query, B, T>(
        self,
        source: T,
        statement: &Statement,
        rule: Rule,
    ) -> QueryResult<PeekedOf<'conn, 'query, C, B>>
    where
        C: LoadConnection<B>,
        T: Query + QueryFragment<C::Backend> + QueryId + 'query,
        C::Backend: QueryMetadata<T::SqlType>,
    {
        let Self {
            primary,
            successor,
            borrower,
            primary_lost,
            unit,
            last_answer,
        } = self;
        let (cluster, course) = (borrower.cluster, Course::primary(rule));
        let source = Shared::new(source);
        let lease = borrower.primary_for(primary, unit, rule)?;
        let tenancy = lease.tenancy;
        let (origin, conn, mark) = enter(lease, unit, cluster, statement);
        let mut first = Peeked::new(LoadConnection::<B>::load(conn, source.clone()));
        settle::<C, _, _>(&mut first, unit, statement, mark);
        answered(last_answer, cluster, origin.node, course, statement);
        let Err(error) = first else {
            return first;
        };
        *primary_lost = note_loss(&origin, unit, &error);
        let may = tenancy != Tenancy::Session && may_resend::<C>(unit, statement, &error);
        if !may || !borrower.was_deposed(origin.node) {
            return Err(error);
        }
        // what the failed try has borrowed stays borrowed, and is closed by the next statement
        *primary_lost = true;
        let lease = borrower.primary_for(successor, unit, rule)?;
        let (origin, conn, mark) = enter(lease, unit, cluster, statement);
        let mut second = Peeked::new(LoadConnection::<B>::load(conn, source));
        settle::<C, _, _>(&mut second, unit, statement, mark);
        answered(last_answer, cluster, origin.node, course, statement);
        second
    }
}

/// Takes what a statement needs on the primary: where its answer comes from, the connection, and the
/// ticket of a write.
fn enter<'conn, C: ReplicatedConnection>(
    lease: &'conn mut Lease<C>,
    unit: &mut Unit,
    cluster: &Cluster<C>,
    statement: &Statement,
) -> (Origin<'conn, C>, &'conn mut C, Option<WriteMark>) {
    // the cursor borrows the connection from here on: what is noted on it is noted now
    occupy(lease, statement);
    let mark = mark_for(cluster, unit, lease, statement);
    let (origin, conn) = lease.split();
    (origin, conn, mark)
}

/// Settles what loading from the primary leaves behind.
fn settle<C: ReplicatedConnection, I, R>(
    loaded: &mut QueryResult<Peeked<I, R>>,
    unit: &mut Unit,
    statement: &Statement,
    mark: Option<WriteMark>,
) {
    if !loaded.as_ref().is_err_and(shows_nothing::<C>) {
        unit.used_primary();
    }
    match loaded {
        Ok(cursor) => {
            note_success(unit, statement);
            match unit.in_transaction() {
                true => unit.keep(mark),
                false => cursor.ends(mark),
            }
        }
        // nobody can be asked for evidence while the cursor's slot is borrowed
        Err(error) => note_failure::<C>(unit, statement, mark, error, || false),
    }
}

//! Loading rows: as running, but the cursor stays borrowed from the node that answers.

use diesel::connection::LoadConnection;
use diesel::expression::QueryMetadata;
use diesel::query_builder::{Query, QueryFragment, QueryId};
use diesel::result::QueryResult;

use super::failure::{
    Next, after_replica_error, answer_of, may_resend, note_loss, shows_nothing, spent_by,
};
use super::lend::{Borrower, Leases, Slot};
use super::replay::{Peeked, Shared, Told};
use super::run::{check_fallback, fall_back};
use super::settle::{answered, mark_for, note_failure, note_success, occupy};
use super::unit::Unit;
use super::{Route, RoutedConnection};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Role};
use crate::decision::Reason;
use crate::node::{Lease, Origin, Tenancy, Use};
use crate::statement::{Form, Statement};

impl<B, C> LoadConnection<B> for RoutedConnection<C>
where
    C: ReplicatedConnection + LoadConnection<B>,
{
    type Cursor<'conn, 'query> = Peeked<<C as LoadConnection<B>>::Cursor<'conn, 'query>>;
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
        let decision = self.begin_statement(&statement)?;
        match decision.target {
            Role::Primary => {
                self.leases.give_back_replicas();
                let rest = self.rest();
                match statement.form() {
                    Form::Dml => rest.write::<B, _>(source, &statement, decision.reason),
                    _ => rest.load::<B, _>(source, &statement, decision.reason),
                }
            }
            Role::Replica => self.load_on_replica::<B, _>(source, &statement, decision.reason),
        }
    }
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    fn load_on_replica<'conn, 'query, B, T>(
        &'conn mut self,
        source: T,
        statement: &Statement,
        mut reason: Reason,
    ) -> QueryResult<<Self as LoadConnection<B>>::Cursor<'conn, 'query>>
    where
        C: LoadConnection<B>,
        T: Query + QueryFragment<C::Backend> + QueryId + 'query,
        C::Backend: QueryMetadata<T::SqlType>,
    {
        let (source, wait) = (Shared::new(source), self.leases.wait());
        let (mut instead, mut failed, mut first) = (Reason::NoReplica, None, None);
        let (replicas, mut rest) = self.split();
        let Borrower { cluster, .. } = rest.borrower;
        // each try has a slot of its own: a failed one's stays borrowed as long as the cursor
        for slot in replicas {
            let wanted = rest.unit.wanted(&reason);
            let place = &mut slot.lease;
            let lease = match rest.borrower.replica(place, wanted, failed, wait)? {
                Ok(lease) => lease,
                Err(none) => {
                    instead = fall_back(cluster, none)?;
                    break;
                }
            };
            let (origin, conn) = lease.split();
            let loaded = LoadConnection::<B>::load(conn, source.clone());
            let error = match loaded.and_then(Peeked::new) {
                Ok(cursor) => {
                    rest.read_by(&origin, reason);
                    return Ok(cursor);
                }
                Err(error) => error,
            };
            failed = Some(origin.node.place());
            slot.spent = spent_by::<C>(rest.unit, &error);
            match after_replica_error(cluster, rest.unit, &origin, statement, &error) {
                Next::Return => return Err(error),
                Next::OtherReplica => reason = Reason::Distributed,
                Next::Primary(why) => {
                    (instead, first) = (why, Some(error));
                    break;
                }
            }
        }
        check_fallback(cluster, &instead)?;
        let loaded = rest.load::<B, _>(source, &statement.because_of(&instead), instead.clone());
        loaded.map_err(|error| answer_of::<C>(&instead, first, error))
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
        } = &mut self.leases;
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
            last_route: &mut self.last_route,
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
    last_route: &'conn mut Option<Route>,
}

impl<'conn, C: ReplicatedConnection> Rest<'conn, C> {
    /// Notes which replica has answered.
    fn read_by(&mut self, origin: &Origin<'_, C>, reason: Reason) {
        self.unit.pin(origin.node.place());
        let (node, use_) = (origin.node, Use::Read);
        answered(
            self.last_route,
            self.borrower.cluster,
            node,
            Role::Replica,
            reason,
            use_,
        );
    }

    /// Loads from the primary.
    fn load<'query, B, T>(
        self,
        source: T,
        statement: &Statement,
        reason: Reason,
    ) -> QueryResult<Peeked<<C as LoadConnection<B>>::Cursor<'conn, 'query>>>
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
            last_route,
            ..
        } = self;
        let cluster = borrower.cluster;
        let lease = borrower.primary_for(primary, unit, &reason)?;
        let (origin, loaded) = load_there::<C, B, T>(lease, unit, source, cluster, statement);
        answered_by(last_route, cluster, &origin, statement, reason);
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
        reason: Reason,
    ) -> QueryResult<Peeked<<C as LoadConnection<B>>::Cursor<'conn, 'query>>>
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
            last_route,
        } = self;
        let (source, cluster) = (Shared::new(source), borrower.cluster);
        let lease = borrower.primary_for(primary, unit, &reason)?;
        let tenancy = lease.tenancy;
        let (origin, first) =
            load_there::<C, B, _>(lease, unit, source.clone(), cluster, statement);
        answered_by(last_route, cluster, &origin, statement, reason.clone());
        let error = match first {
            Ok(cursor) => return Ok(cursor),
            Err(error) => error,
        };
        *primary_lost = note_loss(&origin, unit, &error);
        let may = tenancy != Tenancy::Session && may_resend::<C>(unit, statement, &error);
        if !may || !borrower.was_deposed(origin.node) {
            return Err(error);
        }
        // what the failed try has borrowed stays borrowed, and is closed by the next statement
        *primary_lost = true;
        let lease = borrower.primary_for(successor, unit, &reason)?;
        let (origin, second) = load_there::<C, B, _>(lease, unit, source, cluster, statement);
        answered_by(last_route, cluster, &origin, statement, reason);
        second
    }
}

/// Loads from a connection to the primary, and settles what that leaves behind.
fn load_there<'conn, 'query, C, B, T>(
    lease: &'conn mut Lease<C>,
    unit: &mut Unit,
    source: T,
    cluster: &Cluster<C>,
    statement: &Statement,
) -> (
    Origin<'conn, C>,
    QueryResult<Peeked<<C as LoadConnection<B>>::Cursor<'conn, 'query>>>,
)
where
    C: ReplicatedConnection + LoadConnection<B>,
    T: Query + QueryFragment<C::Backend> + QueryId + 'query,
    C::Backend: QueryMetadata<T::SqlType>,
{
    // the cursor borrows the connection from here on: what is noted on it is noted now
    occupy(lease, statement);
    let mark = mark_for(cluster, unit, lease, statement);
    let (origin, conn) = lease.split();
    let loaded = LoadConnection::<B>::load(conn, source).and_then(Peeked::new);
    if !loaded.as_ref().is_err_and(shows_nothing::<C>) {
        unit.used_primary();
    }
    let settled = match loaded {
        Ok(cursor) => {
            note_success(unit, statement);
            Ok(match unit.in_transaction() {
                true => {
                    unit.keep(mark);
                    cursor
                }
                false => cursor.ending(mark),
            })
        }
        Err(error) => {
            // nobody can be asked for evidence while the cursor's slot is borrowed
            note_failure::<C>(unit, statement, mark, &error, || false);
            Err(error)
        }
    };
    (origin, settled)
}

fn answered_by<C: ReplicatedConnection>(
    last_route: &mut Option<Route>,
    cluster: &Cluster<C>,
    origin: &Origin<'_, C>,
    statement: &Statement,
    reason: Reason,
) {
    answered(
        last_route,
        cluster,
        origin.node,
        Role::Primary,
        reason,
        statement.use_(),
    );
}

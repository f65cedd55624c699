//! Loading rows: as running, but the cursor stays borrowed from the node that answers.

use diesel::connection::LoadConnection;
use diesel::expression::QueryMetadata;
use diesel::query_builder::{Query, QueryFragment, QueryId};
use diesel::result::QueryResult;

use super::lend::{Leases, Slot, open_primary, open_replica};
use super::outfit::Outfit;
use super::replay::{Peeked, Shared};
use super::run::{
    Next, admission, after_replica_error, check_fallback, fall_back, note_loss, spent_by,
};
use super::settle::{mark_for, note_failure, note_success, occupy};
use super::unit::Unit;
use super::{Route, RoutedConnection, answered};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Role};
use crate::decision::Reason;
use crate::node::{Lease, Use};
use crate::statement::Statement;

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
        let decision = self.begin_statement(&statement)?;
        match decision.target {
            Role::Primary => {
                self.leases.give_back_replicas();
                self.rest()
                    .load::<B, T>(source, &statement, decision.reason)
            }
            Role::Replica => self.load_on_replica::<B, T>(source, &statement, decision.reason),
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
        let source = Shared::new(source);
        let mut instead = Reason::NoReplica;
        let wait = self.leases.wait();
        let (replicas, rest) = self.split();
        // Each try has a slot of its own: what a failed try has borrowed stays borrowed for as
        // long as the cursor that is returned, and is tidied by the next statement.
        for slot in replicas {
            let only = rest.unit.only();
            let opened = open_replica(&mut slot.lease, rest.cluster, rest.outfit, only, wait)?;
            let lease = match opened {
                Ok(lease) => lease,
                Err(none) => {
                    instead = fall_back(rest.cluster, none)?;
                    break;
                }
            };
            let place = lease.node().place();
            let loaded = LoadConnection::<B>::load(lease.connection(), source.clone());
            let error = match loaded.and_then(Peeked::new) {
                Ok(cursor) => {
                    rest.unit.pin(place);
                    *rest.last_route = Some(answered(rest.cluster, place, reason, Use::Read));
                    return Ok(cursor);
                }
                Err(error) => error,
            };
            slot.spent = spent_by::<C>(rest.unit, &error);
            match after_replica_error(rest.cluster, rest.unit, place, statement, &error) {
                Next::Return => return Err(error),
                Next::OtherReplica => reason = Reason::Distributed,
                Next::Primary(why) => {
                    instead = why;
                    break;
                }
            }
        }
        check_fallback(rest.cluster, &instead)?;
        rest.load::<B, _>(source, &statement.because_of(&instead), instead)
    }

    fn rest(&mut self) -> Rest<'_, C> {
        self.split().1
    }

    /// Splits the handle into its replicas and the rest, so that a cursor may borrow one of them.
    fn split(&mut self) -> (&mut [Slot<C>], Rest<'_, C>) {
        let Leases {
            primary,
            primary_lost,
            replicas,
        } = &mut self.leases;
        let rest = Rest {
            primary,
            primary_lost,
            unit: &mut self.unit,
            cluster: &self.cluster,
            outfit: &self.outfit,
            last_route: &mut self.last_route,
        };
        (replicas, rest)
    }
}

/// A handle without its replicas.
struct Rest<'conn, C: ReplicatedConnection> {
    primary: &'conn mut Option<Lease<C>>,
    primary_lost: &'conn mut bool,
    unit: &'conn mut Unit,
    cluster: &'conn Cluster<C>,
    outfit: &'conn Outfit<C>,
    last_route: &'conn mut Option<Route>,
}

impl<'conn, C: ReplicatedConnection> Rest<'conn, C> {
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
        let Self { cluster, unit, .. } = self;
        let admission = || admission(cluster, &reason);
        let lease = open_primary(self.primary, cluster, self.outfit, admission)?;
        // the cursor borrows the connection from here on: what is noted on it is noted now
        occupy(lease, statement);
        let mark = mark_for(cluster, unit, statement);
        let loaded = LoadConnection::<B>::load(lease.connection(), source).and_then(Peeked::new);
        unit.used_primary();
        *self.last_route = Some(answered(cluster, 0, reason, statement.use_()));
        match loaded {
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
                *self.primary_lost = note_loss(cluster, unit, &error);
                // nobody can be asked for evidence while the cursor's slot is borrowed
                note_failure::<C>(unit, statement, mark, &error, || false);
                Err(error)
            }
        }
    }
}

//! Diesel's traits that only forward.

use diesel::connection::{
    CacheSize, Connection, ConnectionSealed, Instrumentation, MultiConnectionHelper,
    SimpleConnection, TransactionManager, TransactionManagerStatus,
};
use diesel::migration::MigrationConnection;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::query_dsl::UpdateAndFetchResults;
use diesel::r2d2::R2D2Connection;
use diesel::result::{ConnectionError, ConnectionResult, QueryResult};
use diesel::sql_types::TypeMetadata;

use super::replay::Told;
use super::{RoutedConnection, RoutedTransactionManager};
use crate::backend::ReplicatedConnection;
use crate::cluster::shared;
use crate::statement::Statement;

type Lookup<C> = <<C as Connection>::Backend as TypeMetadata>::MetadataLookup;

impl<C: ReplicatedConnection> ConnectionSealed for RoutedConnection<C> {}

impl<C: ReplicatedConnection> SimpleConnection for RoutedConnection<C> {
    fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
        let statement = self.statement_of_text(query);
        self.run(&statement, |conn| conn.batch_execute(query))
    }
}

impl<C: ReplicatedConnection> Connection for RoutedConnection<C> {
    type Backend = C::Backend;
    type TransactionManager = RoutedTransactionManager<C>;

    /// Opens the primary of a cluster; further URLs after white space are its replicas.
    ///
    /// The primary is dialled once to see that it answers. Equal lists share one cluster in the
    /// process. Everything else has its default; use a
    /// [`RoutedConnectionManager`](crate::RoutedConnectionManager) to set more.
    fn establish(database_url: &str) -> ConnectionResult<Self> {
        let cluster = shared::<C>(database_url)
            .map_err(|error| ConnectionError::InvalidConnectionUrl(error.to_string()))?;
        let mut conn = cluster.connection();
        conn.run(&Statement::read(), |_| Ok(()))
            .map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
        // a pool may keep more idle handles than the primary has connections to lend
        conn.give_back();
        Ok(conn)
    }

    fn begin_test_transaction(&mut self) -> QueryResult<()> {
        self.begin_test()
    }

    fn execute_returning_count<T>(&mut self, source: &T) -> QueryResult<usize>
    where
        T: QueryFragment<Self::Backend> + QueryId,
    {
        let statement = self.statement(source)?;
        let source = Told::new(source, statement.text());
        self.run(&statement, |conn| conn.execute_returning_count(&source))
    }

    fn transaction_state(&mut self) -> &mut TransactionManagerStatus {
        self.status_mut()
    }

    fn instrumentation(&mut self) -> &mut dyn Instrumentation {
        &mut self.outfit.instrumentation
    }

    fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
        let Self { outfit, leases, .. } = self;
        outfit.set_instrumentation(instrumentation);
        leases
            .all()
            .for_each(|lease| outfit.put_on_instrumentation(lease));
    }

    fn set_prepared_statement_cache_size(&mut self, size: CacheSize) {
        let Self { outfit, leases, .. } = self;
        outfit.set_cache_size(size);
        leases
            .all()
            .for_each(|lease| outfit.put_on_cache_size(lease));
    }
}

impl<C: ReplicatedConnection> R2D2Connection for RoutedConnection<C> {
    /// Does no I/O: node connections are validated when they are borrowed.
    fn ping(&mut self) -> QueryResult<()> {
        Ok(())
    }

    /// Ends the use of the handle: a pool asks when it takes it back.
    fn is_broken(&mut self) -> bool {
        self.give_back();
        RoutedTransactionManager::<C>::is_broken_transaction_manager(self)
    }
}

impl<C> MigrationConnection for RoutedConnection<C>
where
    C: ReplicatedConnection + MigrationConnection,
{
    fn setup(&mut self) -> QueryResult<usize> {
        self.write(|conn| conn.setup())
    }
}

impl<Changes, Output, C> UpdateAndFetchResults<Changes, Output> for RoutedConnection<C>
where
    C: ReplicatedConnection + UpdateAndFetchResults<Changes, Output>,
{
    fn update_and_fetch(&mut self, changeset: Changes) -> QueryResult<Output> {
        let mut changeset = Some(changeset);
        self.write(|conn| match changeset.take() {
            Some(changeset) => conn.update_and_fetch(changeset),
            None => Err(diesel::result::Error::NotFound),
        })
    }
}

impl<C> MultiConnectionHelper for RoutedConnection<C>
where
    C: ReplicatedConnection + MultiConnectionHelper,
{
    fn to_any<'a>(lookup: &mut Lookup<C>) -> &mut (dyn std::any::Any + 'a) {
        C::to_any(lookup)
    }

    fn from_any(lookup: &mut dyn std::any::Any) -> Option<&mut Lookup<C>> {
        C::from_any(lookup)
    }
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Runs a call that Diesel makes of several statements, one of which writes.
    fn write<R>(&mut self, f: impl FnMut(&mut C) -> QueryResult<R>) -> QueryResult<R> {
        self.run(&Statement::write(), f)
    }
}

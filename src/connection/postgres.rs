//! What PostgreSQL alone offers: COPY, transactions with options, looked-up types.

use diesel::connection::{AnsiTransactionManager, WithMetadataLookup};
use diesel::pg::CopyFromQuery;
use diesel::pg::{GetPgMetadataCache, PgConnection, PgMetadataCache, PgMetadataLookup};
use diesel::prelude::ExecuteCopyFromDsl;
use diesel::result::Error;

use super::RoutedConnection;
use crate::node::Tenancy;
use crate::statement::Statement;

impl RoutedConnection<PgConnection> {
    /// Begins to describe a transaction with an isolation level or in read-only mode.
    ///
    /// As [`PgConnection::build_transaction`]; with [`read_only`](TransactionBuilder::read_only)
    /// it may run on a replica.
    ///
    /// ```no_run
    /// use diesel::prelude::*;
    /// use diesel_routed::RoutedConnection;
    ///
    /// # fn report(_: &mut RoutedConnection<PgConnection>) -> QueryResult<()> { Ok(()) }
    /// let mut conn = RoutedConnection::<PgConnection>::establish("postgres://db1/app postgres://db2/app")?;
    /// conn.build_transaction().read_only().repeatable_read().run(report)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_transaction(&mut self) -> TransactionBuilder<'_> {
        TransactionBuilder {
            conn: self,
            isolation: None,
            mode: None,
            deferrable: None,
        }
    }
}

/// A transaction in the making; see [`RoutedConnection::build_transaction`].
#[derive(Debug)]
#[must_use = "a transaction builder does nothing unless `run` is called"]
pub struct TransactionBuilder<'a> {
    conn: &'a mut RoutedConnection<PgConnection>,
    isolation: Option<&'static str>,
    mode: Option<&'static str>,
    deferrable: Option<&'static str>,
}

const READ_ONLY: &str = " READ ONLY";
const SERIALIZABLE: &str = " ISOLATION LEVEL SERIALIZABLE";

impl TransactionBuilder<'_> {
    /// Makes the transaction `READ ONLY`; it may run on a replica, unless it is serializable.
    pub fn read_only(mut self) -> Self {
        self.mode = Some(READ_ONLY);
        self
    }

    /// Makes the transaction `READ WRITE`.
    pub fn read_write(mut self) -> Self {
        self.mode = Some(" READ WRITE");
        self
    }

    /// Makes the transaction `DEFERRABLE`.
    pub fn deferrable(mut self) -> Self {
        self.deferrable = Some(" DEFERRABLE");
        self
    }

    /// Makes the transaction `NOT DEFERRABLE`.
    pub fn not_deferrable(mut self) -> Self {
        self.deferrable = Some(" NOT DEFERRABLE");
        self
    }

    /// Sets the isolation level to `READ COMMITTED`.
    pub fn read_committed(mut self) -> Self {
        self.isolation = Some(" ISOLATION LEVEL READ COMMITTED");
        self
    }

    /// Sets the isolation level to `REPEATABLE READ`.
    pub fn repeatable_read(mut self) -> Self {
        self.isolation = Some(" ISOLATION LEVEL REPEATABLE READ");
        self
    }

    /// Sets the isolation level to `SERIALIZABLE`, which standbys do not offer.
    pub fn serializable(mut self) -> Self {
        self.isolation = Some(SERIALIZABLE);
        self
    }

    /// Runs `f` in the transaction.
    ///
    /// # Errors
    ///
    /// As [`Connection::transaction`](diesel::Connection::transaction), and
    /// [`Error::AlreadyInTransaction`] inside another transaction.
    pub fn run<T, E, F>(&mut self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<PgConnection>) -> Result<T, E>,
        E: From<Error>,
    {
        self.conn.check_not_in_transaction()?;
        let sql: String = ["BEGIN TRANSACTION"]
            .into_iter()
            .chain(self.isolation)
            .chain(self.mode)
            .chain(self.deferrable)
            .collect();
        let begin =
            |conn: &mut PgConnection| AnsiTransactionManager::begin_transaction_sql(conn, &sql);
        match self.mode == Some(READ_ONLY) && self.isolation != Some(SERIALIZABLE) {
            true => self.conn.begin_read_only(begin)?,
            false => self.conn.begin(begin)?,
        }
        let result = f(self.conn);
        self.conn.finish(result)
    }
}

impl<T, A> ExecuteCopyFromDsl<RoutedConnection<PgConnection>> for CopyFromQuery<T, A>
where
    Self: ExecuteCopyFromDsl<PgConnection>,
    <Self as ExecuteCopyFromDsl<PgConnection>>::Error: From<Error>,
{
    type Error = <Self as ExecuteCopyFromDsl<PgConnection>>::Error;

    fn execute(self, conn: &mut RoutedConnection<PgConnection>) -> Result<usize, Self::Error> {
        let mut copy = Some(self);
        let mut outcome = None;
        // the error of a copy is the caller's own type, so it goes around the router
        let run = conn.run(&Statement::write(), |conn| {
            outcome = copy.take().map(|copy| copy.execute(conn));
            Ok(())
        });
        match (run, outcome) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(result)) => {
                if result.is_err() {
                    conn.distrust_primary();
                }
                result
            }
            (Ok(()), None) => Err(Error::NotFound.into()),
        }
    }
}

impl RoutedConnection<PgConnection> {
    /// Closes the connection to the primary at the end of the unit: nobody can tell what state it is in.
    fn distrust_primary(&mut self) {
        if let Some(lease) = &mut self.leases.primary {
            lease.tenancy = Tenancy::Session;
        }
    }
}

impl GetPgMetadataCache for RoutedConnection<PgConnection> {
    fn get_metadata_cache(&mut self) -> &mut PgMetadataCache {
        &mut self.metadata
    }
}

impl WithMetadataLookup for RoutedConnection<PgConnection> {
    fn metadata_lookup(&mut self) -> &mut (dyn PgMetadataLookup + 'static) {
        self
    }
}

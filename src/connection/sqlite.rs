//! What SQLite alone offers.

use diesel::connection::{AnsiTransactionManager, WithMetadataLookup};
use diesel::result::Error;
use diesel::sqlite::SqliteConnection;

use super::RoutedConnection;

impl RoutedConnection<SqliteConnection> {
    /// Runs `f` in a transaction on the primary that takes the write lock at once
    /// (`BEGIN IMMEDIATE`).
    ///
    /// # Errors
    ///
    /// As [`SqliteConnection::immediate_transaction`].
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.immediate_transaction(|conn| {
    ///     let title = posts::table.find(1).select(posts::title).first::<String>(conn)?;
    ///     diesel::update(posts::table.find(1)).set(posts::title.eq(title + "!")).execute(conn)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn immediate_transaction<T, E, F>(&mut self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut Self) -> Result<T, E>,
        E: From<Error>,
    {
        self.transaction_sql("BEGIN IMMEDIATE", f)
    }

    /// Runs `f` in a transaction on the primary that keeps everybody else out
    /// (`BEGIN EXCLUSIVE`).
    ///
    /// # Errors
    ///
    /// As [`SqliteConnection::exclusive_transaction`].
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.exclusive_transaction(|conn| diesel::delete(posts::table).execute(conn))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exclusive_transaction<T, E, F>(&mut self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut Self) -> Result<T, E>,
        E: From<Error>,
    {
        self.transaction_sql("BEGIN EXCLUSIVE", f)
    }

    fn transaction_sql<T, E, F>(&mut self, sql: &str, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut Self) -> Result<T, E>,
        E: From<Error>,
    {
        self.check_not_in_transaction()?;
        self.begin(|conn| AnsiTransactionManager::begin_transaction_sql(conn, sql))?;
        let result = f(self);
        self.finish(result)
    }
}

impl WithMetadataLookup for RoutedConnection<SqliteConnection> {
    fn metadata_lookup(&mut self) -> &mut () {
        &mut self.metadata
    }
}

//! SQLite: the primary is a file, its replicas are copies or the same file.

use std::fs;
use std::path::Path;

use diesel::connection::{AnsiTransactionManager, SimpleConnection};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::result::{ConnectionError, ConnectionResult, Error, QueryResult};
use diesel::sql_types::Text;
use diesel::sqlite::SqliteConnection;

use super::ReplicatedConnection;
use super::class::{self, Texts};
use crate::cluster::Role;
use crate::report::{ErrorClass, Identity};
use crate::statement::Dialect;

/// What statements fail with.
const ERRORS: Texts = &[
    (
        ErrorClass::Death,
        &["unable to open database file", "disk I/O error"],
    ),
    (ErrorClass::Role, &["attempt to write a readonly database"]),
    (
        ErrorClass::Schema,
        &["no such table", "no such column", "no such function"],
    ),
];

impl ReplicatedConnection for SqliteConnection {
    const DIALECT: Dialect = Dialect::Sqlite;
    const ROLLBACK_IS_PROOF: bool = true;
    type MetadataCache = ();

    fn open(url: &str, role: Role) -> ConnectionResult<Self> {
        // SQLite would make the file, and an empty replica answers with missing tables
        let missing = !url.starts_with("file:") && !Path::new(url).exists();
        if role == Role::Replica && missing && url != ":memory:" {
            let text = "the file does not exist".to_owned();
            return Err(ConnectionError::BadConnection(text));
        }
        Self::establish(url)
    }

    fn prepare_session(&mut self, role: Role) -> QueryResult<()> {
        match role {
            Role::Primary => Ok(()),
            Role::Replica => self.batch_execute("PRAGMA query_only = on"),
        }
    }

    fn identify(&mut self) -> QueryResult<Identity> {
        // nothing is read of the file, which a writer may have locked
        let file = sql::<Text>("file FROM pragma_database_list WHERE name = 'main'");
        let file: String = diesel::select(file).get_result(self)?;
        let path = fs::canonicalize(&file).unwrap_or(file.into());
        Ok(Identity::new("", &path.to_string_lossy(), ""))
    }

    fn begin_read_only(&mut self) -> QueryResult<()> {
        // SQLite knows no read-only transaction; the session is made read-only around it
        self.batch_execute("PRAGMA query_only = on")?;
        AnsiTransactionManager::begin_transaction_sql(self, "BEGIN")
    }

    fn end_read_only(&mut self) -> QueryResult<()> {
        self.batch_execute("PRAGMA query_only = off")
    }

    fn class_of_dial(_: &ConnectionError) -> ErrorClass {
        // a file that cannot be opened is not about to come back
        ErrorClass::Query
    }

    fn class_of(error: &Error) -> ErrorClass {
        class::of(error, ERRORS)
    }
}

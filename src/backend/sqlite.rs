//! SQLite: the primary is a file, its replicas are copies or the same file.

use std::path::Path;

use diesel::connection::{AnsiTransactionManager, Connection, SimpleConnection};
use diesel::result::{ConnectionError, ConnectionResult, DatabaseErrorKind, Error, QueryResult};
use diesel::sqlite::SqliteConnection;

use super::{ReplicatedConnection, message_has};
use crate::cluster::Role;
use crate::statement::Dialect;

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

    fn begin_read_only(&mut self) -> QueryResult<()> {
        // SQLite knows no read-only transaction; the session is made read-only around it
        self.batch_execute("PRAGMA query_only = on")?;
        AnsiTransactionManager::begin_transaction_sql(self, "BEGIN")
    }

    fn end_read_only(&mut self) -> QueryResult<()> {
        self.batch_execute("PRAGMA query_only = off")
    }

    fn was_refused(error: &Error) -> bool {
        message_has(error, &["attempt to write a readonly database"])
    }

    fn was_lost(error: &Error) -> bool {
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ClosedConnection, _)
        ) || message_has(error, &["unable to open database file", "disk I/O error"])
    }
}

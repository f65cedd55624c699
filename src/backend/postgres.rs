//! PostgreSQL.

use diesel::connection::{AnsiTransactionManager, Connection, SimpleConnection};
use diesel::dsl::sql;
use diesel::pg::{PgConnection, PgMetadataCache};
use diesel::prelude::*;
use diesel::result::{ConnectionError, ConnectionResult, DatabaseErrorKind, Error, QueryResult};
use diesel::sql_types::Bool;

use super::{ReplicatedConnection, message_has};
use crate::cluster::{Role, with_option};
use crate::statement::Dialect;

/// A start-up option outlives `RESET ALL` and `DISCARD ALL`, which a `SET` does not.
const READ_ONLY: &str = "-c default_transaction_read_only=on";

impl ReplicatedConnection for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;
    const ROLLBACK_IS_PROOF: bool = true;
    type MetadataCache = PgMetadataCache;

    fn open(url: &str, role: Role) -> ConnectionResult<Self> {
        if role == Role::Primary {
            return Self::establish(url);
        }
        match Self::establish(&with_option(url, READ_ONLY)) {
            // PgBouncer takes no start-up options; `prepare_session` sees that it is missing
            Err(ConnectionError::BadConnection(text))
                if text.contains("unsupported startup parameter") =>
            {
                Self::establish(url)
            }
            result => result,
        }
    }

    fn prepare_session(&mut self, role: Role) -> QueryResult<()> {
        if role == Role::Primary {
            return Ok(());
        }
        let guarded = sql::<Bool>(
            "current_setting('default_transaction_read_only') = 'on' OR pg_is_in_recovery()",
        );
        match diesel::select(guarded).get_result::<bool>(self) {
            Ok(true) => Ok(()),
            // a standby refuses by itself and needs no SET, which a transaction pooler would
            // hand to other clients; a writable server behind a pooler gets it
            Ok(false) => self.batch_execute("SET default_transaction_read_only = on"),
            // a role whose default isolation is serializable can run nothing on a standby
            Err(error) if message_has(&error, &["serializable mode in a hot standby"]) => {
                self.batch_execute("SET default_transaction_isolation = 'repeatable read'")
            }
            Err(error) => Err(error),
        }
    }

    fn begin_read_only(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self, "BEGIN READ ONLY")
    }

    fn was_refused(error: &Error) -> bool {
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _)
        ) || message_has(
            error,
            &[
                "during recovery",
                "hot standby",
                "recovery is in progress",
                // a function that wants to write says so first
                "read-write mode must be set before any query",
            ],
        ) && !Self::was_lost(error)
    }

    fn was_lost(error: &Error) -> bool {
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ClosedConnection, _)
        ) || message_has(
            error,
            &[
                "server closed the connection",
                "no connection to the server",
                "terminating connection due to",
            ],
        )
    }

    fn failed_without_trace(error: &Error) -> bool {
        matches!(error, Error::DatabaseError(..)) && !Self::was_lost(error)
    }
}

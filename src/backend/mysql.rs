//! MySQL and MariaDB.

use diesel::connection::{AnsiTransactionManager, SimpleConnection};
use diesel::dsl::sql;
use diesel::mysql::MysqlConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error, QueryResult};
use diesel::sql_types::{Nullable, Text};

use super::{ReplicatedConnection, message_has};
use crate::cluster::Role;
use crate::statement::Dialect;

impl ReplicatedConnection for MysqlConnection {
    const DIALECT: Dialect = Dialect::Mysql;
    // tables of engines without transactions keep their rows
    const ROLLBACK_IS_PROOF: bool = false;
    type MetadataCache = ();

    fn prepare_session(&mut self, role: Role) -> QueryResult<()> {
        match role {
            Role::Primary => Ok(()),
            Role::Replica => self.batch_execute("SET SESSION TRANSACTION READ ONLY"),
        }
    }

    fn begin_read_only(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self, "START TRANSACTION READ ONLY")
    }

    fn was_refused(error: &Error) -> bool {
        // error 1792 has a kind of its own, but not in a batch; 1290 has none, and other causes too
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _)
        ) || message_has(
            error,
            &["READ ONLY transaction", "--read-only", "--super-read-only"],
        )
    }

    fn was_lost(error: &Error) -> bool {
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ClosedConnection, _)
        ) || message_has(
            error,
            &[
                "Lost connection to",
                "server has gone away",
                "Connection was killed",
                "Server shutdown in progress",
            ],
        )
    }

    fn write_evidence(&mut self) -> Option<String> {
        // MariaDB only: on MySQL the variable is unknown, and nothing is proven
        diesel::select(sql::<Nullable<Text>>("@@last_gtid"))
            .get_result::<Option<String>>(self)
            .ok()
            .flatten()
    }

    fn ended_transaction(error: &Error) -> bool {
        // error 1213: InnoDB rolls the whole transaction back, not the statement
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)
        )
    }
}

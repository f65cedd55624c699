//! MySQL and MariaDB.

mod probe;

use std::time::Duration;

use diesel::connection::{AnsiTransactionManager, SimpleConnection};
use diesel::dsl::sql;
use diesel::mysql::MysqlConnection;
use diesel::prelude::*;
use diesel::result::{ConnectionError, DatabaseErrorKind, Error, QueryResult};
use diesel::sql_types::{Nullable, Text};

use super::ReplicatedConnection;
use super::class::{self, Texts};
use crate::cluster::Role;
use crate::position::Position;
use crate::report::{ErrorClass, Identity, Report};
use crate::statement::Dialect;

/// What statements fail with. Diesel shows no error numbers, and in a batch no kinds either.
const ERRORS: Texts = &[
    (
        ErrorClass::Death,
        &[
            "Lost connection to",
            "MySQL server has gone away",
            "Server has gone away",
            "Connection was killed",
            "Server shutdown in progress",
            "The client was disconnected by the server",
        ],
    ),
    (
        ErrorClass::Role,
        &[
            "Cannot execute statement in a READ ONLY transaction",
            // the other causes of error 1290 name other options
            "The *server is running with the --read-only",
            "The *server is running with the --super-read-only",
        ],
    ),
    (
        ErrorClass::Schema,
        &[
            "Table '*' doesn't exist",
            "Unknown column '",
            "Unknown database '",
            "FUNCTION * does not exist",
            "PROCEDURE * does not exist",
        ],
    ),
];

/// What dials fail with.
const DIALS: Texts = &[
    (
        ErrorClass::Load,
        &[
            "Too many connections",
            "*has exceeded the 'max_",
            "*has more than 'max_user_connections' active connections",
        ],
    ),
    (
        ErrorClass::Authentication,
        &[
            "Access denied",
            "Host '*' is blocked because of many connection errors",
            "Host '*' is not allowed to connect",
            "Your password has expired",
        ],
    ),
    // no waiting helps against these
    (
        ErrorClass::Query,
        &["Unknown database", "Unknown MySQL server host"],
    ),
];

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

    fn prepare_probe(&mut self, timeout: Duration) -> QueryResult<()> {
        probe::prepare(self, timeout);
        Ok(())
    }

    fn identify(&mut self) -> QueryResult<Identity> {
        probe::identity(self)
    }

    fn probe(&mut self) -> QueryResult<Report> {
        probe::report(self)
    }

    fn committed_position(&mut self) -> QueryResult<Option<Position>> {
        probe::committed_position(self)
    }

    fn received_position(&mut self) -> QueryResult<Option<Position>> {
        probe::received(self)
    }

    fn server_load(&mut self) -> QueryResult<Option<u32>> {
        probe::load(self)
    }

    fn begin_read_only(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self, "START TRANSACTION READ ONLY")
    }

    fn class_of(error: &Error) -> ErrorClass {
        class::of(error, ERRORS)
    }

    fn class_of_dial(error: &ConnectionError) -> ErrorClass {
        class::of_dial(error, DIALS)
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

//! PostgreSQL.

mod probe;

use std::time::Duration;

use diesel::connection::{AnsiTransactionManager, Connection, SimpleConnection};
use diesel::dsl::sql;
use diesel::pg::{PgConnection, PgMetadataCache};
use diesel::prelude::*;
use diesel::result::{ConnectionError, ConnectionResult, Error, QueryResult};
use diesel::sql_types::Bool;

use super::ReplicatedConnection;
use super::class::{self, Texts};
use crate::cluster::{Role, with_option};
use crate::position::Position;
use crate::report::{ErrorClass, Identity, Report};
use crate::statement::Dialect;

/// A start-up option outlives `RESET ALL` and `DISCARD ALL`, which a `SET` does not.
const READ_ONLY: &str = "-c default_transaction_read_only=on";

/// What statements fail with, beyond the kinds that Diesel tells: it shows no SQLSTATE.
const ERRORS: Texts = &[
    (
        ErrorClass::Death,
        &[
            "server closed the connection",
            "no connection to the server",
            "terminating connection",
            "could not receive data from server",
            "could not send data to server",
            "SSL connection has been closed",
            "SSL SYSCALL error",
        ],
    ),
    (
        ErrorClass::Role,
        &[
            "cannot *during recovery",
            "cannot *in a hot standby",
            "cannot *recovery is in progress",
            "recovery is in progress",
            // a function that wants to write says so first
            "transaction read-write mode must be set before any query",
        ],
    ),
    (
        ErrorClass::Conflict,
        &["canceling statement due to conflict with recovery"],
    ),
    (
        ErrorClass::Schema,
        &[
            "relation \"*\" does not exist",
            "column *does not exist",
            "function *does not exist",
            "procedure *does not exist",
            "operator does not exist",
            "type \"*\" does not exist",
            "schema \"*\" does not exist",
            "collation \"*does not exist",
            "text search configuration \"*does not exist",
            "invalid input value for enum",
        ],
    ),
];

/// What dials fail with; libpq says first where it dialled.
const DIALS: Texts = &[
    (
        ErrorClass::Load,
        &[
            "*too many clients already",
            "*remaining connection slots are reserved",
            "*too many connections for",
            "*no more connections allowed",
        ],
    ),
    (
        ErrorClass::Authentication,
        &[
            "*authentication failed",
            "*no pg_hba.conf entry",
            "*pg_hba.conf rejects connection",
            "*no password supplied",
            "*role \"*\" does not exist",
            "*is not permitted to log in",
        ],
    ),
    // no waiting helps against these
    (
        ErrorClass::Query,
        &[
            "invalid ",
            "missing ",
            "unexpected ",
            "unterminated ",
            "end of string reached",
            "*database \"*\" does not exist",
            "*root certificate file",
        ],
    ),
];

impl ReplicatedConnection for PgConnection {
    const DIALECT: Dialect = Dialect::Postgres;
    const ROLLBACK_IS_PROOF: bool = true;
    type MetadataCache = PgMetadataCache;

    fn open(url: &str, role: Role) -> ConnectionResult<Self> {
        match role {
            Role::Primary => Self::establish(url),
            // without the option `prepare_session` sees that it is missing
            Role::Replica => establish_with_options(url, READ_ONLY),
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
            Err(error) if Self::class_of(&error) == ErrorClass::Role => {
                self.batch_execute("SET default_transaction_isolation = 'repeatable read'")
            }
            Err(error) => Err(error),
        }
    }

    fn open_probe(url: &str, _: Role, timeout: Duration) -> ConnectionResult<Self> {
        probe::open(url, timeout)
    }

    fn identify(&mut self) -> QueryResult<Identity> {
        probe::identity(self)
    }

    fn probe(&mut self) -> QueryResult<Report> {
        probe::report(self)
    }

    fn received_position(&mut self) -> QueryResult<Option<Position>> {
        probe::received(self)
    }

    fn committed_position(&mut self) -> QueryResult<Option<Position>> {
        probe::committed_position(self)
    }

    fn server_load(&mut self) -> QueryResult<Option<u32>> {
        probe::load(self)
    }

    fn begin_read_only(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::begin_transaction_sql(self, "BEGIN READ ONLY")
    }

    fn class_of(error: &Error) -> ErrorClass {
        class::of(error, ERRORS)
    }

    fn class_of_dial(error: &ConnectionError) -> ErrorClass {
        class::of_dial(error, DIALS)
    }

    fn failed_without_trace(error: &Error) -> bool {
        matches!(error, Error::DatabaseError(..)) && Self::class_of(error) != ErrorClass::Death
    }
}

/// Connects with command-line options for the server, or without where a pooler takes none.
fn establish_with_options(url: &str, options: &str) -> ConnectionResult<PgConnection> {
    match PgConnection::establish(&with_option(url, options)) {
        Err(ConnectionError::BadConnection(text))
            if text.contains("unsupported startup parameter") =>
        {
            PgConnection::establish(url)
        }
        result => result,
    }
}

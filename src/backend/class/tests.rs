use diesel::result::DatabaseErrorKind::{self as Kind, Unknown};
use diesel::result::{ConnectionError, Error};

use crate::ErrorClass::{self, Authentication, Conflict, Death, Load, Query, Role, Schema};
use crate::backend::ReplicatedConnection;

/// Checks what Diesel shows of an error against the class of it.
fn check<C: ReplicatedConnection>(rows: &[(Kind, &str, ErrorClass)]) {
    for &(kind, message, expected) in rows {
        let error = Error::DatabaseError(kind, Box::new(message.to_owned()));
        let class = C::class_of(&error);
        assert_eq!(class, expected, "{kind:?}: {message}");
    }
    for error in [Error::NotFound, Error::RollbackTransaction] {
        assert_eq!(C::class_of(&error), Query, "{error} is not the server's");
    }
}

fn check_dial<C: ReplicatedConnection>(rows: &[(&str, ErrorClass)]) {
    for &(message, expected) in rows {
        let error = ConnectionError::BadConnection(message.to_owned());
        assert_eq!(C::class_of_dial(&error), expected, "{message}");
    }
}

#[cfg(feature = "postgres")]
#[test]
#[rustfmt::skip]
fn postgresql_errors_have_their_class() {
    check::<diesel::PgConnection>(&[
        (Kind::ClosedConnection, "whatever", Death),
        (Kind::ClosedConnection, "canceling statement due to conflict with recovery", Death),
        (Kind::UnableToSendCommand, "no connection to the server\n", Death),
        (Kind::UnableToSendCommand, "server closed the connection unexpectedly", Death),
        (Kind::UnableToSendCommand, "number of parameters must be between 0 and 65535", Query),
        (Unknown, "terminating connection due to administrator command", Death),
        (Unknown, "terminating connection because of crash of another server process", Death),
        (Unknown, "terminating connection due to idle-in-transaction timeout", Death),
        (Kind::SerializationFailure, "terminating connection due to conflict with recovery", Death),
        (Kind::SerializationFailure, "canceling statement due to conflict with recovery", Conflict),
        (Kind::SerializationFailure, "could not serialize access due to concurrent update", Query),
        (Kind::ReadOnlyTransaction, "cannot execute INSERT in a read-only transaction", Role),
        (Kind::ReadOnlyTransaction, "cannot execute LISTEN during recovery", Role),
        (Unknown, "cannot use serializable mode in a hot standby", Role),
        (Unknown, "cannot set transaction read-write mode during recovery", Role),
        (Unknown, "cannot assign OIDs during recovery", Role),
        (Unknown, "cannot acquire lock mode ShareLock on database objects while recovery is in progress", Role),
        (Unknown, "recovery is in progress", Role),
        (Unknown, "recovery is not in progress", Query),
        (Unknown, "transaction read-write mode must be set before any query", Role),
        (Unknown, "currval of sequence \"s\" is not yet defined in this session", Query),
        (Unknown, "relation \"note\" does not exist", Schema),
        (Unknown, "column \"body\" does not exist", Schema),
        (Unknown, "column n.body does not exist", Schema),
        (Unknown, "column \"body\" of relation \"note\" does not exist", Schema),
        (Unknown, "function f(integer) does not exist", Schema),
        (Unknown, "type \"mood\" does not exist", Schema),
        (Unknown, "schema \"s\" does not exist", Schema),
        (Unknown, "invalid input value for enum mood: \"glad\"", Schema),
        (Unknown, "prepared statement \"__diesel_stmt_0\" does not exist", Query),
        (Unknown, "column \"terminating connection due to\" is of type text", Query),
        (Unknown, "invalid input syntax for type integer: \"terminating connection due to\"", Query),
        (Unknown, "canceling statement due to statement timeout", Query),
        (Unknown, "canceling statement due to lock timeout", Query),
        (Unknown, "canceling statement due to user request", Query),
        (Unknown, "deadlock detected", Query),
        (Unknown, "permission denied for table note", Query),
        (Kind::UniqueViolation, "duplicate key value violates unique constraint \"k\"", Query),
    ]);
    check_dial::<diesel::PgConnection>(&[
        ("connection to server at \"h\", port 1 failed: Connection refused", Death),
        ("timeout expired", Death),
        ("FATAL:  the database system is starting up", Death),
        ("FATAL:  database \"app\" does not exist", Query),
        ("connection to server at \"h\", port 1 failed: FATAL:  sorry, too many clients already", Load),
        ("FATAL:  remaining connection slots are reserved for non-replication superuser connections", Load),
        ("FATAL:  too many connections for role \"app\"", Load),
        ("FATAL:  no more connections allowed (max_client_conn)", Load),
        ("connection to server at \"h\", port 1 failed: FATAL:  password authentication failed for user \"app\"", Authentication),
        ("connection to server at \"h\", port 1 failed: fe_sendauth: no password supplied", Authentication),
        ("FATAL:  no pg_hba.conf entry for host \"h\", user \"app\", database \"app\", no encryption", Authentication),
        ("FATAL:  role \"app\" does not exist", Authentication),
        ("FATAL:  role \"app\" is not permitted to log in", Authentication),
    ]);
}

#[cfg(feature = "mysql")]
#[test]
#[rustfmt::skip]
fn mysql_and_mariadb_errors_have_their_class() {
    check::<diesel::MysqlConnection>(&[
        (Unknown, "Lost connection to server during query", Death),
        (Unknown, "Lost connection to MySQL server during query", Death),
        (Unknown, "Server has gone away", Death),
        (Unknown, "MySQL server has gone away", Death),
        (Unknown, "Connection was killed", Death),
        (Unknown, "Server shutdown in progress", Death),
        (Unknown, "The client was disconnected by the server because of inactivity. See wait_timeout", Death),
        (Kind::ReadOnlyTransaction, "Cannot execute statement in a READ ONLY transaction", Role),
        (Unknown, "Cannot execute statement in a READ ONLY transaction", Role),
        (Unknown, "The MariaDB server is running with the --read-only option so it cannot execute this statement", Role),
        (Unknown, "The MySQL server is running with the --super-read-only option so it cannot execute this statement", Role),
        (Unknown, "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement", Query),
        (Unknown, "Table 'app.note' doesn't exist", Schema),
        (Unknown, "Unknown column 'body' in 'field list'", Schema),
        (Unknown, "Unknown database 'other'", Schema),
        (Unknown, "FUNCTION app.f does not exist", Schema),
        (Unknown, "PROCEDURE app.p does not exist", Schema),
        (Unknown, "Query execution was interrupted", Query),
        (Unknown, "Query execution was interrupted (max_statement_time exceeded)", Query),
        (Unknown, "Lock wait timeout exceeded; try restarting transaction", Query),
        (Unknown, "Duplicate entry 'Lost connection to server during query' for key 'k'", Query),
        (Kind::UniqueViolation, "Duplicate entry '1' for key 'k'", Query),
        (Kind::SerializationFailure, "Deadlock found when trying to get lock; try restarting transaction", Query),
    ]);
    check_dial::<diesel::MysqlConnection>(&[
        ("Can't connect to server on 'h' (111)", Death),
        ("Lost connection to server at 'handshake: reading initial communication packet', system error: 104", Death),
        ("Unknown database 'app'", Query),
        ("Too many connections", Load),
        ("User app already has more than 'max_user_connections' active connections", Load),
        ("User 'app' has exceeded the 'max_user_connections' resource (current value: 1)", Load),
        ("Access denied for user 'app'@'h' (using password: YES)", Authentication),
        ("Access denied, this account is locked", Authentication),
        ("Host 'h' is blocked because of many connection errors; unblock with 'mariadb-admin flush-hosts'", Authentication),
        ("Host 'h' is not allowed to connect to this MariaDB server", Authentication),
    ]);
}

#[cfg(feature = "sqlite")]
#[test]
#[rustfmt::skip]
fn sqlite_errors_have_their_class() {
    check::<diesel::SqliteConnection>(&[
        (Unknown, "unable to open database file", Death),
        (Unknown, "disk I/O error", Death),
        (Unknown, "attempt to write a readonly database", Role),
        (Unknown, "no such table: note", Schema),
        (Unknown, "no such column: body", Schema),
        (Unknown, "no such function: f", Schema),
        (Unknown, "database is locked", Query),
        (Unknown, "near \"unable to open database file\": syntax error", Query),
        (Kind::UniqueViolation, "UNIQUE constraint failed: note.id", Query),
    ]);
    check_dial::<diesel::SqliteConnection>(&[("the file does not exist", Query)]);
}

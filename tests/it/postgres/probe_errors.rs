//! The classes of errors as a real PostgreSQL raises them.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::ErrorClass::{self, Authentication, Conflict, Death, Load, Query, Role, Schema};
use diesel_routed::ReplicatedConnection;

use super::settings::set;
use crate::kit::postgres::{Plain, cluster};
use crate::support::{Cluster, wait_until};

fn plain(cluster: &Cluster, node: usize) -> Plain {
    Plain::establish(&cluster.url(node)).expect("the node answers")
}

#[track_caller]
fn check(error: &Error, expected: ErrorClass, statement: &str) {
    let class = Plain::class_of(error);
    assert_eq!(class, expected, "{statement}: {error:?}");
}

#[track_caller]
fn check_dial(url: &str, expected: ErrorClass, what: &str) {
    let Err(error) = Plain::establish(url) else {
        panic!("{what}: a connection was opened");
    };
    assert_eq!(Plain::class_of_dial(&error), expected, "{what}: {error}");
}

#[test]
#[rustfmt::skip]
fn errors_of_statements_have_their_class() {
    const PRIMARY: usize = 0;
    const STANDBY: usize = 1;
    let cluster = cluster(1);
    cluster.sql(0, "CREATE TYPE mood AS ENUM ('sad'); INSERT INTO note (body) VALUES ('x')");
    cluster.wait_replicated();
    for (node, statement, expected) in [
        (STANDBY, "INSERT INTO note (body) VALUES ('x')", Role),
        (STANDBY, "SELECT * FROM note FOR UPDATE", Role),
        (STANDBY, "CREATE TEMPORARY TABLE t (id INT)", Role),
        (STANDBY, "LISTEN x", Role),
        (STANDBY, "LOCK TABLE note IN SHARE MODE", Role),
        (STANDBY, "SELECT lo_create(0)", Role),
        (STANDBY, "SELECT pg_current_wal_lsn()", Role),
        (STANDBY, "BEGIN READ WRITE", Role),
        (STANDBY, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1", Role),
        (STANDBY, "SELECT * FROM nowhere", Schema),
        (PRIMARY, "SELECT * FROM nowhere", Schema),
        (PRIMARY, "SELECT * FROM nowhere.note", Schema),
        (PRIMARY, "SELECT nothing FROM note", Schema),
        (PRIMARY, "SELECT note.nothing FROM note", Schema),
        (PRIMARY, "UPDATE note SET nothing = 1", Schema),
        (PRIMARY, "SELECT missing(1)", Schema),
        (PRIMARY, "CALL missing(1)", Schema),
        (PRIMARY, "SELECT nowhere.missing(1)", Schema),
        (PRIMARY, "SELECT 1::missing", Schema),
        (PRIMARY, "SELECT 'x'::nowhere.missing", Schema),
        (PRIMARY, "SELECT 'glad'::mood", Schema),
        (PRIMARY, "SELECT 'x' COLLATE missing", Schema),
        (PRIMARY, "SELECT 1/0", Query),
        (PRIMARY, "SELEKT", Query),
        (PRIMARY, "SELECT 'terminating connection due to'::int", Query),
        (PRIMARY, "SELECT currval('note_id_seq')", Query),
        (PRIMARY, "SELECT * FROM pg_authid", Query),
        (PRIMARY, "EXECUTE missing", Query),
        (PRIMARY, "INSERT INTO note VALUES (1, 'y')", Query),
        (PRIMARY, "SET statement_timeout = 10; SELECT pg_sleep(9)", Query),
        (PRIMARY, "BEGIN READ ONLY; INSERT INTO note VALUES (2, 'y')", Role),
        (PRIMARY, "SELECT pg_terminate_backend(pg_backend_pid())", Death),
    ] {
        let mut conn = plain(&cluster, node);
        let error = conn.batch_execute(statement).expect_err(statement);
        check(&error, expected, statement);
        // one statement that is prepared shows the same
        if !statement.contains(';') {
            let error = diesel::sql_query(statement).execute(&mut plain(&cluster, node));
            check(&error.expect_err(statement), expected, statement);
        }
        let again = conn.batch_execute("SELECT 1; ROLLBACK");
        if expected == Death {
            check(&again.expect_err("the connection is gone"), Death, "after it");
        } else {
            let lives = again.or_else(|_| conn.batch_execute("ROLLBACK; SELECT 1"));
            assert!(lives.is_ok(), "{statement}: the connection lives");
        }
    }
}

#[test]
fn a_conflict_with_recovery_cancels_a_statement_or_ends_the_connection() {
    let cluster = cluster(1);
    set(&cluster, 1, "max_standby_streaming_delay = 0");
    for (reading, expected, lives) in [
        ("SELECT count(*), pg_sleep(60) FROM t", Conflict, true),
        ("BEGIN; SELECT count(*) FROM t", Death, false),
    ] {
        cluster.sql(0, "CREATE TABLE t (); GRANT SELECT ON t TO app");
        cluster.wait_replicated();
        let mut conn = plain(&cluster, 1);
        let reader = std::thread::spawn(move || {
            let mut result = conn.batch_execute(reading);
            wait_until("the conflict", Duration::from_secs(20), || {
                // what is idle in its transaction learns of it with its next statement
                if result.is_ok() {
                    result = conn.batch_execute("SELECT 1");
                }
                result.is_err()
            });
            (result, conn)
        });
        let locked = "SELECT count(*) > 0 FROM pg_locks WHERE relation = 't'::regclass";
        wait_until("the reader reads", Duration::from_secs(20), || {
            cluster.sql(1, locked) == "t"
        });
        cluster.sql(0, "DROP TABLE t");
        let (result, mut conn) = reader.join().expect("no panic");
        check(&result.expect_err(reading), expected, reading);
        let again = conn.batch_execute("SELECT 1");
        assert_eq!(again.is_ok(), lives, "{reading}: {again:?}");
    }
}

#[test]
fn errors_of_dials_have_their_class() {
    let cluster = cluster(0);
    let url = cluster.url(0);
    check_dial(
        &url.replace("app:app@", "nobody@"),
        Authentication,
        "an unknown role",
    );
    check_dial(
        &format!("{}/nowhere", url.trim_end_matches("/app")),
        Query,
        "no such database",
    );
    cluster.sql(0, "ALTER ROLE app NOLOGIN");
    check_dial(&url, Authentication, "a role that may not log in");
    cluster.sql(0, "ALTER ROLE app LOGIN CONNECTION LIMIT 0");
    check_dial(&url, Load, "the role's limit");
    cluster.sql(0, "ALTER ROLE app CONNECTION LIMIT -1");
    cluster.sql(0, "ALTER SYSTEM SET max_connections = 5");
    cluster.sql(0, "ALTER SYSTEM SET superuser_reserved_connections = 3");
    cluster.sql(0, "ALTER SYSTEM SET max_wal_senders = 0");
    cluster.restart(0);
    let held: Vec<_> = std::iter::from_fn(|| Plain::establish(&url).ok()).collect();
    assert!(!held.is_empty(), "the first ones were let in");
    check_dial(&url, Load, "all slots are taken");
    cluster.kill(0);
    check_dial(&url, Death, "a killed server");
}

#[test]
fn a_server_that_dies_under_a_statement_is_death() {
    let cluster = cluster(0);
    let mut conn = plain(&cluster, 0);
    cluster.kill(0);
    for _ in 0..2 {
        let error = conn.batch_execute("SELECT 1").expect_err("it was killed");
        check(&error, Death, "SIGKILL");
    }
}

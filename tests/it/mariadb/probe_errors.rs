//! The classes of errors as a real MariaDB or MySQL raises them.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::ErrorClass::{self, Authentication, Death, Load, Query, Role, Schema};
use diesel_routed::ReplicatedConnection;

use super::backend::{Plain, cluster};
use crate::support::Cluster;

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
    const REPLICA: usize = 1;
    let cluster = cluster(1);
    cluster.sql(0, "INSERT INTO note VALUES (1, 'x')");
    cluster.wait_replicated();
    for (node, statement, expected) in [
        (REPLICA, "INSERT INTO note (body) VALUES ('x')", Role),
        (REPLICA, "CREATE TABLE t (id INT)", Role),
        (PRIMARY, "SET SESSION TRANSACTION READ ONLY; INSERT INTO note (body) VALUES ('x')", Role),
        (PRIMARY, "SELECT * FROM nowhere", Schema),
        (PRIMARY, "SELECT * FROM app.nowhere", Schema),
        (PRIMARY, "SELECT nothing FROM note", Schema),
        (PRIMARY, "SELECT app.missing(1)", Schema),
        (PRIMARY, "CALL missing(1)", Schema),
        (PRIMARY, "SELEKT", Query),
        (PRIMARY, "SELECT 'Lost connection to server' 'x", Query),
        (PRIMARY, "INSERT INTO note VALUES (1, 'y')", Query),
        // not alone: a client never hears that MySQL 9.7 has refused to prepare it
        (PRIMARY, "DO 0; SET GLOBAL read_only = 1", Query),
        // each of the two servers runs the comment that is meant for it
        (PRIMARY, "SET SESSION /*M! max_statement_time = 0.01 *//*!50700 max_execution_time = 10 */;
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            SELECT count(*) FROM n a, n b, n c", Query),
        // prepared on MySQL, it is first only "interrupted", as by a KILL QUERY
        (PRIMARY, "DO 0; KILL CONNECTION_ID()", Death),
    ] {
        let mut conn = plain(&cluster, node);
        let error = conn.batch_execute(statement).expect_err(statement);
        check(&error, expected, statement);
        if !statement.contains(';') {
            let error = diesel::sql_query(statement).execute(&mut plain(&cluster, node));
            check(&error.expect_err(statement), expected, statement);
        }
        let again = diesel::sql_query("SELECT 1").execute(&mut conn);
        match expected {
            Death => check(&again.expect_err("the connection is gone"), Death, "after it"),
            _ => assert!(again.is_ok(), "{statement}: the connection lives"),
        }
    }
}

#[test]
fn errors_of_dials_have_their_class() {
    let cluster = cluster(0);
    let url = cluster.url(0);
    check_dial(
        &url.replace("app:app@", "app:wrong@"),
        Authentication,
        "a wrong password",
    );
    check_dial(
        &url.replace("app:app@", "nobody:x@"),
        Authentication,
        "an unknown user",
    );
    check_dial(
        &format!("{}/nowhere", url.trim_end_matches("/app")),
        Authentication,
        "a database that the user may not see",
    );
    cluster.sql(0, "GRANT ALL ON nowhere.* TO app@'%'");
    check_dial(
        &format!("{}/nowhere", url.trim_end_matches("/app")),
        Query,
        "no such database",
    );
    cluster.sql(0, "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 1");
    let held = plain(&cluster, 0);
    check_dial(&url, Load, "the user's limit");
    drop(held);
    cluster.sql(0, "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS 0");
    cluster.sql(0, "SET GLOBAL max_connections = 10");
    let held: Vec<_> = std::iter::from_fn(|| Plain::establish(&url).ok()).collect();
    assert!(!held.is_empty(), "the first ones were let in");
    check_dial(&url, Load, "all connections are taken");
    drop(held);
    cluster.sql(0, "ALTER USER app@'%' ACCOUNT LOCK");
    check_dial(&url, Authentication, "a locked account");
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

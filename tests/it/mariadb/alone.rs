//! What has to run on the primary in MariaDB's SQL alone.

use diesel::prelude::*;

use super::backend::*;
use super::own::{ADD_NOTE, NONE, SAY, TO_TRUNCATE, locking};
use super::reads::Named;
use super::writes::{N, W, Write, connected, holds, on_primary, prepared, row, run};

/// What the statements need.
pub(super) const PREPARE: &[&str] = &[ADD_NOTE, SAY, TO_TRUNCATE, "CREATE SEQUENCE counter"];

/// Inserts a note as only MariaDB does.
pub(super) fn insert_in_its_way(body: &str) -> String {
    format!("INSERT INTO note (body) VALUES ('{body}') RETURNING id")
}

#[rustfmt::skip]
pub(super) fn alone() -> Vec<Write> {
    vec![
        row("block without a name", "write", W, N, |c| batch(c, "BEGIN NOT ATOMIC INSERT INTO note (body) VALUES ('m6'); END"), |_, db| holds(db, "m6")).by_routine(),
        row("analyze of an insert", "write", W, N, |c| batch(c, "ANALYZE FORMAT=JSON INSERT INTO note (body) VALUES ('m7')"), |_, db| holds(db, "m7")),
        locking!("FOR UPDATE WAIT 1"),
        locking!("LOCK IN SHARE MODE NOWAIT"),
        row("nextval", "function nextval", W, N, |c| on_primary(c, "SELECT name FROM node_name WHERE NEXTVAL(counter) > 0"), connected),
        row("next value for", "function next value for", W, N, |c| on_primary(c, "SELECT name FROM node_name WHERE NEXT VALUE FOR counter > 0"), connected),
        row("lastval", "function lastval", W, N, |c| {
            run(c, "SELECT NEXTVAL(counter)");
            on_primary(c, "SELECT name FROM node_name WHERE LASTVAL(counter) > 0");
        }, connected),
        row("setval", "function setval", W, N, |c| on_primary(c, "SELECT name FROM node_name WHERE SETVAL(counter, 5000) = 5000"), connected),
    ]
}

/// Diesel's MySQL backend can't load such rows; the router adds nothing to its error, and forgets no write.
#[test]
fn insert_returning_fails_as_without_the_router_and_counts_as_a_write() {
    let db = prepared();
    let insert =
        || diesel::sql_query("INSERT INTO note (body) VALUES ('r1') RETURNING body AS name");
    let mut plain = Plain::establish(&db.cluster.url(0)).unwrap();
    let expected = insert().get_result::<Named>(&mut plain).err().unwrap();
    let mut conn = db.pool.get().unwrap();
    let error = conn
        .distributed(|conn| insert().get_result::<Named>(conn))
        .err()
        .unwrap();
    assert_eq!(error.to_string(), expected.to_string());
    assert_eq!(
        conn.distributed(who),
        "n0",
        "nobody knows whether it has written"
    );
}

//! What only SQLite does with transactions.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::Context;

use crate::kit::sqlite::*;

#[test]
fn a_read_only_transaction_that_cannot_begin_leaves_the_session_writable() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let plain = conn.primary_connection().unwrap();
    plain.batch_execute("BEGIN").unwrap();
    let begun = conn.read_only_transaction(|_| QueryResult::Ok(()));
    begun.expect_err("SQLite has no transaction within a transaction");
    write(&mut conn, "in the transaction that was open");
}

#[test]
fn a_failed_commit_keeps_its_ticket() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let schema = "PRAGMA foreign_keys = on;
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";
        conn.without_sticking(|conn| conn.batch_execute(schema))
            .unwrap();
        let result = conn.transaction(|conn| sql(conn, "INSERT INTO child VALUES (1)"));
        result.expect_err("the constraint is checked at COMMIT");
        assert!(context.is_sticky(), "nobody knows what a failed COMMIT did");
    });
}

//! Failures give back their own mark, and only where nothing can have been left behind.

use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel_routed::statement::Dialect;
use diesel_routed::{Context, Reason, ReplicatedConnection};

use super::backend::*;

/// Inserts a row that is there already, as somebody else's.
fn collide(conn: &mut Conn) {
    let collision = sql(conn, "INSERT INTO note (id, body) VALUES (7, 'late')");
    let kind = DatabaseErrorKind::UniqueViolation;
    assert!(
        matches!(&collision, Err(Error::DatabaseError(found, _)) if *found == kind),
        "{collision:?}"
    );
}

fn roll_back(conn: &mut Conn, f: impl FnOnce(&mut Conn)) {
    let rolled_back = conn.transaction(|conn| {
        f(conn);
        QueryResult::<()>::Err(Error::RollbackTransaction)
    });
    assert_eq!(rolled_back, Err(Error::RollbackTransaction));
}

#[test]
fn a_rolled_back_transaction_gives_its_ticket_back() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        roll_back(&mut conn, |conn| {
            write(conn, "never");
            write(conn, "seen");
            assert!(context.is_sticky(), "as long as it runs");
        });
        let proven = if proves_failures() { "n1" } else { "n0" };
        assert_eq!(
            block_reads_from(&mut conn),
            proven,
            "nothing was written, where the server says so"
        );
    });
}

#[test]
fn a_rolled_back_savepoint_does_not_give_back_the_ticket_of_its_transaction() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let committed = conn.transaction(|conn| {
            write(conn, "kept");
            roll_back(conn, |conn| write(conn, "dropped"));
            QueryResult::Ok(())
        });
        committed.unwrap();
        assert_eq!(conn.distributed(bodies), ["kept"]);
        assert_eq!(reason(&conn), Reason::NotCaughtUp);
    });
}

#[test]
fn one_ticket_given_back_leaves_the_other() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "first");
        roll_back(&mut conn, |conn| write(conn, "never"));
        assert_eq!(conn.distributed(bodies), ["first"], "earlier write seen");
    });
    db.cluster.sql(0, "DELETE FROM note");
    let context = Context::new();
    context.run(|| {
        let (mut conn, mut other) = (db.pool.get().unwrap(), db.pool.get().unwrap());
        unprepared(&mut conn, "BEGIN").unwrap();
        write(&mut conn, "second");
        if Plain::DIALECT != Dialect::Sqlite {
            // a SQLite file has one writer at a time
            roll_back(&mut other, |other| write(other, "never"));
        }
        assert_eq!(block_reads_from(&mut other), "n0", "a write still runs");
        sql(&mut conn, "COMMIT").unwrap();
        assert_eq!(other.distributed(bodies), ["second"]);
    });
}

#[test]
fn a_row_that_is_there_already_is_found_in_the_next_block() {
    let db = paused_db(1);
    db.cluster
        .sql(0, "INSERT INTO note (id, body) VALUES (7, 'early')");
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        collide(&mut conn);
        assert_eq!(conn.distributed(bodies), ["early"], "find or create");
        assert_eq!(reason(&conn), Reason::NotCaughtUp);
    });
}

#[test]
fn it_is_found_also_when_the_collision_was_in_a_transaction() {
    let db = paused_db(1);
    db.cluster
        .sql(0, "INSERT INTO note (id, body) VALUES (7, 'early')");
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        roll_back(&mut conn, collide);
        assert_eq!(conn.distributed(bodies), ["early"]);
    });
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let outer = conn.transaction(|conn| {
            roll_back(conn, collide);
            QueryResult::<()>::Err(Error::RollbackTransaction)
        });
        assert!(outer.is_err());
        assert_eq!(conn.distributed(bodies), ["early"], "in a savepoint, too");
    });
}

#[test]
fn what_ran_on_the_real_connection_is_not_given_back_with_a_transaction() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let plain = conn.primary_connection().unwrap();
        diesel::sql_query("INSERT INTO note (body) VALUES ('mine')")
            .execute(plain)
            .unwrap();
        roll_back(&mut conn, |conn| write(conn, "never"));
        drop(conn);
        let mut conn = db.pool.get().unwrap();
        assert_eq!(conn.distributed(bodies), ["mine"]);
    });
}

#[test]
fn a_transaction_that_a_statement_commits_keeps_its_ticket() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let result = conn.transaction(|conn| {
            write(conn, "mine");
            sql(conn, "COMMIT")?;
            QueryResult::<()>::Err(Error::RollbackTransaction)
        });
        assert!(result.is_err());
        drop(conn);
        let mut conn = db.pool.get().unwrap();
        assert_eq!(conn.distributed(bodies), ["mine"]);
    });
}

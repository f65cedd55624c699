//! A deadlock ends the whole transaction at the server: nothing of the rest may run outside it.

use std::sync::mpsc::channel;
use std::time::Duration;

use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel_routed::{Context, RoutedError};

use super::backend::*;
use crate::support::wait_until;

fn is_lost(error: &Error) -> bool {
    let lost = RoutedError::TransactionLost { node: "n0".into() };
    RoutedError::downcast(error) == Some(lost)
}

fn is_deadlock(error: &Error) -> bool {
    let kind = DatabaseErrorKind::SerializationFailure;
    matches!(error, Error::DatabaseError(found, _) if *found == kind)
}

/// Two rows to lock; the opponent weighs more, so that this side is the victim.
fn with_rows() -> Db {
    let db = paused_db(1);
    db.cluster.sql(
        0,
        "INSERT INTO note VALUES (1, 'a'), (2, 'b');
         INSERT INTO note (body) WITH RECURSIVE n (i) AS (
             SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200
         ) SELECT i FROM n",
    );
    db
}

/// Runs into a deadlock on the connection, which has a transaction open, and returns its error.
fn run_into_deadlock(db: &Db, conn: &mut Conn) -> Error {
    sql(conn, "UPDATE note SET body = 'mine' WHERE id = 1").unwrap();
    let (locked, is_locked) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut opponent = Plain::establish(&db.cluster.url(0)).unwrap();
            opponent
                .transaction(|opponent| {
                    let heavy = "UPDATE note SET body = 'theirs' WHERE id BETWEEN 2 AND 150";
                    diesel::sql_query(heavy).execute(opponent)?;
                    locked.send(()).unwrap();
                    diesel::sql_query("UPDATE note SET body = 'theirs' WHERE id = 1")
                        .execute(opponent)
                })
                .unwrap();
        });
        is_locked.recv().unwrap();
        wait_until("the opponent waits", Duration::from_secs(10), || {
            let waiting = "SELECT count(*) FROM information_schema.INNODB_TRX
                           WHERE trx_state = 'LOCK WAIT'";
            db.cluster.sql(0, waiting) == "1"
        });
        sql(conn, "UPDATE note SET body = 'mine' WHERE id = 2").unwrap_err()
    })
}

#[test]
fn what_follows_a_deadlock_in_the_closure_is_refused() {
    let db = with_rows();
    let context = Context::new();
    let mut conn = db.pool.get().unwrap();
    let result = context.run(|| {
        conn.transaction(|conn| {
            write(conn, "before");
            let deadlock = run_into_deadlock(&db, conn);
            assert!(is_deadlock(&deadlock), "{deadlock:?}");
            for text in ["INSERT INTO note (body) VALUES ('after')", "SELECT 1"] {
                let refused = sql(conn, text).unwrap_err();
                assert!(is_lost(&refused), "{text}: {refused:?}");
            }
            let read = note::table.count().get_result::<i64>(conn).unwrap_err();
            assert!(is_lost(&read), "{read:?}");
            let nested = conn.transaction(|conn| sql(conn, "SELECT 1")).unwrap_err();
            assert!(is_lost(&nested), "{nested:?}");
            // the closure swallows it all
            QueryResult::Ok(())
        })
    });
    let error = result.expect_err("a commit of nothing is no success");
    assert!(is_lost(&error), "{error:?}");
    let left = "SELECT count(*) FROM note WHERE body IN ('before', 'after', 'mine')";
    assert_eq!(db.cluster.sql(0, left), "0", "nothing ran outside");
    works_again(&db, &mut conn);
}

fn works_again(db: &Db, conn: &mut Conn) {
    let again = conn.transaction(|conn| {
        write(conn, "again");
        QueryResult::Ok(())
    });
    again.expect("after the transaction the handle works again");
    write(conn, "again");
    let count = "SELECT count(*) FROM note WHERE body = 'again'";
    assert_eq!(db.cluster.sql(0, count), "2");
}

#[test]
fn a_deadlock_handed_out_of_the_closure_is_the_error_of_the_transaction() {
    let db = with_rows();
    let mut conn = db.pool.get().unwrap();
    let error = conn
        .transaction(|conn| QueryResult::<()>::Err(run_into_deadlock(&db, conn)))
        .unwrap_err();
    assert!(is_deadlock(&error), "{error:?}");
    works_again(&db, &mut conn);
}

#[test]
fn a_deadlock_in_a_savepoint_ends_the_outer_transaction_too() {
    let db = with_rows();
    let mut conn = db.pool.get().unwrap();
    let result = conn.transaction(|conn| {
        write(conn, "before");
        let inner = conn.transaction(|conn| QueryResult::<()>::Err(run_into_deadlock(&db, conn)));
        inner.expect_err("the deadlock, or that its savepoint is gone");
        let refused = sql(conn, "INSERT INTO note (body) VALUES ('after')").unwrap_err();
        assert!(is_lost(&refused), "{refused:?}");
        QueryResult::Ok(())
    });
    result.expect_err("a commit of nothing is no success");
    let left = "SELECT count(*) FROM note WHERE body IN ('before', 'after')";
    assert_eq!(db.cluster.sql(0, left), "0", "nothing ran outside");
    works_again(&db, &mut conn);
}

#[test]
fn a_deadlock_in_a_raw_transaction_ends_with_its_commit_or_rollback() {
    for end in ["COMMIT", "ROLLBACK"] {
        let db = with_rows();
        let mut conn = db.pool.get().unwrap();
        unprepared(&mut conn, "BEGIN").unwrap();
        let deadlock = run_into_deadlock(&db, &mut conn);
        assert!(is_deadlock(&deadlock), "{deadlock:?}");
        let begun = conn.transaction(|_| QueryResult::Ok(())).unwrap_err();
        assert!(is_lost(&begun), "{begun:?}");
        let refused = sql(&mut conn, "INSERT INTO note (body) VALUES ('after')").unwrap_err();
        assert!(is_lost(&refused), "{refused:?}");
        let ended = sql(&mut conn, end).unwrap_err();
        assert!(
            is_lost(&ended),
            "{end} tells that there was nothing left: {ended:?}"
        );
        works_again(&db, &mut conn);
    }
}

#[test]
fn a_lock_wait_timeout_ends_only_its_statement() {
    let db = with_rows();
    let mut other = Plain::establish(&db.cluster.url(0)).unwrap();
    let mut conn = db.pool.get().unwrap();
    other
        .transaction(|other| {
            diesel::sql_query("UPDATE note SET body = 'theirs' WHERE id = 2").execute(other)?;
            conn.transaction(|conn| {
                write(conn, "before");
                sql(conn, "SET SESSION innodb_lock_wait_timeout = 1")?;
                sql(conn, "UPDATE note SET body = 'mine' WHERE id = 2").unwrap_err();
                write(conn, "after");
                QueryResult::Ok(())
            })
        })
        .unwrap();
    let kept = "SELECT count(*) FROM note WHERE body IN ('before', 'after')";
    assert_eq!(db.cluster.sql(0, kept), "2", "as with plain Diesel");
}

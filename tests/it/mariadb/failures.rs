//! What MariaDB and MySQL leave behind when a statement or a transaction fails, and what it does not.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{Context, Reason};

use super::backend::*;

const MYISAM: &str = "CREATE TABLE old (id INT PRIMARY KEY, body VARCHAR(20)) ENGINE = MyISAM";

const PROCEDURE: &str = "CREATE PROCEDURE commits_and_fails() MODIFIES SQL DATA BEGIN
    INSERT INTO old VALUES (1, 'x');
    COMMIT;
    SIGNAL SQLSTATE '45000';
END";

diesel::table! {
    old (id) {
        id -> Integer,
        body -> Text,
    }
}

type Failing = fn(&mut Conn) -> QueryResult<()>;

fn failing_transaction(conn: &mut Conn, statements: &[&str]) -> QueryResult<()> {
    conn.transaction(|conn| {
        statements
            .iter()
            .try_for_each(|text| sql(conn, text).map(drop))?;
        Err(Error::RollbackTransaction)
    })
}

#[test]
fn what_a_failure_leaves_behind_is_seen() {
    let cases: [(&str, Failing); 5] = [
        ("a row of a table without transactions survives", |conn| {
            failing_transaction(conn, &["INSERT INTO old VALUES (1, 'x')"])
        }),
        ("the first rows of a failing statement stay", |conn| {
            sql(conn, "INSERT INTO old VALUES (1, 'x'), (2, 'y'), (1, 'z')").map(drop)
        }),
        ("DDL commits the transaction around it", |conn| {
            let statements = [
                "INSERT INTO old VALUES (1, 'x')",
                "CREATE TABLE other (id INT)",
            ];
            failing_transaction(conn, &statements)
        }),
        ("the first statements of a batch stay", |conn| {
            conn.batch_execute("INSERT INTO old VALUES (1, 'x'); INSERT INTO nowhere VALUES (1)")
        }),
        ("a routine commits before it fails", |conn| {
            sql(conn, "CALL commits_and_fails()").map(drop)
        }),
    ];
    for (case, failing) in cases {
        for engine in ["MyISAM", "InnoDB"] {
            leaves_a_row(&format!("{case} ({engine})"), engine, failing);
        }
    }
}

fn leaves_a_row(case: &str, engine: &str, failing: Failing) {
    let db = db_with(1, patient);
    db.cluster.sql(0, &MYISAM.replace("MyISAM", engine));
    unprepared(&mut db.pool.get().unwrap(), PROCEDURE).unwrap();
    db.cluster.wait_replicated();
    pause(&db);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        failing(&mut conn).expect_err(case);
        let left = db.cluster.sql(0, "SELECT count(*) FROM old");
        drop(conn);
        let mut conn = db.pool.get().unwrap();
        let seen = conn.distributed(|conn| old::table.count().get_result::<i64>(conn));
        assert_eq!(seen.unwrap().to_string(), left, "{case}: own write seen");
        if left != "0" {
            assert_eq!(reason(&conn), Reason::NotCaughtUp, "{case}");
        }
    });
}

#[test]
fn a_failure_gives_its_ticket_back_where_no_gtid_moved_and_the_server_says_so() {
    let node = if proves_failures() { "n1" } else { "n0" };
    let failing: [(&str, Failing); 4] = [
        ("not null", |conn| {
            sql(conn, "INSERT INTO note (body) VALUES (NULL)").map(drop)
        }),
        ("check", |conn| {
            sql(
                conn,
                "INSERT INTO note (body) VALUES ('too long for the check')",
            )
            .map(drop)
        }),
        ("unknown table", |conn| {
            sql(conn, "INSERT INTO nowhere VALUES (1)").map(drop)
        }),
        ("rollback", |conn| {
            failing_transaction(conn, &["INSERT INTO note (body) VALUES ('x')"])
        }),
    ];
    let db = db_with(1, patient);
    db.cluster
        .sql(0, "ALTER TABLE note ADD CHECK (length(body) < 12)");
    db.cluster.wait_replicated();
    pause(&db);
    for (case, failing) in failing {
        for _ in 0..2 {
            Context::new().run(|| {
                let mut conn = db.pool.get().unwrap();
                failing(&mut conn).expect_err(case);
                assert_eq!(block_reads_from(&mut conn), node, "{case}");
            });
        }
    }
}

#[test]
fn a_write_before_the_failure_is_never_given_back_with_it() {
    let db = paused_db(1);
    for bodies_seen in 1..=3 {
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            sql(&mut conn, "INSERT INTO note (body) VALUES (NULL)").unwrap_err();
            write(&mut conn, "mine");
            sql(&mut conn, "INSERT INTO note (body) VALUES (NULL)").unwrap_err();
            assert_eq!(conn.distributed(bodies).len(), bodies_seen);
        });
    }
}

#[test]
fn a_failed_commit_keeps_its_ticket() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let result = conn.transaction(|conn| {
            write(conn, "mine");
            db.cluster.sql(0, "SET GLOBAL read_only = 1");
            QueryResult::Ok(())
        });
        db.cluster.sql(0, "SET GLOBAL read_only = 0");
        let error = result.expect_err("the server is read-only at COMMIT");
        assert!(error.to_string().contains("--read-only"), "{error}");
        assert!(context.is_sticky(), "nobody knows what a failed COMMIT did");
        // from whichever node: one that has all that the primary has misses nothing
        assert_eq!(conn.distributed(bodies), conn.primary(bodies));
    });
}

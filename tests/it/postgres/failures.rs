//! What PostgreSQL leaves behind when a statement or a transaction fails, and what it does not.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{Context, Reason};

use crate::kit::postgres::*;
use crate::support::wait_until;

type Failing = fn(&mut Conn) -> QueryResult<()>;

const ROUTINES: &str = "
CREATE PROCEDURE commits_and_raises() LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note (body) VALUES ('mine');
    COMMIT;
    RAISE 'after the commit';
END $$;
";

/// A cluster with more in its schema, whose replica applies nothing from now on.
fn paused_with(schema: &str) -> Db {
    let db = db_with(1, patient);
    db.cluster.try_app_sql(0, schema).unwrap();
    db.cluster.wait_replicated();
    pause(&db);
    db
}

#[test]
fn what_a_failure_leaves_behind_is_seen() {
    let cases: [(&str, Failing); 4] = [
        ("a procedure that commits and raises", |conn| {
            sql(conn, "CALL commits_and_raises()").map(drop)
        }),
        ("the same in a batch", |conn| {
            conn.batch_execute("CALL commits_and_raises()")
        }),
        ("a batch with a transaction of its own", |conn| {
            conn.batch_execute("BEGIN; INSERT INTO note (body) VALUES ('mine'); COMMIT; SELECT 1/0")
        }),
        ("a block that commits and raises", |conn| {
            conn.batch_execute(
                "DO $$ BEGIN INSERT INTO note (body) VALUES ('mine'); COMMIT; RAISE 'x'; END $$",
            )
        }),
    ];
    for (case, failing) in cases {
        let db = paused_with(ROUTINES);
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            failing(&mut conn).expect_err(case);
            drop(conn);
            let mut conn = db.pool.get().unwrap();
            assert_eq!(conn.distributed(bodies), ["mine"], "{case}");
            assert_eq!(reason(&conn), Reason::NotCaughtUp, "{case}");
        });
    }
}

#[test]
fn a_single_statement_that_failed_gives_its_ticket_back() {
    let db = paused_with("ALTER TABLE note ADD CHECK (length(body) < 12)");
    for failing in [
        "INSERT INTO note (body) VALUES (NULL)",
        "INSERT INTO note (body) VALUES ('too long for the check')",
        "INSERT INTO note (body) SELECT (1/0)::text",
        "INSERT INTO nowhere VALUES (1)",
        "UPDATE note SET nothing = 1",
    ] {
        for by_batch in [false, true] {
            Context::new().run(|| {
                let mut conn = db.pool.get().unwrap();
                let result = match by_batch {
                    true => conn.batch_execute(failing),
                    false => sql(&mut conn, failing).map(drop),
                };
                result.expect_err(failing);
                assert_eq!(block_reads_from(&mut conn), "n1", "{failing}");
            });
        }
    }
}

#[test]
fn a_failed_insert_returning_gives_its_ticket_back() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let failed: QueryResult<i32> = diesel::insert_into(note::table)
            .values((note::id.eq(1), note::body.eq("x".repeat(300))))
            .returning(note::id)
            .get_result(&mut conn);
        failed.expect_err("the body is too long");
        assert_eq!(block_reads_from(&mut conn), "n1");
    });
}

#[test]
fn violations_that_tell_of_other_rows_keep_their_ticket() {
    let db = paused_with(
        "CREATE TABLE parent (id INT PRIMARY KEY);
         CREATE TABLE child (id INT REFERENCES parent);
         CREATE TABLE slot (at INT4RANGE, EXCLUDE USING gist (at WITH &&));
         INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1);
         INSERT INTO slot VALUES ('[1,5)'); INSERT INTO note VALUES (7, 'x')",
    );
    for violating in [
        "INSERT INTO note VALUES (7, 'y')",
        "INSERT INTO child VALUES (2)",
        "DELETE FROM parent",
        "INSERT INTO slot VALUES ('[2,3)')",
    ] {
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            sql(&mut conn, violating).unwrap_err();
            assert_eq!(block_reads_from(&mut conn), "n0", "{violating}");
        });
    }
}

#[test]
fn a_failed_commit_keeps_its_ticket() {
    let db = paused_with(
        "CREATE TABLE parent (id INT PRIMARY KEY);
         CREATE TABLE child (id INT REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
    );
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let result = conn.transaction(|conn| sql(conn, "INSERT INTO child VALUES (1)"));
        result.expect_err("the constraint is checked at COMMIT");
        assert!(context.is_sticky(), "nobody knows what a failed COMMIT did");
        assert_eq!(block_reads_from(&mut conn), "n0");
    });
}

#[test]
fn a_write_whose_connection_was_cut_keeps_its_ticket() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        cut_in_the_middle(&db, &mut conn);
        assert!(context.is_sticky(), "nobody knows how far it came");
        assert_eq!(block_reads_from(&mut conn), "n0");
    });
}

/// Runs an INSERT whose connection is cut while it runs.
fn cut_in_the_middle(db: &Db, conn: &mut Conn) {
    let context = Context::current().unwrap();
    std::thread::scope(|scope| {
        let slow = "INSERT INTO note (body) SELECT 'x' || pg_sleep(60)";
        let writer = scope.spawn(move || context.run(|| sql(conn, slow)));
        wait_until(
            "the writer is cut",
            std::time::Duration::from_secs(10),
            || {
                let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                       WHERE query LIKE 'INSERT%' AND usename = 'app'";
                db.cluster.sql(0, cut) == "1"
            },
        );
        writer.join().unwrap().expect_err("it was cut");
    });
}

#[test]
fn what_a_function_wrote_outside_a_rolled_back_transaction_is_seen() {
    let db = db_with(1, patient);
    let apart = format!(
        "CREATE EXTENSION dblink;
         CREATE FUNCTION log_apart() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
             SELECT dblink_exec('host=127.0.0.1 port={} user=postgres dbname=app',
                                'INSERT INTO note (body) VALUES (''mine'')') $$",
        db.cluster.port(0)
    );
    db.cluster.sql(0, &apart);
    db.cluster.wait_replicated();
    pause(&db);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let rolled_back = conn.transaction(|conn| {
            sql(conn, "SELECT log_apart()")?;
            QueryResult::<()>::Err(diesel::result::Error::RollbackTransaction)
        });
        assert!(rolled_back.is_err());
        assert_eq!(conn.distributed(bodies), ["mine"]);
    });
}

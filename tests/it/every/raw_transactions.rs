//! Transactions that are opened by a statement, behind Diesel's back.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{Context, Reason};

use super::backend::*;

type Run = fn(&mut Conn, &str) -> QueryResult<()>;

/// The ways to run a statement that Diesel does not look into.
const WAYS: [(&str, Run); 2] = [
    ("batch_execute", |conn, text| conn.batch_execute(text)),
    ("sql_query", |conn, text| sql(conn, text).map(drop)),
];

fn ways() -> &'static [(&'static str, Run)] {
    &WAYS[..if prepares_everything() { 2 } else { 1 }]
}

#[test]
fn a_raw_begin_keeps_the_handle_on_the_primary_until_it_ends() {
    for (way, run) in ways() {
        for end in ["COMMIT", "ROLLBACK"] {
            let db = paused_db(1);
            let mut conn = db.pool.get().unwrap();
            conn.without_sticking(|conn| {
                run(conn, "BEGIN").unwrap();
                assert_eq!(who(conn), "n0", "{way}");
                conn.distributed(|conn| {
                    assert_eq!(who(conn), "n0", "{way}: in blocks, too");
                    assert_eq!(reason(conn), Reason::Transaction);
                    write(conn, "mine");
                    assert_eq!(bodies(conn), ["mine"], "{way}: on the same connection");
                });
                run(conn, end).unwrap();
                assert_eq!(block_reads_from(conn), "n1", "{way}: after {end}");
            });
            let kept = if end == "COMMIT" { "1" } else { "0" };
            assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), kept);
        }
    }
}

#[test]
fn a_block_around_a_raw_transaction_goes_on_on_the_primary() {
    let db = paused_db(1);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        conn.batch_execute("BEGIN").unwrap();
        write(conn, "mine");
        conn.batch_execute("COMMIT").unwrap();
        assert_eq!(bodies(conn), ["mine"]);
    });
    assert_eq!(conn.distributed(bodies), ["mine"], "and marks the context");
}

#[test]
fn a_raw_transaction_left_open_is_rolled_back_before_the_next_handle() {
    for (way, run) in ways() {
        let db = paused_db(1);
        let mut conn = db.pool.get().unwrap();
        run(&mut conn, "BEGIN").unwrap();
        write(&mut conn, "left open");
        let open = |conn: &Conn| conn.cluster().status().nodes[0].open;
        assert_eq!(open(&conn), 1);
        drop(conn);
        let mut next = db.pool.get().unwrap();
        assert_eq!(open(&next), 0, "{way}: the connection is closed");
        assert_eq!(bodies(&mut next), [""; 0], "{way}: rolled back");
        write(&mut next, "autocommitted");
        drop(next);
        assert_eq!(db.cluster.sql(0, "SELECT body FROM note"), "autocommitted");
    }
}

#[test]
fn a_failed_batch_that_began_a_transaction_leaves_nothing_to_the_next_handle() {
    for batch in [
        "BEGIN; INSERT INTO note (body) VALUES ('x'); SELECT nonsense FROM note;",
        "BEGIN; INSERT INTO note (body) VALUES ('x'); SELECT nonsense FROM note; COMMIT;",
    ] {
        let db = paused_db(1);
        let mut conn = db.pool.get().unwrap();
        conn.batch_execute(batch).unwrap_err();
        conn.distributed(|conn| {
            let route = sql(conn, "SELECT 1").map(|_| conn.last_route().unwrap().node);
            // PostgreSQL refuses everything until ROLLBACK
            assert!(route.is_err() || &*route.unwrap() == "n0", "{batch}");
        });
        conn.batch_execute("ROLLBACK").unwrap();
        assert_eq!(bodies(&mut conn), [""; 0], "{batch}");
        conn.batch_execute(batch).unwrap_err();
        drop(conn);
        let mut next = db.pool.get().unwrap();
        write(&mut next, "autocommitted");
        drop(next);
        assert_eq!(
            db.cluster.sql(0, "SELECT body FROM note"),
            "autocommitted",
            "{batch}"
        );
    }
}

#[test]
fn a_raw_transaction_marks_the_context_until_after_its_end() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        conn.batch_execute("BEGIN").unwrap();
        write(&mut conn, "mine");
        context.unstick();
        assert!(context.is_sticky(), "a write runs");
        conn.batch_execute("COMMIT").unwrap();
        drop(conn);
        let mut next = db.pool.get().unwrap();
        assert_eq!(next.distributed(bodies), ["mine"]);
    });
}

#[test]
fn diesels_transaction_inside_a_raw_one_stays_on_its_connection() {
    let db = paused_db(1);
    let mut conn = db.pool.get().unwrap();
    conn.batch_execute("BEGIN").unwrap();
    write(&mut conn, "outer");
    let inner = conn.read_only_transaction(|conn| QueryResult::Ok(bodies(conn)));
    // SQLite refuses a BEGIN inside a transaction, the servers warn or commit
    assert!(inner.is_err() || inner.unwrap() == ["outer"]);
    assert_eq!(block_reads_from(&mut conn), "n0");
}

#[test]
fn diesels_commit_is_none_of_a_raw_transaction() {
    use diesel::connection::TransactionManager;
    type Manager = diesel_routed::RoutedTransactionManager<Plain>;
    let db = paused_db(1);
    let mut conn = db.pool.get().unwrap();
    unprepared(&mut conn, "BEGIN").unwrap();
    write(&mut conn, "mine");
    let none = <Manager as TransactionManager<Conn>>::commit_transaction(&mut conn);
    assert!(matches!(none, Err(diesel::result::Error::NotInTransaction)));
    assert_eq!(block_reads_from(&mut conn), "n0", "it is still open");
    sql(&mut conn, "COMMIT").unwrap();
    assert_eq!(block_reads_from(&mut conn), "n0", "and sticks");
}

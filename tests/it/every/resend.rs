//! What is sent to a second node after a first one has failed, and what never is.

use diesel::connection::SimpleConnection;
use diesel_routed::statement::Dialect;
use diesel_routed::{Context, Reason, ReplicatedConnection};

use super::backend::*;

/// What a user does wrong himself.
fn own_errors() -> &'static [&'static str] {
    match Plain::DIALECT {
        Dialect::Postgres => &[
            "SELECT 1/0",
            "SELECT nonsense FROM note",
            "SELECT 'x'::integer",
            "SELECT * FROM nowhere",
            "SELECT pg_sleep(5)",
        ],
        Dialect::Mysql => &[
            "SELECT nonsense FROM note",
            "SELECT * FROM nowhere",
            "SELECT (SELECT 1 UNION SELECT 2)",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             SELECT COUNT(*) FROM n a, n b, n c",
        ],
        Dialect::Sqlite => &[
            "SELECT nonsense FROM note",
            "SELECT * FROM nowhere",
            "SELECT abs(-9223372036854775808)",
        ],
    }
}

/// A pool whose statements may take 200 ms where the server can say so.
fn impatient(db: &Db) -> Pool {
    let manager =
        diesel_routed::RoutedConnectionManager::<Plain>::new(crate::kit::config(&db.cluster));
    let manager = manager.unwrap().with_setup(|conn, _| match Plain::DIALECT {
        Dialect::Postgres => conn.batch_execute("SET statement_timeout = '200ms'"),
        // each of the two servers runs the comment that is meant for it
        Dialect::Mysql => conn.batch_execute(
            "SET SESSION /*M! max_statement_time = 0.2 *//*!50700 max_execution_time = 200 */",
        ),
        Dialect::Sqlite => Ok(()),
    });
    diesel_routed::RoutedPool::new(manager).unwrap()
}

#[test]
fn a_users_own_error_is_returned_and_costs_the_node_nothing() {
    let db = db(1);
    let pool = impatient(&db);
    let mut conn = pool.get().unwrap();
    conn.distributed(|conn| {
        for text in own_errors() {
            assert_eq!(who(conn), "n1");
            sql(conn, text).expect_err(text);
            assert_eq!(who(conn), "n1", "{text}: the replica stays in use");
            assert_eq!(reason(conn), Reason::Pinned);
        }
    });
    let status = conn.cluster().status();
    assert_eq!(status.nodes[1].errors, 0, "no fault of the node");
    let asked = status.nodes[0].reads;
    assert_eq!(asked, 2, "only for the two that miss something");
}

#[test]
fn a_violation_in_a_block_is_returned_and_runs_once() {
    let db = paused_db(1);
    db.cluster
        .sql(0, "INSERT INTO note (id, body) VALUES (7, 'early')");
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        sql(conn, "INSERT INTO note (id, body) VALUES (7, 'late')").unwrap_err();
        assert_eq!(bodies(conn), ["early"]);
    });
    assert_eq!(conn.cluster().status().nodes[1].errors, 0);
}

#[test]
fn batches_go_to_the_primary_as_a_whole_and_once() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            let batch = "SELECT 1; INSERT INTO note (body) VALUES ('x')";
            conn.batch_execute(batch).unwrap();
            assert_eq!(reason(conn), Reason::Write);
            assert_eq!(bodies(conn), ["x"], "once");
        });
    });
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "1");
}

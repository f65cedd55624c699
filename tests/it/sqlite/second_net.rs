//! Writes in blocks on SQLite, whose replicas are files that anybody may write to.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{Context, Role, RoutedConnectionManager, RoutedPool};

use crate::kit::config;
use crate::kit::sqlite::*;

/// The ways to write in a block, each with a body of its own.
const WAYS: &[fn(&mut Conn, &str) -> QueryResult<()>] = &[
    |conn, body| {
        let insert = diesel::insert_into(note::table).values(note::body.eq(body));
        insert.execute(conn).map(drop)
    },
    |conn, body| {
        sql(
            conn,
            &format!("INSERT INTO note (body) VALUES ('{body}') RETURNING id"),
        )
        .map(drop)
    },
    |conn, body| {
        let cte = "WITH x (body) AS (SELECT";
        sql(
            conn,
            &format!("{cte} '{body}') INSERT INTO note (body) SELECT body FROM x"),
        )
        .map(drop)
    },
    |conn, body| {
        conn.batch_execute(&format!(
            "SELECT 1; INSERT INTO note (body) VALUES ('{body}')"
        ))
    },
    |conn, body| {
        conn.batch_execute(&format!(
            "/* SELECT */ REPLACE INTO note (body) VALUES ('{body}')"
        ))
    },
];

#[test]
fn a_thousand_writes_in_blocks_leave_no_row_on_a_replica() {
    let db = paused_db(2);
    for i in 0..1000 {
        let way = i % WAYS.len();
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                WAYS[way](conn, &format!("body {i}")).unwrap();
                assert_eq!(who(conn), "n0", "way {way}: it was a write");
            });
        });
    }
    let counted = "SELECT count(*), count(DISTINCT body) FROM note";
    assert_eq!(
        db.cluster.sql(0, counted),
        "1000\t1000",
        "each exactly once"
    );
    for replica in [1, 2] {
        assert_eq!(db.cluster.sql(replica, counted), "0\t0", "n{replica}");
    }
}

#[test]
fn the_session_of_a_replica_writes_nothing_whoever_asks() {
    let db = paused_db(1);
    let manager = RoutedConnectionManager::<Plain>::new(config(&db.cluster)).unwrap();
    let manager = manager.with_setup(|conn, role| {
        let write = conn.batch_execute("INSERT INTO note (body) VALUES ('hook')");
        assert_eq!(write.is_err(), role == Role::Replica);
        Ok(())
    });
    let pool: Pool = RoutedPool::new(manager).unwrap();
    let mut conn = pool.get().unwrap();
    assert_eq!(block_reads_from(&mut conn), "n1");
    assert_eq!(bodies(&mut conn), ["hook"]);
    assert_eq!(db.cluster.sql(1, "SELECT count(*) FROM note"), "0");
}

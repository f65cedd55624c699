//! A table or column that a replica does not have yet is asked of the primary.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_routed::{Reason, Role};

use super::backend::*;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn count(conn: &mut Conn, query: &str) -> QueryResult<i64> {
    diesel::sql_query(query)
        .get_result::<Count>(conn)
        .map(|row| row.count)
}

fn is_from(conn: &Conn, node: &str, reason: Reason) {
    let route = conn.last_route().unwrap();
    assert_eq!((&*route.node, route.reason), (node, reason));
}

#[test]
fn what_was_just_made_on_the_primary_is_found_there() {
    let db = paused_db(1);
    db.cluster.sql(0, "CREATE TABLE news (id INTEGER)");
    db.cluster.sql(0, "INSERT INTO news VALUES (1)");
    db.cluster.sql(0, "ALTER TABLE note ADD mood INTEGER");
    let granted = db.cluster.try_sql(0, "GRANT ALL ON news TO app");
    if NAME == "postgres" {
        granted.expect("a table can be granted");
    }
    let mut conn = db.pool.get().unwrap();
    for (query, rows) in [
        ("SELECT count(*) AS count FROM news", 1),
        ("SELECT count(mood) AS count FROM note", 0),
    ] {
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            assert_eq!(count(conn, query), Ok(rows), "{query}");
            is_from(conn, "n0", Reason::SchemaLag);
            assert_eq!(who(conn), "n0", "the block sees nothing older");
        });
        conn.distributed(|conn| {
            sql(conn, query).expect("without a cursor, too");
            is_from(conn, "n0", Reason::SchemaLag);
        });
    }
    assert_eq!(block_reads_from(&mut conn), "n1", "it was no fault of its");
    let error = conn.read_only_transaction(|conn| {
        assert_eq!(who(conn), "n1");
        count(conn, "SELECT count(*) AS count FROM news")
    });
    assert!(error.is_err(), "a transaction stays where it is");
}

#[test]
fn what_is_missing_everywhere_is_the_users_error() {
    let db = db_with(1, patient);
    warm(&db.pool);
    let mut conn = db.pool.get().unwrap();
    let query = "SELECT count(*) AS count FROM nowhere";
    let routed = conn.distributed(|conn| count(conn, query)).unwrap_err();
    let plain = count(&mut conn, query).unwrap_err();
    assert_eq!(routed.to_string(), plain.to_string());
    let status = conn.cluster().status();
    let errors: u64 = status.nodes.iter().map(|node| node.errors).sum();
    assert_eq!(errors, 0, "no node is to blame");
    assert_eq!(block_reads_from(&mut conn), "n1");
    db.cluster.kill(0);
    let routed = conn.distributed(|conn| count(conn, query)).unwrap_err();
    assert!(
        routed.to_string().contains("nowhere"),
        "what the replica said, where there is no primary: {routed}"
    );
    let role = conn.distributed(|conn| {
        who(conn);
        conn.last_route().unwrap().role
    });
    assert_eq!(role, Role::Replica);
}

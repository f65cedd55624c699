//! What one request leaves in a session is never seen by the next.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::Text;

use super::backend::*;
use super::left_behind::{LEFT_BEHIND, UNBLOCKED};
use super::pools::*;
use crate::support::wait_until;

/// How a statement comes to run.
type Way = (&'static str, fn(&mut Conn, &str) -> QueryResult<()>);

const WAYS: &[Way] = &[
    ("as a batch", |conn, sql| conn.batch_execute(sql)),
    ("as a batch in a block", |conn, sql| {
        conn.distributed(|conn| conn.batch_execute(sql))
    }),
    ("statement by statement", one_by_one),
    ("statement by statement in a block", |conn, sql| {
        conn.distributed(|conn| one_by_one(conn, sql))
    }),
];

fn one_by_one(conn: &mut Conn, sql: &str) -> QueryResult<()> {
    // a body has its semicolons at the end of a line
    sql.split("; ")
        .try_for_each(|statement| unprepared(conn, statement))
}

fn probe(conn: &mut Conn, expression: &str) -> String {
    diesel::select(sql::<Text>(expression))
        .get_result(conn)
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
}

#[test]
fn nothing_that_a_request_leaves_in_its_session_is_seen_by_the_next() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 1, 1));
    for (what, leave, look, clean) in LEFT_BEHIND {
        for (way, run) in WAYS {
            let mut conn = pool.get().unwrap();
            assert_eq!(probe(&mut conn, look), *clean, "before: {what}");
            drop(conn);
            let mut conn = pool.get().unwrap();
            run(&mut conn, leave).unwrap_or_else(|error| panic!("{what} {way}: {error}"));
            drop(conn);
            let mut conn = pool.get().unwrap();
            // a server ends a closed session a moment later, and only then frees its locks; what
            // is left in a session that is lent again stays
            wait_until(&format!("{what} {way}"), Duration::from_secs(5), || {
                probe(&mut conn, look) == *clean
            });
            drop(conn);
            if !UNBLOCKED.is_empty() {
                db.cluster.sql(0, UNBLOCKED);
            }
        }
    }
    assert_eq!(in_flight(&pool), [0, 0]);
}

#[test]
fn a_transaction_left_open_is_rolled_back() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 1, 1));
    panics(|| {
        pool.get().unwrap().transaction(|conn| -> QueryResult<()> {
            write(conn, "lost");
            panic_now()
        })
    });
    let mut conn = pool.get().unwrap();
    type Manager = diesel_routed::RoutedTransactionManager<Plain>;
    <Manager as diesel::connection::TransactionManager<Conn>>::begin_transaction(&mut conn)
        .unwrap();
    write(&mut conn, "lost");
    drop(conn);
    let mut conn = pool.get().unwrap();
    assert_eq!(bodies(&mut conn), Vec::<String>::new());
    let result = conn.transaction(|conn| {
        write(conn, "kept");
        Ok::<_, Error>(())
    });
    assert_eq!(result, Ok(()), "the next one is an outermost one");
    assert_eq!(bodies(&mut conn), ["kept"]);
}

#[test]
fn settings_for_a_replica_are_gone_with_the_block_that_panicked() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 1, 1));
    panics(|| {
        let mut conn = pool.get().unwrap();
        conn.session(|conn| conn.batch_execute(SET)).unwrap();
        conn.distributed(|conn| -> () {
            assert!(is_set(conn) && who(conn) == "n1");
            panic_now()
        })
    });
    assert!(!pool.get().unwrap().distributed(is_set));
    assert!(!is_set(&mut pool.get().unwrap()));
}

#[test]
fn what_leaves_nothing_costs_no_connection() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 1, 1));
    let dialled = || {
        let nodes = pool.get().unwrap().cluster().status().nodes;
        nodes.iter().map(|node| node.open).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        let mut conn = pool.get().unwrap();
        write(&mut conn, "kept");
        conn.transaction(|conn| {
            write(conn, "kept");
            QueryResult::Ok(())
        })
        .unwrap();
        conn.unstick();
        conn.distributed(who);
        let result: QueryResult<()> = conn.transaction(|_| Err(Error::RollbackTransaction));
        assert_eq!(result, Err(Error::RollbackTransaction));
        drop(conn);
        assert_eq!(dialled(), [1, 1], "both connections were kept");
    }
}

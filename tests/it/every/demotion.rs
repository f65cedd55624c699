//! A primary that stops taking writes while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_routed::{ClusterConfig, Event};

use super::backend::*;
use super::health::*;
use super::pools::*;

const THREADS: usize = 8;

/// What the router finds out, it finds out from refusals.
fn never_looks(config: ClusterConfig) -> ClusterConfig {
    let hour = Duration::from_secs(3_600);
    config
        .check_interval(hour)
        .max_lag(2 * hour)
        .sticky_for(5 * hour)
        .checkout_timeout(SOON)
}

/// A cluster whose primary refuses writes and whose replica accepts them, which a pool with open
/// connections to the old primary does not know.
fn demoted() -> Db {
    let cluster = cluster(1);
    let pool = pool_of(4, never_looks(sized(&cluster, 4, 4)));
    assert_eq!(answers_outside(&pool, 4), ["n0"; 4], "connections are open");
    cluster.wait_replicated();
    cluster.refuse_writes(0);
    cluster.promote(1);
    Db { pool, cluster }
}

/// Who answers outside blocks, on connections that are open at the same time.
fn answers_outside(pool: &Pool, count: usize) -> Vec<String> {
    let mut conns: Vec<_> = (0..count).map(|_| pool.get().unwrap()).collect();
    conns.iter_mut().map(|conn| who(conn)).collect()
}

#[test]
fn a_refused_statement_is_done_once_on_the_new_one() {
    let db = demoted();
    write(&mut db.pool.get().unwrap(), "once");
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "0");
    assert_eq!(db.cluster.sql(1, "SELECT body FROM note"), "once");
    assert_eq!(Known::to(&db.pool).primaries(), ["n1"]);
}

#[test]
fn the_observer_is_told_who_took_over_and_what_is_retired() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let cluster = cluster(1);
    let list = Arc::clone(&told);
    let observer = move |event: &Event<'_>| {
        let line = match event {
            Event::PrimaryChanged { from, to, .. } => format!("{from:?} -> {to:?}"),
            Event::Retired {
                node,
                role,
                closed,
                in_use,
                ..
            } => format!("{node} is {role}: {} replaced", closed + in_use),
            _ => return,
        };
        list.lock().unwrap().push(line);
    };
    let config = never_looks(sized(&cluster, 4, 4)).observer(observer);
    let pool = pool_of(4, config);
    answers_outside(&pool, 4);
    cluster.wait_replicated();
    cluster.refuse_writes(0);
    cluster.promote(1);
    write(&mut pool.get().unwrap(), "found out");
    let told = told.lock().unwrap();
    for line in [
        "n0 is replica: 4 replaced",
        "n1 is primary: 0 replaced",
        "Some(\"n0\") -> Ok(\"n1\")",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
    }
}

#[test]
fn none_of_its_connections_survives_as_the_primarys() {
    let db = demoted();
    write(&mut db.pool.get().unwrap(), "found out");
    for _ in 0..3 {
        assert_eq!(answers_outside(&db.pool, 4), ["n1"; 4]);
    }
    // a connection that was borrowed meanwhile is retired at the end of its statement
    assert!(sockets_to_old(&db) <= 1, "the probe's own may be open");
}

fn sockets_to_old(db: &Db) -> usize {
    crate::support::sockets_to(db.cluster.port(0))
}

#[test]
fn a_handle_that_held_it_goes_on_at_the_new_one() {
    let cluster = cluster(1);
    let pool = pool_of(2, never_looks(sized(&cluster, 2, 2)));
    let mut holder = pool.get().unwrap();
    assert_eq!(who(&mut holder), "n0", "it holds a connection");
    cluster.refuse_writes(0);
    cluster.promote(1);
    write(&mut pool.get().unwrap(), "by another");
    assert_eq!(who(&mut holder), "n1");
    assert_eq!(bodies(&mut holder), ["by another"]);
}

#[test]
fn a_batch_and_a_transaction_are_not_sent_again() {
    type Way = (&'static str, fn(&mut Conn) -> QueryResult<()>);
    let ways: [Way; 3] = [
        ("a batch", |conn| {
            conn.batch_execute(
                "INSERT INTO note (body) VALUES ('a'); INSERT INTO note (body) VALUES ('b')",
            )
        }),
        ("a transaction", |conn| {
            conn.transaction(|conn| try_write(conn, "a").map(drop))
        }),
        ("a transaction of raw SQL", |conn| {
            sql(conn, "BEGIN")?;
            let written = try_write(conn, "a").map(drop);
            sql(
                conn,
                if written.is_ok() {
                    "COMMIT"
                } else {
                    "ROLLBACK"
                },
            )?;
            written
        }),
    ];
    for (case, way) in ways {
        let db = demoted();
        let done = way(&mut db.pool.get().unwrap()).is_ok();
        let count = |node| db.cluster.sql(node, "SELECT count(*) FROM note");
        assert_eq!(count(0), "0", "{case}");
        match done {
            false => assert_eq!(count(1), "0", "{case}: refused and not sent again"),
            // a cluster that has just been started is looked at often
            true => assert_ne!(count(1), "0", "{case}: the new one was known already"),
        }
        let before = count(1).parse::<u32>().expect("a number");
        write(&mut db.pool.get().unwrap(), "the next is done");
        assert_eq!(count(1), (before + 1).to_string(), "{case}");
    }
}

#[derive(QueryableByName)]
struct Session {
    #[diesel(sql_type = Text)]
    text: String,
}

/// What the server calls the connection that the pool lends next.
fn session(pool: &Pool) -> String {
    let session = diesel::sql_query(SESSION).get_result::<Session>(&mut pool.get().unwrap());
    session.expect("the primary answers").text
}

#[test]
fn a_read_only_transaction_of_the_users_own_retires_nothing() {
    let cluster = cluster(1);
    let pool = pool_of(1, watched(sized(&cluster, 1, 1)));
    let known = Known::to(&pool);
    let before = session(&pool);
    let mut conn = pool.get().unwrap();
    sql(&mut conn, BEGIN_READ_ONLY).unwrap();
    try_write(&mut conn, "refused").expect_err("the transaction is read-only");
    sql(&mut conn, "ROLLBACK").unwrap();
    drop(conn);
    assert_eq!(session(&pool), before, "the same connection");
    assert_eq!(known.state("n0"), "up");
    assert_eq!(known.primaries(), ["n0"]);
    write(&mut pool.get().unwrap(), "and it takes writes");
    assert_eq!(
        cluster.sql(0, "SELECT body FROM note"),
        "and it takes writes"
    );
}

#[test]
fn a_switchover_under_load_loses_and_repeats_no_write() {
    let cluster = cluster(1);
    let config = watched(sized(&cluster, THREADS as u32, 2)).checkout_timeout(SOON);
    let pool = pool_of(THREADS as u32, config);
    let next = AtomicUsize::new(0);
    let insert = || {
        let body = next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut conn = pool.get().expect("a handle is free");
        try_write(&mut conn, &body).map(|_| "written".to_owned())
    };
    let ((), tally) = under_load(THREADS, insert, |tally| {
        tally.wait_for_more(200);
        cluster.switch_over(0, 1);
        tally.wait_for_more(200);
    });
    let failures = tally.failures();
    println!("{} failed: {failures:?}", failures.len());
    // PostgreSQL has to be stopped for it
    assert!(failures.len() <= THREADS, "at most the ones in flight");
    let count = |what| cluster.sql(1, &format!("SELECT count({what}) FROM note"));
    assert_eq!(count("*"), count("DISTINCT body"), "none is written twice");
    let (rows, written) = (count("*").parse::<usize>().unwrap(), tally.by("written"));
    assert!(
        rows >= written && rows <= written + failures.len(),
        "{rows} rows for {written}"
    );
    assert_eq!(Known::to(&pool).primaries(), ["n1"]);
}

#[test]
fn a_primary_that_refuses_writes_and_has_no_successor_is_read_only_and_reads_go_on() {
    let cluster = cluster(1);
    let config = watched(sized(&cluster, 2, 2)).checkout_timeout(Duration::from_secs(1));
    let pool = pool_of(2, config);
    let known = Known::to(&pool);
    write(&mut pool.get().unwrap(), "before");
    cluster.wait_replicated();
    cluster.refuse_writes(0);
    known.wait("n0", "read-only");
    try_write(&mut pool.get().unwrap(), "refused").expect_err("nobody takes writes");
    assert_eq!(
        bodies(&mut pool.get().unwrap()),
        ["before"],
        "reads do not mind"
    );
    assert_eq!(pool.get().unwrap().distributed(who), "n1");
    cluster.accept_writes(0);
    known.wait("n0", "up");
    write(&mut pool.get().unwrap(), "after");
}

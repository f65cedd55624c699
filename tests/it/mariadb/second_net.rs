//! Statements that write although their text does not say so, on replicas whose servers would
//! let them: the read-only session refuses, and they run on the primary.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use diesel_routed::{ClusterConfig, Context, Reason};

use super::backend::*;
use crate::kit_log;
use crate::support::wait_until;

const ROUTINES: [&str; 5] = [
    "CREATE FUNCTION add_note(b VARCHAR(200)) RETURNS INT MODIFIES SQL DATA BEGIN
         INSERT INTO note (body) VALUES (b);
         RETURN 1;
     END",
    "CREATE FUNCTION add_by_another(b VARCHAR(200)) RETURNS INT MODIFIES SQL DATA
         RETURN add_note(b)",
    "CREATE PROCEDURE add_by_call(b VARCHAR(200)) MODIFIES SQL DATA
         INSERT INTO note (body) VALUES (b)",
    "CREATE TABLE called (id INT) ENGINE = MyISAM",
    "CREATE FUNCTION count_call(seconds INT) RETURNS INT MODIFIES SQL DATA BEGIN
         INSERT INTO called VALUES (1);
         RETURN SLEEP(seconds);
     END",
];

diesel::define_sql_function! { fn add_note(body: Text) -> Integer; }
diesel::define_sql_function! { fn count_call(seconds: Integer) -> Integer; }

diesel::table! {
    called (id) {
        id -> Integer,
    }
}

/// After the first look nobody probes, so that a server's count of statements is of the
/// application's.
fn unwatched(config: ClusterConfig) -> ClusterConfig {
    let config = config.check_interval(Duration::ZERO);
    config.check_ttl(Duration::from_secs(3600))
}

/// Replicas that would take a write, and apply nothing of the primary's.
fn writable(replicas: usize) -> Db {
    let db = db_with(replicas, |config| unwatched(patient(config)));
    let mut primary = Plain::establish(&db.cluster.url(0)).unwrap();
    for routine in ROUTINES {
        primary.batch_execute(routine).unwrap();
    }
    db.cluster.wait_replicated();
    pause(&db);
    for replica in 1..=replicas {
        db.cluster.set_writable(replica);
    }
    db
}

/// The ways to write in a block, each with a body of its own.
const WAYS: &[fn(&mut Conn, &str) -> QueryResult<()>] = &[
    |conn, body| diesel::select(add_note(body)).execute(conn).map(drop),
    |conn, body| {
        diesel::select(add_note(body))
            .get_result::<i32>(conn)
            .map(drop)
    },
    |conn, body| {
        let query = node_name::table.select(node_name::name);
        let query = query.filter(add_note(body).eq(1)).into_boxed();
        query.load::<String>(conn).map(drop)
    },
    |conn, body| sql(conn, &format!("SELECT add_note('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("SELECT add_by_another('{body}')")).map(drop),
    |conn, body| {
        sql(
            conn,
            &format!("WITH x AS (SELECT add_note('{body}') AS a) SELECT a FROM x"),
        )
        .map(drop)
    },
    |conn, body| sql(conn, &format!("SELECT /*! add_note('{body}') */")).map(drop),
    |conn, body| sql(conn, &format!("CALL add_by_call('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("DO add_note('{body}')")).map(drop),
    |conn, body| sql(conn, &super::insert_in_its_way(body)).map(drop),
    |conn, body| conn.batch_execute(&format!("SELECT 1; SELECT add_note('{body}')")),
    |conn, body| conn.batch_execute(&format!("SELECT add_note('{body}')")),
];

#[test]
fn a_thousand_writes_in_blocks_leave_no_row_on_a_replica() {
    let db = writable(2);
    for i in 0..1000 {
        let way = i % WAYS.len();
        // each is another request, so that its block begins on a replica
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                let result = WAYS[way](conn, &format!("body {i}"));
                result.unwrap_or_else(|error| panic!("way {way}: {error:?}"));
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

/// How many statements a server has received so far, by its own count.
fn received(db: &Db, node: usize) -> u32 {
    let count = db.cluster.sql(node, "SHOW GLOBAL STATUS LIKE 'Queries'");
    let (_, count) = count.split_once('\t').expect("name and value");
    count.parse().expect("a number")
}

/// How many statements a server receives while `f` runs.
fn received_by(db: &Db, node: usize, f: impl FnOnce()) -> u32 {
    let before = received(db, node);
    let own = received(db, node) - before;
    f();
    received(db, node) - before - 2 * own
}

#[test]
fn what_was_refused_once_goes_straight_to_the_primary() {
    kit_log::listen();
    let ways: [fn(&mut Conn) -> QueryResult<usize>; 2] = [
        |conn| diesel::select(add_note("typed")).execute(conn),
        |conn| sql(conn, "SELECT add_note('text')"),
    ];
    let db = writable(1);
    for way in ways {
        for times in 1..=5 {
            Context::new().run(|| {
                let mut conn = db.pool.get().unwrap();
                conn.distributed(|conn| {
                    assert_eq!(who(conn), "n1", "the block begins on the replica");
                    let asked = received_by(&db, 1, || {
                        way(conn).unwrap();
                    });
                    assert_eq!(reason(conn), Reason::ReadOnlyRefused);
                    assert_eq!(asked > 0, times == 1, "the {times}. time");
                });
            });
        }
    }
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "10");
    let typed = kit_log::lines_with("add_note");
    assert_eq!(typed.len(), 1, "told once, by its text: {typed:?}");
    let dynamic = kit_log::lines_with("a dynamic query");
    assert_eq!(dynamic.len(), 1, "without its values: {dynamic:?}");
}

#[test]
fn a_function_that_writes_marks_the_context_on_the_primary_too() {
    let db = writable(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        diesel::select(add_note("mine")).execute(&mut conn).unwrap();
        assert_eq!(reason(&conn), Reason::PrimaryMode, "outside a block");
        assert_eq!(conn.distributed(bodies), ["mine"], "own write seen");
        assert_eq!(reason(&conn), Reason::NotCaughtUp);
    });
}

/// Ends the application's connection that sleeps.
fn cut(db: &Db, node: usize) {
    let find = "SELECT id FROM information_schema.PROCESSLIST
                WHERE user = 'app' AND state = 'User sleep'";
    wait_until("a connection is cut", Duration::from_secs(10), || {
        let id = db.cluster.sql(node, find);
        !id.is_empty() && db.cluster.try_sql(node, &format!("KILL {id}")).is_ok()
    });
}

#[test]
fn it_is_not_run_twice_when_its_connection_is_cut() {
    let db = writable(1);
    type Way = fn(&mut Conn) -> QueryResult<()>;
    let ways: [Way; 3] = [
        |conn| diesel::select(count_call(60)).execute(conn).map(drop),
        |conn| {
            diesel::select(count_call(60))
                .get_result::<i32>(conn)
                .map(drop)
        },
        // refused by the replica first
        |conn| {
            conn.distributed(|conn| sql(conn, "SELECT count_call(60)"))
                .map(drop)
        },
    ];
    for (way, calls) in ways.into_iter().zip(1..) {
        let context = Context::new();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| context.run(|| way(&mut db.pool.get().unwrap())));
            cut(&db, 0);
            call.join().unwrap().expect_err("the error is the caller's");
        });
        context.run(|| {
            let mut conn = db.pool.get().unwrap();
            let seen = conn.distributed(|conn| called::table.count().get_result::<i64>(conn));
            assert_eq!(seen, Ok(calls), "it ran once, and its row is seen");
        });
        assert_eq!(db.cluster.sql(1, "SELECT count(*) FROM called"), "0");
    }
}

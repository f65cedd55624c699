//! Statements that write although their text does not say so, on replicas whose servers would
//! let them: the read-only session refuses, and they run on the primary.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use diesel_routed::{Context, Reason};

use crate::kit::config;
use crate::kit::postgres::*;
use crate::kit_log;
use crate::support::{Cluster, wait_until};

const SCHEMA: &str = "
CREATE TABLE note (id SERIAL PRIMARY KEY, body VARCHAR(200) NOT NULL);
CREATE FUNCTION add_note(body text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE added integer;
BEGIN
    INSERT INTO note (body) VALUES ($1) RETURNING id INTO added;
    RETURN added;
END $$;
CREATE FUNCTION add_by_another(body text) RETURNS integer LANGUAGE sql AS
    $$ SELECT add_note(body) $$;
CREATE FUNCTION add_rows(body text) RETURNS SETOF integer LANGUAGE sql AS
    $$ INSERT INTO note (body) VALUES (body) RETURNING id $$;
CREATE FUNCTION insists(body text) RETURNS integer LANGUAGE plpgsql
    SET transaction_read_only = off AS
    $$ BEGIN SET LOCAL transaction_read_only = off; RETURN add_note(body); END $$;
CREATE FUNCTION adds(a integer, body text) RETURNS boolean LANGUAGE sql AS
    $$ SELECT add_note(body) > a $$;
CREATE OPERATOR <+> (LEFTARG = integer, RIGHTARG = text, FUNCTION = adds);
CREATE SEQUENCE calls;
CREATE FUNCTION count_call(seconds integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls');
    PERFORM pg_sleep(seconds);
    RETURN 1;
END $$;
";

diesel::define_sql_function! { fn add_note(body: Text) -> Integer; }
diesel::define_sql_function! { fn count_call(seconds: Integer) -> Integer; }

/// Servers side by side that would all take a write: who is primary is the configuration's word.
fn writable(replicas: usize) -> Db {
    let cluster = Cluster::postgres_writable(replicas);
    for node in 0..=replicas {
        cluster.try_app_sql(node, SCHEMA).unwrap();
    }
    let pool = pool(patient(config(&cluster)).fixed_roles());
    warm(&pool);
    Db { pool, cluster }
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
        let query = query.filter(add_note(body).gt(0)).into_boxed();
        query.load::<String>(conn).map(drop)
    },
    |conn, body| sql(conn, &format!("SELECT add_note('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("SELECT add_by_another('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("SELECT * FROM add_rows('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("SELECT insists('{body}')")).map(drop),
    |conn, body| sql(conn, &format!("SELECT 0 <+> '{body}'")).map(drop),
    |conn, body| {
        sql(
            conn,
            &format!("WITH x AS (SELECT add_note('{body}') AS id) SELECT id FROM x"),
        )
        .map(drop)
    },
    |conn, body| {
        let cte = "WITH x AS (INSERT INTO note (body) VALUES";
        sql(
            conn,
            &format!("{cte} ('{body}') RETURNING id) SELECT id FROM x"),
        )
        .map(drop)
    },
    |conn, body| conn.batch_execute(&format!("SELECT 1; SELECT add_note('{body}')")),
    |conn, body| conn.batch_execute(&format!("SELECT add_note('{body}')")),
    |conn, body| {
        let insert = diesel::insert_into(note::table).values(note::body.eq(body));
        insert.returning(note::id).get_result::<i32>(conn).map(drop)
    },
    |conn, body| sql(conn, &format!("EXPLAIN ANALYZE SELECT add_note('{body}')")).map(drop),
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

/// How many statements with this text a server has received, by its own log.
fn received(db: &Db, node: usize, part: &str) -> usize {
    let log = db.cluster.dir().join(format!("n{node}/log"));
    let log = std::fs::read_to_string(log).expect("the server logs there");
    let received = |line: &&str| line.contains("LOG:") && line.contains(part);
    log.lines().filter(received).count()
}

fn log_statements(db: &Db, node: usize) {
    db.cluster
        .sql(node, "ALTER SYSTEM SET log_statement = 'all'");
    db.cluster.sql(node, "SELECT pg_reload_conf()");
    wait_until(
        "the server logs",
        std::time::Duration::from_secs(10),
        || {
            db.cluster.try_app_sql(node, "SELECT 'logged'").unwrap();
            received(db, node, "SELECT 'logged'") > 0
        },
    );
}

#[test]
fn what_was_refused_once_goes_straight_to_the_primary() {
    kit_log::listen();
    type Way = fn(&mut Conn) -> QueryResult<()>;
    let ways: [(&str, Way); 2] = [
        ("SELECT add_note($1)", |conn| {
            diesel::select(add_note("typed")).execute(conn).map(drop)
        }),
        ("SELECT add_note('text')", |conn| {
            sql(conn, "SELECT add_note('text')").map(drop)
        }),
    ];
    let db = writable(1);
    log_statements(&db, 1);
    for (text, way) in ways {
        for times in 1..=5 {
            Context::new().run(|| {
                let mut conn = db.pool.get().unwrap();
                conn.distributed(|conn| {
                    assert_eq!(who(conn), "n1", "the block begins on the replica");
                    way(conn).unwrap();
                    assert_eq!(reason(conn), Reason::ReadOnlyRefused);
                });
                assert_eq!(received(&db, 1, text), 1, "{text}: the {times}. time");
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
    let ways: [fn(&mut Conn) -> QueryResult<usize>; 2] = [
        |conn| diesel::select(add_note("x")).execute(conn),
        |conn| sql(conn, "SELECT add_note('x')"),
    ];
    for way in ways {
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            way(&mut conn).unwrap();
            assert_eq!(reason(&conn), Reason::PrimaryMode, "outside a block");
            let seen = conn.distributed(bodies);
            assert!(!seen.is_empty(), "own write seen");
            assert_eq!(reason(&conn), Reason::NotCaughtUp);
        });
    }
}

/// Ends the application's connection that runs a statement with this text.
fn cut(db: &Db, node: usize, part: &str) {
    let cut = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE query LIKE '%{part}%' AND usename = 'app' AND wait_event = 'PgSleep'"
    );
    wait_until(
        "a connection is cut",
        std::time::Duration::from_secs(10),
        || db.cluster.sql(node, &cut) == "1",
    );
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
            cut(&db, 0, "count_call");
            call.join().unwrap().expect_err("the error is the caller's");
        });
        let counted = "SELECT last_value FROM calls";
        assert_eq!(db.cluster.sql(0, counted), calls.to_string(), "once");
        context.run(|| {
            let from = block_reads_from(&mut db.pool.get().unwrap());
            assert_eq!(from, "n0", "nobody knows what it has written");
        });
    }
}

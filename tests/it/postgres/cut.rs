//! Connections that PostgreSQL ends under a statement.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgRowByRowLoadingMode;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use diesel_routed::{Context, RoutedError};

use crate::kit::config;
use crate::kit::postgres::*;
use crate::support::{Cluster, wait_until};

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Integer)]
    n: i32,
}

/// Ends all connections of the application to a node.
fn cut_all(db: &Db, node: usize) {
    let end = "SELECT string_agg(pid::text, ','), count(pg_terminate_backend(pid))
               FROM pg_stat_activity WHERE usename = 'app'";
    let ended = db.cluster.sql(node, end);
    let (ended, _) = ended.split_once('\t').expect("two columns");
    // others come in their place: the monitor opens another one at once
    let left = format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({ended})");
    wait_until("they are gone", Duration::from_secs(10), || {
        db.cluster.sql(node, &left) == "0"
    });
}

fn never_pinged(replicas: usize) -> Db {
    db_with(replicas, |config| {
        let config = config.validate_after(Duration::from_secs(600));
        config.quarantine(Duration::from_millis(1))
    })
}

#[test]
fn a_read_whose_connection_was_cut_is_answered_once_by_another_node() {
    type Way = fn(&mut Conn) -> Vec<String>;
    let ways: [Way; 2] = [bodies, |conn| {
        let rows = note::table.select(note::body).order(note::id);
        let rows = rows
            .load_iter::<String, PgRowByRowLoadingMode>(conn)
            .unwrap();
        rows.collect::<QueryResult<_>>().unwrap()
    }];
    let db = never_pinged(1);
    write(&mut db.pool.get().unwrap(), "once");
    db.cluster.wait_replicated();
    for way in ways {
        let mut conn = db.pool.get().unwrap();
        wait_until(
            "the replica is out of quarantine",
            Duration::from_secs(10),
            || block_reads_from(&mut conn) == "n1",
        );
        cut_all(&db, 1);
        assert_eq!(conn.distributed(way), ["once"]);
        conn.distributed(|conn| {
            who(conn);
            cut_all(&db, 1);
            assert_eq!(way(conn), ["once"], "in a block that has read");
            assert_eq!(conn.last_route().unwrap().node.as_ref(), "n0");
        });
    }
}

#[test]
fn a_read_that_is_cut_while_it_runs_is_answered_by_the_primary() {
    let db = never_pinged(1);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        std::thread::scope(|scope| {
            let slow =
                "SELECT 1 AS n FROM node_name, pg_sleep(CASE name WHEN 'n1' THEN 60 ELSE 0 END)";
            let reader = &mut *conn;
            let read = scope.spawn(move || diesel::sql_query(slow).load::<Number>(reader));
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
            wait_until("it runs", Duration::from_secs(10), || {
                db.cluster.sql(1, waiting) == "1"
            });
            cut_all(&db, 1);
            assert_eq!(read.join().unwrap().unwrap().len(), 1, "one row, once");
        });
        assert_eq!(who(conn), "n0");
    });
}

/// Reads many rows one by one and cuts the node's connections under it: the numbers that came,
/// and how it ended.
fn cut_in_mid_iteration(db: &Db, node: usize, conn: &mut Conn) -> (Vec<i32>, QueryResult<()>) {
    let rows = diesel::sql_query("SELECT n FROM generate_series(1, 3000000) AS n");
    let rows = rows
        .load_iter::<Number, PgRowByRowLoadingMode>(conn)
        .unwrap();
    let mut numbers = vec![];
    for row in rows {
        match row {
            Ok(row) => numbers.push(row.n),
            Err(error) => return (numbers, Err(error)),
        }
        if numbers.len() == 10 {
            cut_all(db, node);
        }
    }
    (numbers, Ok(()))
}

#[test]
fn cut_in_mid_iteration_a_read_fails_and_repeats_no_row() {
    for node in [1, 0] {
        let db = never_pinged(1);
        let mut conn = db.pool.get().unwrap();
        let (numbers, end) = match node {
            0 => cut_in_mid_iteration(&db, node, &mut conn),
            _ => conn.distributed(|conn| cut_in_mid_iteration(&db, node, conn)),
        };
        end.expect_err("an error, not a second beginning");
        let expected: Vec<i32> = (1..).take(numbers.len()).collect();
        assert!(numbers.len() >= 10 && numbers == expected, "n{node}");
        drop(conn);
        let mut next = db.pool.get().unwrap();
        assert_eq!(who(&mut next), "n0", "the next handle is not bothered");
        assert_eq!(next.distributed(bodies), [""; 0]);
    }
}

#[test]
fn a_refusal_after_rows_were_handed_out_is_returned() {
    let cluster = Cluster::postgres_writable(1);
    for node in 0..=1 {
        let schema = "CREATE TABLE note (id SERIAL PRIMARY KEY, body VARCHAR(200) NOT NULL);
            CREATE FUNCTION late(n integer) RETURNS integer LANGUAGE plpgsql AS $$
            BEGIN
                IF n = 100000 THEN INSERT INTO note (body) VALUES ('late'); END IF;
                RETURN n;
            END $$";
        cluster.try_app_sql(node, schema).unwrap();
    }
    let db = Db {
        pool: pool(config(&cluster).fixed_roles()),
        cluster,
    };
    let mut conn = db.pool.get().unwrap();
    let (numbers, end) = conn.distributed(|conn| {
        let rows = diesel::sql_query("SELECT late(n) AS n FROM generate_series(1, 100000) AS n");
        let rows = rows
            .load_iter::<Number, PgRowByRowLoadingMode>(conn)
            .unwrap();
        let mut numbers = vec![];
        for row in rows {
            match row {
                Ok(row) => numbers.push(row.n),
                Err(error) => return (numbers, Err(error)),
            }
        }
        (numbers, Ok(()))
    });
    let error = end.expect_err("half of the answer is out");
    assert!(
        error.to_string().contains("read-only transaction"),
        "{error}"
    );
    assert!(!numbers.is_empty() && numbers.is_sorted());
    for node in 0..=1 {
        assert_eq!(db.cluster.sql(node, "SELECT count(*) FROM note"), "0");
    }
}

#[test]
fn what_failed_on_the_primary_is_not_repeated() {
    let db = db(1);
    db.cluster
        .try_app_sql(
            0,
            "CREATE SEQUENCE calls; CREATE PROCEDURE fails() LANGUAGE plpgsql AS
                $$ BEGIN PERFORM nextval('calls'); RAISE 'x'; END $$",
        )
        .unwrap();
    type Way = fn(&mut Conn) -> QueryResult<()>;
    let ways: [Way; 4] = [
        |conn| conn.batch_execute("SELECT nextval('calls'); SELECT 1/0"),
        |conn| conn.batch_execute("DO $$ BEGIN PERFORM nextval('calls'); RAISE 'x'; END $$"),
        |conn| sql(conn, "CALL fails()").map(drop),
        |conn| {
            conn.transaction(|conn| {
                sql(conn, "SELECT nextval('calls')")?;
                sql(conn, "SELECT 1/0").map(drop)
            })
        },
    ];
    for (way, calls) in ways.into_iter().zip(1..) {
        let mut conn = db.pool.get().unwrap();
        conn.distributed(way).unwrap_err();
        assert_eq!(
            db.cluster.sql(0, "SELECT last_value FROM calls"),
            calls.to_string()
        );
    }
}

#[test]
fn a_handle_outlives_its_connection_unless_session_state_went_with_it() {
    let db = never_pinged(1);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "first");
    cut_all(&db, 0);
    sql(&mut conn, "SELECT 1").expect_err("nothing is repeated on the primary");
    write(&mut conn, "second");
    sql(&mut conn, "SET search_path = public").unwrap();
    cut_all(&db, 0);
    for _ in 0..2 {
        let error = sql(&mut conn, "SELECT 1").expect_err("its setting is gone");
        assert_eq!(RoutedError::downcast(&error), None);
    }
    drop(conn);
    assert_eq!(bodies(&mut db.pool.get().unwrap()), ["first", "second"]);
}

#[test]
fn a_cut_transaction_is_an_error_and_leaves_the_handle_whole() {
    let db = never_pinged(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let cut = conn.transaction(|conn| {
            write(conn, "never");
            cut_all(&db, 0);
            sql(conn, "SELECT 1")
        });
        cut.unwrap_err();
        write(&mut conn, "mine");
        assert_eq!(conn.distributed(bodies), ["mine"]);
        let cut = conn.read_only_transaction(|conn| {
            cut_all(&db, 0);
            sql(conn, "SELECT 1")
        });
        cut.unwrap_err();
        assert_eq!(bodies(&mut conn), ["mine"]);
    });
}

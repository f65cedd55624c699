//! Reads that a standby cancels because they stand in the way of what it applies.

use diesel::pg::PgRowByRowLoadingMode;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use diesel_routed::{Context, Strategy};

use crate::kit::postgres::*;
use crate::kit_health::postgres::*;
use crate::support::wait_until;

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Integer)]
    n: i32,
}

/// A cluster with something to vacuum away, whose first replica is preferred and waits for no read.
fn impatient() -> (Db, Known<Plain>) {
    let db = db_with(2, |config| watched(config).strategy(Strategy::Failover));
    let fill = "INSERT INTO note (body) SELECT 'x' FROM generate_series(1, 100)";
    db.cluster.sql(0, fill);
    db.cluster.never_wait_for_reads(1);
    db.cluster.wait_replicated();
    let known = Known::to(&db.pool);
    known.wait_for_all();
    (db, known)
}

fn vacuum(db: &Db) {
    db.cluster.sql(0, "DELETE FROM note;\nVACUUM note;");
}

/// Vacuums until the read on n1 has given way: what was vacuumed while somebody on the primary
/// could still see it stays.
fn vacuum_under_the_read(db: &Db) {
    wait_until("n1 reads", SOON, || db.cluster.sql(1, IS_SLOW) == "1");
    wait_until("the read has given way", SOON, || {
        db.cluster.sql(0, "INSERT INTO note (body) VALUES ('x')");
        vacuum(db);
        db.cluster.sql(1, IS_SLOW) == "0"
    });
}

#[test]
fn the_read_is_answered_by_the_next_replica_once() {
    let (db, known) = impatient();
    let mut conn = db.pool.get().unwrap();
    let rows = std::thread::scope(|scope| {
        let read = scope
            .spawn(|| conn.distributed(|conn| diesel::sql_query(SLOW_ON_N1).load::<Named>(conn)));
        vacuum_under_the_read(&db);
        read.join()
            .expect("no panic")
            .expect("it is answered after all")
    });
    let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["n2"]);
    assert_eq!(known.states(), ["up"; 3], "nobody died");
    assert_eq!(
        Context::new().run(|| block_reads_from(&mut conn)),
        "n1",
        "and n1 is asked as before"
    );
}

#[test]
fn in_a_block_that_has_read_the_primary_answers() {
    let (db, known) = impatient();
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        let rows = std::thread::scope(|scope| {
            let read = scope.spawn(|| diesel::sql_query(SLOW_ON_N1).load::<Named>(conn));
            vacuum_under_the_read(&db);
            read.join()
                .expect("no panic")
                .expect("it is answered after all")
        });
        assert_eq!(rows[0].name, "n0", "n2 might be older than n1 was");
    });
    assert_eq!(known.states(), ["up"; 3], "nobody died");
}

#[test]
fn after_rows_were_handed_out_it_is_an_error_and_no_row_comes_twice() {
    let (db, known) = impatient();
    let mut conn = db.pool.get().unwrap();
    let (numbers, end) = conn.distributed(|conn| {
        // more than the sockets hold, with a snapshot until its end
        let query = "SELECT n, repeat('x', 500) FROM generate_series(1, 200000) AS n";
        let mut rows = diesel::sql_query(query)
            .load_iter::<Number, PgRowByRowLoadingMode>(conn)
            .expect("it begins");
        let mut numbers = vec![rows.next().expect("a row").expect("a row").n];
        vacuum(&db);
        let met = "SELECT count(*) > 0 FROM pg_stat_activity
                   WHERE backend_type = 'startup' AND wait_event LIKE 'RecoveryConflict%'
                      OR query LIKE '%200000%' AND state = 'idle'";
        wait_until("the read is in the way, or was", SOON, || {
            db.cluster.sql(1, met) == "t"
        });
        for row in rows {
            match row {
                Ok(row) => numbers.push(row.n),
                Err(error) => return (numbers, Err(error)),
            }
        }
        (numbers, Ok(()))
    });
    let error = end
        .expect_err("an error, not a second beginning")
        .to_string();
    assert!(error.contains("conflict with recovery"), "{error}");
    let expected: Vec<i32> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "each row once");
    assert_eq!(known.states(), ["up"; 3], "nobody died");
    assert_eq!(block_reads_from(&mut conn), "n1");
}

#[test]
fn in_a_transaction_it_is_the_users() {
    let (db, known) = impatient();
    let mut conn = db.pool.get().unwrap();
    let result = std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            conn.read_only_transaction(|conn| diesel::sql_query(SLOW_ON_N1).load::<Named>(conn))
        });
        vacuum_under_the_read(&db);
        read.join().expect("no panic").map(|rows| rows.len())
    });
    let error = result.expect_err("it is not repeated").to_string();
    assert!(error.contains("conflict with recovery"), "{error}");
    assert_eq!(known.states(), ["up"; 3], "nobody died");
    assert_eq!(block_reads_from(&mut conn), "n1", "the handle is whole");
}

//! Connections that MariaDB ends under a statement.

use std::time::Duration;

use diesel::prelude::*;

use crate::kit::mariadb::*;
use crate::support::wait_until;

/// Ends all connections of the application to a node.
fn cut_all(db: &Db, node: usize) {
    let theirs = "SELECT id FROM information_schema.PROCESSLIST WHERE user = 'app'";
    let ended = db.cluster.sql(node, theirs).replace('\n', ",");
    db.cluster.sql(node, "KILL USER app");
    // others come in their place: the monitor opens another one at once
    let left = format!("SELECT count(*) FROM information_schema.PROCESSLIST WHERE id IN ({ended})");
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
    let db = never_pinged(1);
    write(&mut db.pool.get().unwrap(), "once");
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    assert_eq!(block_reads_from(&mut conn), "n1");
    cut_all(&db, 1);
    assert_eq!(conn.distributed(bodies), ["once"]);
    wait_until(
        "the replica is out of quarantine",
        Duration::from_secs(10),
        || block_reads_from(&mut conn) == "n1",
    );
    conn.distributed(|conn| {
        who(conn);
        cut_all(&db, 1);
        assert_eq!(bodies(conn), ["once"], "in a block that has read");
        assert_eq!(who(conn), "n0");
    });
}

#[test]
fn a_read_that_is_cut_while_it_runs_is_answered_by_the_primary() {
    let db = never_pinged(1);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        std::thread::scope(|scope| {
            let slow = "SELECT SLEEP(IF(@@read_only, 60, 0))";
            let read = scope.spawn(|| sql(conn, slow));
            let sleeping = "SELECT count(*) FROM information_schema.PROCESSLIST
                            WHERE user = 'app' AND state = 'User sleep'";
            wait_until("it runs", Duration::from_secs(10), || {
                db.cluster.sql(1, sleeping) == "1"
            });
            cut_all(&db, 1);
            read.join().unwrap().unwrap();
        });
        assert_eq!(who(conn), "n0");
    });
}

#[test]
fn a_handle_outlives_its_connection_unless_session_state_went_with_it() {
    let db = never_pinged(1);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "first");
    cut_all(&db, 0);
    sql(&mut conn, "SELECT 1").expect_err("nothing is repeated on the primary");
    write(&mut conn, "second");
    sql(&mut conn, "SET @tenant = 7").unwrap();
    cut_all(&db, 0);
    for _ in 0..2 {
        sql(&mut conn, "SELECT 1").expect_err("its setting is gone");
    }
    drop(conn);
    assert_eq!(bodies(&mut db.pool.get().unwrap()), ["first", "second"]);
}

#[test]
fn a_cut_transaction_is_an_error_and_leaves_the_handle_whole() {
    let db = never_pinged(1);
    let mut conn = db.pool.get().unwrap();
    let cut = conn.transaction(|conn| {
        write(conn, "never");
        cut_all(&db, 0);
        sql(conn, "SELECT 1")
    });
    cut.unwrap_err();
    write(&mut conn, "mine");
    assert_eq!(conn.distributed(bodies), ["mine"]);
}

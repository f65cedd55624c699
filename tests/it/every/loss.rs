//! Servers that die under a handle. A SQLite file does not: whoever has it open goes on reading.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Consistency, Context, Fallback, Reason, RoutedError, Strategy};

use super::backend::*;
use crate::kit_pools::disconnect;

#[test]
fn a_read_goes_to_the_next_replica_when_its_own_is_gone() {
    let db = db_with(2, |config| config.validate_after(Duration::from_secs(600)));
    let mut conn = db.pool.get().unwrap();
    // a connection to each replica in the pool, so that the loss is seen by a statement
    let mut other = db.pool.get().unwrap();
    conn.distributed(|conn| {
        who(conn);
        for _ in 0..30 {
            other.distributed(who);
        }
    });
    db.cluster.kill(1);
    for _ in 0..10 {
        Context::new().run(|| {
            assert_eq!(
                block_reads_from(&mut conn),
                "n2",
                "the answer is the other's"
            );
            assert_eq!(conn.distributed(bodies), [""; 0]);
        });
    }
    db.cluster.kill(2);
    Context::new().run(|| assert_eq!(block_reads_from(&mut conn), "n0"));
    assert_eq!(reason(&conn), Reason::NoReplica);
}

#[test]
fn when_all_replicas_die_at_once_the_read_says_so() {
    let db = db_with(2, |config| {
        let config = config.validate_after(Duration::from_secs(600));
        config.strategy(Strategy::Failover).pool_size(1)
    });
    // a connection to each in the pool, so that the loss is seen by a statement
    let (mut one, mut two) = (db.pool.get().unwrap(), db.pool.get().unwrap());
    one.distributed(|one| {
        assert_eq!(who(one), "n1");
        two.distributed(|two| assert_eq!(who(two), "n2", "the first is in use"));
    });
    drop((one, two));
    db.cluster.kill(1);
    db.cluster.kill(2);
    let mut conn = db.pool.get().unwrap();
    assert_eq!(block_reads_from(&mut conn), "n0");
    assert_eq!(reason(&conn), Reason::NoReplica);
}

#[test]
fn a_block_that_has_read_goes_on_on_the_primary_when_its_replica_dies() {
    let db = db(2);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let replica = who(conn);
        db.cluster.kill(if replica == "n1" { 1 } else { 2 });
        assert_eq!(who(conn), "n0", "another replica might be older");
        assert_eq!(who(conn), "n0");
        assert_eq!(reason(conn), Reason::Stuck);
    });
    assert_ne!(
        block_reads_from(&mut conn),
        "n0",
        "the next block uses the other"
    );
}

#[test]
fn a_block_never_goes_on_at_the_replica_of_an_eventual_one_inside_it() {
    let db = db_with(2, |config| config.strategy(Strategy::Failover));
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        db.cluster.kill(1);
        assert_eq!(conn.distributed_with(Consistency::Eventual, who), "n2");
        assert_eq!(who(conn), "n0", "n2 might be older than n1 was");
    });
}

#[test]
fn an_eventual_block_goes_on_at_any_replica() {
    let db = db_with(2, |config| config.strategy(Strategy::Failover));
    let mut conn = db.pool.get().unwrap();
    conn.distributed_with(Consistency::Eventual, |conn| {
        assert_eq!(who(conn), "n1");
        db.cluster.kill(1);
        assert_eq!(who(conn), "n2");
    });
}

#[test]
fn where_the_primary_may_not_stand_in_it_never_does() {
    let db = db_with(2, |config| {
        let config = config.validate_after(Duration::from_secs(600));
        config.fallback(Fallback::Error)
    });
    let mut conn = db.pool.get().unwrap();
    let mut other = db.pool.get().unwrap();
    let name = || node_name::table.select(node_name::name);
    let refused = |result: QueryResult<String>| match RoutedError::downcast(&result.unwrap_err()) {
        Some(RoutedError::NoReplica { .. }) => {}
        other => panic!("{other:?}"),
    };
    conn.distributed(|conn| {
        who(conn);
        (0..30).for_each(|_| drop(other.distributed(who)));
        db.cluster.kill(1);
        db.cluster.kill(2);
        refused(name().first(conn));
    });
    refused(other.distributed(|conn| name().first(conn)));
}

#[test]
fn a_transaction_never_begins_anew_what_a_statement_has_begun() {
    let db = db(0);
    let mut conn = db.pool.get().unwrap();
    unprepared(&mut conn, "BEGIN").unwrap();
    write(&mut conn, "first");
    disconnect(&db.cluster, 0);
    let second = conn.transaction(|conn| {
        write(conn, "second");
        QueryResult::Ok(())
    });
    assert!(second.is_err(), "the first note is lost");
    assert!(sql(&mut conn, "COMMIT").is_err());
    drop(conn);
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "0");
}

#[test]
fn after_a_read_only_transaction_has_lost_its_replica_the_block_goes_on() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let lost = conn.read_only_transaction(|conn| {
            db.cluster.kill(1);
            sql(conn, "SELECT 1")
        });
        assert!(lost.is_err());
        let again = conn.read_only_transaction(|conn| QueryResult::Ok(who(conn)));
        assert_eq!(again, Ok("n0".into()));
    });
}

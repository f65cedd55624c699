//! The scenario that the crate exists for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::backend::*;

#[test]
fn ordinary_statements_run_on_the_primary() {
    let db = db(2);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "first");
    assert_eq!(who(&mut conn), "n0");
    assert_eq!(bodies(&mut conn), ["first"]);
}

#[test]
fn a_block_reads_from_one_replica_until_it_writes() {
    let db = db(2);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let replica = who(conn);
        assert_ne!(replica, "n0");
        for _ in 0..5 {
            assert_eq!(who(conn), replica, "one replica serves the whole block");
        }
        write(conn, "mine");
        assert_eq!(who(conn), "n0", "the rest of the block is on the primary");
        assert_eq!(bodies(conn), ["mine"]);
    });
    assert_eq!(who(&mut conn), "n0", "outside the block everything is");
}

#[test]
fn after_a_block_the_old_state_is_back_also_after_a_panic() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            panic!("expected");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(who(&mut conn), "n0");
    assert_eq!(conn.distributed(who), "n1", "and blocks work as before");
}

#[test]
fn entering_a_block_twice_opens_and_closes_no_connection() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let open = |conn: &Conn| -> Vec<u32> {
        let status = conn.cluster().status();
        status.nodes.iter().map(|node| node.open).collect()
    };
    conn.distributed(who);
    let before = open(&conn);
    for _ in 0..10 {
        conn.distributed(who);
    }
    assert_eq!(open(&conn), before);
    assert_eq!(
        before,
        [0, 1],
        "a request that only reads has no primary connection"
    );
}

//! Which replica a block reads from, and the blocks after it.

use std::collections::BTreeSet;
use std::time::Duration;

use diesel::QueryResult;
use diesel_routed::{Affinity, Context, Strategy};

use super::backend::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

fn names(conn: &mut Conn, blocks: usize) -> BTreeSet<String> {
    (0..blocks).map(|_| block_reads_from(conn)).collect()
}

/// A context that has read from this replica.
fn reader_of(db: &Db, replica: &str) -> Context {
    let mut context = Context::new();
    wait_until("it is chosen", SOON, || {
        context = Context::new();
        context.run(|| block_reads_from(&mut db.pool.get().unwrap())) == replica
    });
    context
}

#[test]
fn the_blocks_of_a_context_read_from_one_replica_and_those_of_others_from_all() {
    let db = db_with(2, |config| config.strategy(Strategy::RoundRobin));
    warm(&db.pool);
    let mut all = BTreeSet::new();
    for _ in 0..6 {
        let one = Context::new().run(|| {
            let mut names = names(&mut db.pool.get().unwrap(), 5);
            names.append(&mut self::names(&mut db.pool.get().unwrap(), 5));
            names
        });
        assert_eq!(one.len(), 1, "whichever handle: {one:?}");
        all.extend(one);
    }
    assert_eq!(all.len(), 2);
}

#[test]
fn a_read_only_transaction_reads_where_the_blocks_before_it_have_read() {
    let db = db_with(2, |config| config.strategy(Strategy::RoundRobin));
    warm(&db.pool);
    for replica in ["n1", "n2", "n1"] {
        let context = reader_of(&db, replica);
        let mut conn = db.pool.get().unwrap();
        let read = |conn: &mut Conn| QueryResult::Ok(who(conn));
        let name = context.run(|| conn.read_only_transaction(read)).unwrap();
        assert_eq!(name, replica);
    }
}

#[test]
fn with_affinity_query_each_read_goes_its_own_way_but_misses_no_own_write() {
    let db = db_with(2, |config| {
        let config = patient(config).affinity(Affinity::Query);
        config.strategy(Strategy::RoundRobin)
    });
    warm(&db.pool);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let read: Vec<_> = conn.distributed(|conn| (0..6).map(|_| who(conn)).collect());
        let half = read.iter().filter(|name| *name == "n1").count();
        assert_eq!(half, 3, "{read:?}");
        let read = |conn: &mut Conn| QueryResult::Ok((who(conn), who(conn), who(conn)));
        let (one, two, three) = conn.read_only_transaction(read).unwrap();
        assert!(one == two && two == three, "a transaction is in one place");
    });
    if NAME == "sqlite" {
        return;
    }
    db.cluster.pause_replication(1);
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "own");
        wait_until("the second replica serves", SOON, || {
            conn.distributed(who) == "n2"
        });
        let read: BTreeSet<_> = conn.distributed(|conn| (0..6).map(|_| who(conn)).collect());
        assert_eq!(read, BTreeSet::from(["n2".to_owned()]));
        assert_eq!(conn.distributed(bodies), ["own"]);
    });
}

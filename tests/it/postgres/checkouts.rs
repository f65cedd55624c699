//! What a checkout says to a server: nothing.

use std::time::Duration;

use crate::kit::postgres::*;
use crate::support::wait_until;

const UNITS: i64 = 500;

/// How many transactions the sessions of a node have ended; a statement alone is one, be it a ping.
fn transactions(db: &Db, node: usize) -> i64 {
    let counted = "SELECT xact_commit + xact_rollback FROM pg_stat_database \
                   WHERE datname = current_database()";
    let counted = db.cluster.sql(node, counted);
    counted.trim().parse().expect("a number")
}

#[test]
fn a_unit_that_reads_once_is_one_statement_on_its_replica_and_none_on_the_primary() {
    // nobody probes while the statements are counted
    let db = db_with(1, |config| patient(config).check_interval(Duration::ZERO));
    warm(&db.pool);
    let unit = || assert_eq!(db.pool.get().unwrap().distributed(who), "n1");
    unit();
    let before = [0, 1].map(|node| transactions(&db, node));
    for _ in 0..UNITS {
        unit();
    }
    let Db { pool, cluster } = db;
    // sessions hand in their numbers at the latest when they end
    drop(pool);
    let db = Db {
        pool: crate::kit::postgres::pool(crate::kit::config(&cluster)),
        cluster,
    };
    let now = |node: usize| transactions(&db, node) - before[node];
    wait_until(
        "the statements are counted",
        Duration::from_secs(30),
        || now(1) >= UNITS,
    );
    // the questions of this test are counted, too
    let (primary, replica) = (now(0), now(1));
    assert!(
        replica < UNITS + UNITS / 2,
        "{replica} transactions for {UNITS} reads: with a ping there would be twice as many"
    );
    assert!(
        primary < UNITS / 2,
        "{primary} transactions on the primary, which nobody has asked"
    );
}

//! A primary on which nothing is written, and its WAL.

use diesel_routed::Context;

use crate::kit::postgres::*;
use crate::kit_health::postgres::*;
use crate::support::holds_within;

#[test]
fn a_new_wal_file_on_an_idle_primary_makes_nobody_late() {
    let db = db_with(1, strict);
    let known = Known::to(&db.pool);
    known.wait("n1", "up");
    for _ in 0..2 {
        // what the primary then shows counts a page header that no standby replays
        db.cluster.sql(0, "SELECT pg_switch_wal()");
        let leaves = || {
            let read = || db.pool.get().unwrap().distributed(who);
            known.state("n1") != "up" || Context::new().run(read) != "n1"
        };
        assert!(!holds_within(2 * MAX_LAG, leaves), "it has all there is");
    }
}

//! Blocks that ask for a bound of the lag, where the server can tell it.

use std::time::Duration;

use diesel_routed::Consistency;

use super::backend::*;

/// With replication at work a replica is known to be as fresh as that.
#[test]
fn max_lag_reads_from_a_replica_that_is_fresh_enough() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let fresh = Consistency::MaxLag(Duration::from_secs(4));
    crate::support::wait_until(
        "a read within MaxLag(4 s) is on the replica",
        Duration::from_secs(5),
        || conn.distributed_with(fresh, who) == "n1",
    );
}

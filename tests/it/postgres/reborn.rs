//! A standby that comes back from a crash in its own past, before anybody has noticed.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use diesel_routed::{ClusterConfig, Context};

use crate::kit::postgres::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

/// Looked at once, at the beginning.
fn seldom(config: ClusterConfig) -> ClusterConfig {
    patient(config).check_interval(Duration::from_secs(30))
}

/// Crashes a standby, which then applies again what it had applied, but not the last commits.
fn restart_in_the_past(db: &Db, replica: usize) {
    db.cluster.kill(replica);
    let file = db
        .cluster
        .dir()
        .join(format!("n{replica}/data/postgresql.auto.conf"));
    let mut file = OpenOptions::new().append(true).open(file).unwrap();
    writeln!(file, "recovery_min_apply_delay = '1h'").unwrap();
    db.cluster.restart(replica);
}

#[test]
fn who_was_told_that_all_replicas_have_it_sees_it_after_one_has_restarted() {
    let db = db_with(1, seldom);
    let other = pool(seldom(crate::kit::config(&db.cluster)));
    warm(&db.pool);
    // what a crash takes it back to
    db.cluster.sql(0, "CHECKPOINT");
    db.cluster.wait_replicated();
    db.cluster.sql(1, "CHECKPOINT");
    let request = Context::resume("");
    request.run(|| write(&mut db.pool.get().unwrap(), "own"));
    db.cluster.wait_replicated();
    warm(&other);
    wait_until("there is nothing to hand on", SOON, || {
        db.pool.get().unwrap().cluster().check();
        request.token().is_none()
    });
    restart_in_the_past(&db, 1);
    assert_eq!(db.cluster.sql(1, "SELECT count(*) FROM note"), "0");
    for pool in [&db.pool, &other] {
        let next = Context::resume("");
        let (seen, route) = next.run(|| {
            let mut conn = pool.get().unwrap();
            (conn.distributed(bodies), conn.last_route())
        });
        assert_eq!(seen, ["own"], "it has no token, and needed none: {route:?}");
    }
}

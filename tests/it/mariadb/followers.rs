//! Replicas that take writes although they follow a primary.

use std::time::Duration;

use diesel_routed::{ClusterConfig, Context};

use crate::kit::mariadb::*;
use crate::kit_health::mariadb::*;
use crate::kit_pools::mariadb::{pool_of, sized};
use crate::support::{holds_within, wait_until};

#[test]
fn one_never_becomes_primary_while_it_follows() {
    let cluster = cluster(1);
    cluster.set_writable(1);
    let config = watched(sized(&cluster, 2, 2)).checkout_timeout(Duration::from_millis(300));
    let pool = pool_of(2, config);
    let known = Known::to(&pool);
    known.wait("n1", "up");
    cluster.kill(0);
    known.wait("n0", "down");
    let writes = || try_write(&mut pool.get().unwrap(), "astray").is_ok();
    assert!(!holds_within(10 * TICK, writes), "nobody takes writes");
    assert_eq!(
        cluster.sql(1, "SELECT count(*) FROM note"),
        "0",
        "nothing was written there"
    );
    let read = || Context::new().run(|| pool.get().unwrap().distributed(who));
    assert_eq!(read(), "n1", "it serves as what it is");
    cluster.promote(1);
    wait_until("it is told to lead", SOON, writes);
    assert_eq!(known.primaries(), ["n1"]);
}

#[test]
fn nor_in_a_process_that_starts_while_the_primary_is_dead() {
    let cluster = cluster(1);
    cluster.set_writable(1);
    cluster.kill(0);
    let config = watched(sized(&cluster, 2, 2)).checkout_timeout(Duration::from_millis(300));
    let pool = pool_of(2, config);
    let writes = || try_write(&mut pool.get().unwrap(), "astray").is_ok();
    assert!(!holds_within(10 * TICK, writes), "nobody takes writes");
    assert_eq!(
        cluster.sql(1, "SELECT count(*) FROM note"),
        "0",
        "nothing was written there"
    );
}

#[test]
fn a_switchover_that_closes_no_connection_fails_no_write() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let cluster = cluster(1);
    let pool = pool_of(8, watched(sized(&cluster, 8, 2)).checkout_timeout(SOON));
    let next = AtomicUsize::new(0);
    let insert = || {
        let body = next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut conn = pool.get().expect("a handle is free");
        try_write(&mut conn, &body).map(|_| "written".to_owned())
    };
    let ((), tally) = under_load(8, insert, |tally| {
        tally.wait_for_more(200);
        // no connection is closed for it
        cluster.switch_over(0, 1);
        tally.wait_for_more(200);
    });
    assert_eq!(
        tally.failures(),
        [""; 0],
        "a refused statement is done on the new primary"
    );
    let rows = cluster.sql(1, "SELECT count(*), count(DISTINCT body) FROM note");
    let written = tally.by("written");
    assert_eq!(rows, format!("{written}\t{written}"), "each once");
}

#[test]
fn what_was_written_on_the_new_primary_is_not_missed_by_who_still_believes_in_the_old_one() {
    let cluster = cluster(1);
    let seldom = |config: ClusterConfig| {
        let on_demand = patient(config).check_interval(Duration::ZERO);
        on_demand.check_ttl(Duration::from_secs(30))
    };
    let believer = pool_of(2, seldom(sized(&cluster, 2, 2)));
    write(&mut believer.get().unwrap(), "before");
    cluster.wait_replicated();
    // its connections to the old primary stay open
    cluster.switch_over(0, 1);
    cluster.pause_replication(0);
    let informed = pool_of(2, seldom(sized(&cluster, 2, 2)));
    let request = Context::resume("");
    let token = request.run(|| {
        let mut conn = informed.get().unwrap();
        write(&mut conn, "after");
        // the unit has not ended, so that only time tells
        request.token().expect("something was written")
    });
    let seen = Context::resume(&token).run(|| believer.get().unwrap().distributed(bodies));
    assert_eq!(seen, ["before", "after"]);
}

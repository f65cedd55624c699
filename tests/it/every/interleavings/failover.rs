//! Own writes and what was read, when servers die or change their roles in between.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Consistency, Context, Fallback, Strategy};

use super::super::backend::*;
use super::super::health::*;
use super::{commit, elsewhere, read_with};
use crate::support::{Cluster, wait_until};

const A_MOMENT: Duration = Duration::from_millis(500);

/// What the router does not find out when it has to, it does not find out.
fn never_looks(config: ClusterConfig) -> ClusterConfig {
    let config = patient(config).check_interval(Duration::ZERO);
    config.check_ttl(Duration::from_secs(3600))
}

/// Makes n1 the primary without closing a connection to n0, which stays as it is.
fn replace_primary(cluster: &Cluster) {
    if NAME == "postgres" {
        cluster.promote(1);
    } else {
        cluster.switch_over(0, 1);
        cluster.pause_replication(0);
    }
}

type Way = (&'static str, fn(&mut Conn) -> Vec<String>);

#[test]
fn n06_a_token_shows_that_the_primary_was_replaced() {
    let ways: [Way; 4] = [
        ("in a block", |conn| conn.distributed(bodies)),
        ("outside", bodies),
        ("on the primary", |conn| conn.primary(bodies)),
        ("in a transaction", |conn| {
            conn.transaction(|conn| QueryResult::Ok(bodies(conn)))
                .expect("it reads")
        }),
    ];
    let cluster = cluster(1);
    // processes that take n0 for the primary, and do not look again
    let outdated = ways.map(|way| {
        let pool = pool(never_looks(crate::kit::config(&cluster)).checkout_timeout(SOON));
        warm(&pool);
        assert_eq!(who(&mut pool.get().unwrap()), "n0");
        (way, pool)
    });
    replace_primary(&cluster);
    let other = pool(patient(crate::kit::config(&cluster)).checkout_timeout(SOON));
    let mut conn = other.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("n0 lacks it");
    for ((way, read), pool) in outdated {
        let seen = Context::resume(&token).run(|| read(&mut pool.get().unwrap()));
        assert_eq!(seen, ["own"], "{way}");
    }
}

/// Two replicas, of which the first is preferred and has what the second lacks.
fn of_two_ages() -> Db {
    let db = db_with(2, |config| {
        let config = patient(config).strategy(Strategy::Failover);
        config.checkout_timeout(A_MOMENT)
    });
    commit(&db, "old");
    db.cluster.wait_replicated();
    warm(&db.pool);
    db.cluster.pause_replication(2);
    commit(&db, "new");
    db.cluster.wait_replicated();
    db
}

#[test]
fn n22_a_block_whose_replica_dies_sees_nothing_older_whoever_else_is_dead() {
    for dead in [&[1][..], &[0, 1]] {
        let db = of_two_ages();
        let mut conn = db.pool.get().unwrap();
        conn.distributed(|conn| {
            assert_eq!(bodies(conn), ["old", "new"]);
            dead.iter().for_each(|node| db.cluster.kill(*node));
            let seen = note::table.select(note::body).load::<String>(conn);
            match dead.len() {
                1 => assert_eq!(seen.unwrap().len(), 2, "from the primary"),
                _ => assert!(seen.is_err(), "n2 is older: {seen:?}"),
            }
        });
        let seen = conn.distributed_with(Consistency::Eventual, bodies);
        assert_eq!(seen, ["old"], "another block may read from n2");
    }
}

/// A cluster whose first replica has become the primary, the second one following it.
fn promote(cluster: &Cluster) {
    cluster.kill(0);
    cluster.promote(1);
    cluster.follow(2, 1);
}

#[test]
fn n28_a_request_that_wrote_before_and_after_a_promotion_sees_both() {
    // what was written to the old primary ends by time
    let config = |config| {
        strict(config)
            .sticky_for(4 * MAX_LAG)
            .checkout_timeout(SOON)
    };
    let db = db_with(2, config);
    db.cluster.sql(0, SEE_REPLICATION);
    let other = elsewhere(&db, config);
    Known::to(&db.pool).wait_for_all();
    let request = Context::resume("");
    let mut conn = db.pool.get().unwrap();
    request.run(|| write(&mut conn, "before"));
    db.cluster.wait_replicated();
    promote(&db.cluster);
    request.run(|| {
        wait_until("writes go on", SOON, || {
            try_write(&mut conn, "after").is_ok()
        });
        let read = |conn: &mut Conn| (bodies(conn), who(conn));
        wait_until("n2 serves", SOON, || {
            let (seen, from) = conn.distributed(read);
            assert_eq!(seen, ["before", "after"], "read from {from}");
            from == "n2"
        });
    });
    drop(conn);
    let token = request.token().unwrap_or_default();
    let (seen, from) = read_with(&other, &token);
    assert_eq!(seen, ["before", "after"], "read from {from}");
}

#[test]
fn n29_while_the_primary_is_dead_an_own_write_is_seen_or_it_is_an_error() {
    for fallback in [Fallback::default(), Fallback::Stale, Fallback::Error] {
        let db = paused_db_with(1, |config| {
            watched(config)
                .fallback(fallback)
                .checkout_timeout(A_MOMENT)
        });
        let request = Context::new();
        request.run(|| write(&mut db.pool.get().unwrap(), "own"));
        db.cluster.kill(0);
        Known::to(&db.pool).wait("n0", "down");
        let read = || {
            let load = |conn: &mut Conn| note::table.select(note::body).load::<String>(conn);
            db.pool.get().unwrap().distributed(load)
        };
        for _ in 0..3 {
            let seen = request.run(read);
            assert!(seen.is_err(), "{fallback:?}: {seen:?}");
        }
        wait_until("who needs nothing reads on", SOON, || {
            Context::new().run(read) == Ok(vec![])
        });
        if fallback == Fallback::default() {
            db.cluster.restart(0);
            wait_until("it is seen when the primary is back", SOON, || {
                request.run(read).is_ok_and(|seen| seen == ["own"])
            });
        }
    }
}

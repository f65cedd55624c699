//! What serves when no replica can, and within which limits.

use std::time::Duration;

use diesel_routed::{ClusterConfig, Context, Fallback, Reason, RoutedError};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::wait_until;

const A_MOMENT: Duration = Duration::from_millis(500);

fn dead(replicas: usize, change: impl FnOnce(ClusterConfig) -> ClusterConfig) -> Db {
    let cluster = cluster(replicas);
    let config = watched(sized(&cluster, 4, 2)).checkout_timeout(A_MOMENT);
    let pool = pool_of(6, change(config));
    let known = Known::to(&pool);
    for replica in 1..=replicas {
        cluster.kill(replica);
        known.wait(&format!("n{replica}"), "down");
    }
    Db { pool, cluster }
}

/// Opens `count` blocks, one in another, each of which has read from the primary.
fn inside_blocks(pool: &Pool, count: usize, work: &mut dyn FnMut()) {
    let Some(rest) = count.checked_sub(1) else {
        return work();
    };
    pool.get().unwrap().distributed(|conn| {
        assert_eq!(who(conn), "n0", "the primary stands in");
        inside_blocks(pool, rest, work);
    });
}

#[test]
fn three_quarters_of_the_primary_are_for_reads_and_the_last_is_for_writes() {
    let db = dead(2, |config| config);
    inside_blocks(&db.pool, 3, &mut || {
        let mut surplus = db.pool.get().unwrap();
        let (refused, waited) = timed(|| surplus.distributed(try_who));
        let node = "n0".to_owned();
        assert_eq!(routed(refused), RoutedError::FallbackLimit { node });
        assert!(
            waited >= A_MOMENT,
            "only after waiting, not after {waited:?}"
        );
        write(&mut surplus, "a quarter is left");
    });
    assert_eq!(in_flight(&db.pool), [0, 0, 0]);
    assert_eq!(
        db.pool.get().unwrap().distributed(who),
        "n0",
        "there is room again"
    );
}

#[test]
fn a_fallback_marks_nothing() {
    let db = dead(1, |config| config);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        assert_eq!(block_reads_from(&mut conn), "n0");
        assert_eq!(reason(&conn), Reason::NoReplica);
        assert!(!context.is_sticky(), "a read leaves nothing behind");
        db.cluster.restart(1);
        wait_until("the replica serves again", SOON, || {
            block_reads_from(&mut conn) == "n1"
        });
    });
}

#[test]
fn fallback_error_is_an_error_that_names_each_replica_and_heals() {
    let db = dead(2, |config| config.fallback(Fallback::Error));
    let mut conn = db.pool.get().unwrap();
    match routed(conn.distributed(try_who)) {
        RoutedError::NoReplica { cause } => {
            assert!(cause.contains("n1: ") && cause.contains("n2: "), "{cause}");
        }
        other => panic!("{other:?}"),
    }
    write(&mut conn, "writes are not concerned");
    drop(conn);
    db.cluster.restart(2);
    let mut conn = db.pool.get().unwrap();
    wait_until("a replica serves again", SOON, || {
        Context::new().run(|| conn.distributed(try_who)).as_deref() == Ok("n2")
    });
}

#[test]
fn replicas_that_lack_an_own_write_leave_it_to_the_primary_whatever_the_fallback_is() {
    let one = Fallback::Primary {
        max_concurrent: Some(1),
    };
    for fallback in [one, Fallback::Stale, Fallback::Error] {
        let db = paused_db_with(1, |config| watched(config).fallback(fallback));
        let own = |work: &mut dyn FnMut()| {
            Context::new().run(|| {
                let mut conn = db.pool.get().unwrap();
                write(&mut conn, "mine");
                conn.distributed(|conn| {
                    assert!(bodies(conn).contains(&"mine".to_owned()), "{fallback:?}");
                    assert_eq!(reason(conn), Reason::NotCaughtUp, "{fallback:?}");
                    work();
                });
            });
        };
        // more at once than may fall back
        own(&mut || own(&mut || own(&mut || {})));
    }
}

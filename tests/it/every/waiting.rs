//! Who waits for a connection, for how long, and who never does.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Fallback, Reason, RoutedError};

use super::backend::*;
use super::pools::*;

/// Far more than a statement takes, far less than `checkout_timeout`.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Long enough for a thread to be seen waiting.
const A_MOMENT: Duration = Duration::from_millis(300);

const PATIENT: Duration = Duration::from_secs(30);

#[test]
fn writers_and_readers_never_wait_for_each_other_in_a_circle() {
    for size in [1, 2] {
        let cluster = cluster(2);
        let pool = pool_of(6, sized(&cluster, size, size).checkout_timeout(PATIENT));
        thread::scope(|scope| {
            for thread in 0..6 {
                let pool = &pool;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let (_, longest) = timed(|| one_request(pool, thread % 2 == 0));
                        assert!(
                            longest < 2 * AT_ONCE,
                            "waited {longest:?} with pools of {size}"
                        );
                    }
                });
            }
        });
        let db = Db { pool, cluster };
        assert_eq!(notes_on(&db, 0), 600, "nobody failed");
        assert_eq!(in_flight(&db.pool), [0, 0, 0]);
    }
}

/// Either holds the primary as it enters a block, or a replica as it comes to write.
fn one_request(pool: &Pool, primary_first: bool) {
    let mut conn = pool.get().unwrap();
    if primary_first {
        assert_eq!(who(&mut conn), "n0", "the primary's connection is in hand");
        conn.distributed(who);
        write(&mut conn, "after a block");
    } else {
        conn.distributed(|conn| {
            assert_ne!(who(conn), "n0");
            write(conn, "in a block");
        });
    }
}

#[test]
fn a_handle_that_holds_the_primary_does_not_wait_for_a_replica() {
    let cluster = cluster(1);
    let pool = pool_of(2, sized(&cluster, 1, 1).checkout_timeout(PATIENT));
    let mut reader = pool.get().unwrap();
    reader.distributed(|conn| {
        assert_eq!(who(conn), "n1", "the only connection to the replica");
        let mut writer = pool.get().unwrap();
        assert_eq!(who(&mut writer), "n0");
        let (name, time) = timed(|| writer.distributed(who));
        assert_eq!(name, "n0", "the connection in hand serves");
        assert!(time < AT_ONCE, "waited {time:?}");
    });
}

#[test]
fn when_all_replicas_are_full_the_first_free_one_serves() {
    let cluster = cluster(2);
    let pool = pool_of(3, sized(&cluster, 1, 1).checkout_timeout(PATIENT));
    let (say, said) = channel();
    let mut outer = pool.get().unwrap();
    outer.distributed(|outer| {
        let stays = who(outer);
        thread::scope(|scope| {
            let mut inner = pool.get().unwrap();
            let freed = inner.distributed(|inner| {
                let freed = who(inner);
                assert_ne!(freed, stays);
                scope.spawn(|| say.send(pool.get().unwrap().distributed(who)));
                let early = said.recv_timeout(A_MOMENT);
                assert!(early.is_err(), "it waits while both are in use: {early:?}");
                freed
            });
            assert_eq!(
                said.recv_timeout(PATIENT),
                Ok(freed),
                "the one that came back"
            );
        });
    });
}

#[test]
fn when_all_replicas_stay_full_the_primary_serves() {
    let cluster = cluster(1);
    let pool = pool_of(2, sized(&cluster, 1, 1).checkout_timeout(4 * A_MOMENT));
    pool.get().unwrap().distributed(|conn| {
        assert_eq!(who(conn), "n1");
        let mut surplus = pool.get().unwrap();
        let (name, time) = timed(|| surplus.distributed(who));
        assert_eq!(name, "n0");
        let most = 3 * A_MOMENT;
        assert!(time >= most, "only after waiting, not after {time:?}");
        assert_eq!(surplus.last_route().unwrap().reason, Reason::NoReplica);
    });
    let next = pool.get().unwrap().distributed(who);
    assert_eq!(next, "n1", "a full replica is no dead one");
}

#[test]
fn a_read_waits_for_replica_and_primary_under_one_deadline() {
    let cluster = cluster(1);
    let all = Duration::from_secs(4);
    let pool = pool_of(3, sized(&cluster, 1, 1).checkout_timeout(all));
    let mut writer = pool.get().unwrap();
    assert_eq!(who(&mut writer), "n0");
    pool.get().unwrap().distributed(|conn| {
        assert_eq!(who(conn), "n1");
        let (result, time) = timed(|| pool.get().unwrap().distributed(read));
        let error = RoutedError::downcast(&result.unwrap_err());
        assert!(
            matches!(error, Some(RoutedError::PoolTimeout { .. })),
            "{error:?}"
        );
        let twice = all * 7 / 4;
        assert!(time >= all && time < twice, "once, not {time:?}");
    });
}

#[test]
fn a_full_primary_is_a_pool_timeout_that_names_it() {
    let cluster = cluster(0);
    let pool = pool_of(2, sized(&cluster, 1, 1).checkout_timeout(A_MOMENT));
    let mut holder = pool.get().unwrap();
    who(&mut holder);
    let error = read(&mut pool.get().unwrap()).unwrap_err();
    let node = "n0".to_owned();
    assert_eq!(
        RoutedError::downcast(&error),
        Some(RoutedError::PoolTimeout { node })
    );
    drop(holder);
    assert_eq!(who(&mut pool.get().unwrap()), "n0");
}

#[test]
fn without_a_fallback_dead_replicas_are_an_error_that_names_them() {
    let cluster = cluster(1);
    cluster.kill(1);
    let pool = pool_of(2, sized(&cluster, 1, 1).fallback(Fallback::Error));
    let mut conn = pool.get().unwrap();
    for attempt in ["the first", "one in quarantine"] {
        let error = conn.distributed(read).unwrap_err();
        match RoutedError::downcast(&error) {
            Some(RoutedError::NoReplica { cause }) => {
                assert!(cause.starts_with("n1: "), "{attempt}: {cause}");
            }
            other => panic!("{attempt}: {other:?} for {error}"),
        }
    }
    write(&mut conn, "writes are not concerned");
    assert_eq!(who(&mut conn), "n0", "nor is what runs outside a block");
}

#[test]
fn without_a_fallback_full_replicas_are_an_error_after_waiting() {
    let cluster = cluster(1);
    let config = sized(&cluster, 1, 1)
        .fallback(Fallback::Error)
        .checkout_timeout(A_MOMENT);
    let pool = pool_of(2, config);
    pool.get().unwrap().distributed(|conn| {
        assert_eq!(who(conn), "n1");
        let (result, time) = timed(|| pool.get().unwrap().distributed(read));
        let error = RoutedError::downcast(&result.unwrap_err());
        assert!(
            matches!(error, Some(RoutedError::NoReplica { .. })),
            "{error:?}"
        );
        assert!(time >= A_MOMENT, "not after {time:?}");
    });
}

#[test]
fn no_more_reads_fall_back_at_once_than_the_limit_says() {
    let cluster = cluster(1);
    cluster.kill(1);
    let limit = Fallback::Primary {
        max_concurrent: Some(1),
    };
    let config = sized(&cluster, 3, 1)
        .fallback(limit)
        .checkout_timeout(A_MOMENT);
    let pool = pool_of(3, config);
    let mut first = pool.get().unwrap();
    assert_eq!(first.distributed(who), "n0");
    let mut second = pool.get().unwrap();
    let (result, time) = timed(|| second.distributed(read));
    let node = "n0".to_owned();
    let error = RoutedError::downcast(&result.unwrap_err());
    assert_eq!(error, Some(RoutedError::FallbackLimit { node }));
    assert!(time >= A_MOMENT, "only after waiting, not after {time:?}");
    write(&mut second, "writes are not counted");
    drop((first, second));
    assert_eq!(
        pool.get().unwrap().distributed(who),
        "n0",
        "the place is free again"
    );
}

#[test]
fn a_read_beyond_the_limit_is_served_as_soon_as_another_ends() {
    let cluster = cluster(1);
    cluster.kill(1);
    let limit = Fallback::Primary {
        max_concurrent: Some(1),
    };
    let config = sized(&cluster, 3, 1)
        .fallback(limit)
        .checkout_timeout(PATIENT);
    let pool = pool_of(3, config);
    let (say, said) = channel();
    thread::scope(|scope| {
        let mut first = pool.get().unwrap();
        assert_eq!(first.distributed(who), "n0");
        scope.spawn(|| say.send(pool.get().unwrap().distributed(who)));
        let early = said.recv_timeout(A_MOMENT);
        assert!(early.is_err(), "it waits: {early:?}");
        drop(first);
        assert_eq!(said.recv_timeout(PATIENT).as_deref(), Ok("n0"));
    });
}

#[test]
fn a_cluster_without_replicas_is_not_limited() {
    let cluster = cluster(0);
    for fallback in [
        Fallback::Primary {
            max_concurrent: Some(1),
        },
        Fallback::Error,
    ] {
        let pool = pool_of(
            3,
            sized(&cluster, 3, 1)
                .fallback(fallback)
                .checkout_timeout(PATIENT),
        );
        assert_eq!(
            answers(&pool, 3),
            [("n0".to_owned(), 3)].into(),
            "{fallback:?}"
        );
    }
}

fn read(conn: &mut Conn) -> QueryResult<i64> {
    note::table.count().get_result(conn)
}

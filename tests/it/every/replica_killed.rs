//! A replica that is killed, and how it comes back.

use std::time::Instant;

use diesel_routed::Context;

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{Forwarder, holds_within, wait_until};

/// Each is another request, which has written nothing.
fn read(pool: &Pool) -> diesel::QueryResult<String> {
    Context::new().run(|| pool.get().expect("a handle is free").distributed(try_who))
}

#[test]
fn under_eight_threads_of_reads_none_fails_and_only_the_monitor_dials_it() {
    let cluster = cluster(2);
    let pool = pool_of(8, watched(sized(&cluster, 4, 8)));
    let known = Known::to(&pool);
    let ((dials, looks), tally) = under_load(
        8,
        || read(&pool),
        |tally| {
            tally.wait_for_more_by("n1", 100);
            tally.wait_for_more_by("n2", 100);
            cluster.kill(1);
            let grave = Forwarder::in_place_of(cluster.port(1), &[]);
            known.wait("n1", "down");
            let (dialled, since) = (grave.accepted(), Instant::now());
            tally.wait_for_more(2_000);
            let looks = since.elapsed().as_millis() / TICK.as_millis();
            (grave.accepted() - dialled, looks)
        },
    );
    assert_eq!(tally.failures(), [""; 0], "no read fails");
    assert!(
        // a tenth of the interval is left to chance
        dials as u128 <= looks * 10 / 9 + 2,
        "dialled {dials} times while {looks} looks were due"
    );
}

#[test]
fn it_serves_again_soon_after_it_is_back() {
    let cluster = cluster(2);
    let pool = pool_of(4, watched(sized(&cluster, 4, 4)));
    let known = Known::to(&pool);
    let (back_after, tally) = under_load(
        4,
        || read(&pool),
        |tally| {
            tally.wait_for_more_by("n1", 10);
            cluster.kill(1);
            known.wait("n1", "down");
            cluster.restart(1);
            let restarted = Instant::now();
            tally.wait_for_more_by("n1", 1);
            restarted.elapsed()
        },
    );
    println!(
        "it served {back_after:?} after its start, {:?} are promised",
        2 * TICK
    );
    assert_eq!(tally.failures(), [""; 0], "no read fails");
}

#[test]
fn it_does_not_serve_before_it_has_what_was_committed_before_its_return() {
    let db = db_with(1, watched);
    let known = Known::to(&db.pool);
    db.cluster.stop_receiving(1);
    db.cluster.kill(1);
    known.wait("n1", "down");
    // by somebody else: nothing sticks here
    let insert = "INSERT INTO note (body) VALUES ('while it was away')";
    db.cluster.sql(0, insert);
    db.cluster.restart(1);
    let from_n1 = || {
        Context::new().run(|| {
            db.pool.get().unwrap().distributed(|conn| {
                let seen = bodies(conn);
                let name = who(conn);
                assert_eq!(seen, ["while it was away"], "read from {name}");
                name == "n1"
            })
        })
    };
    assert!(
        !holds_within(10 * TICK, from_n1),
        "it answers, but it has not caught up"
    );
    db.cluster.receive(1);
    wait_until("it serves, and has it", SOON, from_n1);
    known.wait("n1", "up");
}

//! A replica whose processes stand still: its connections stay open and nothing answers.

use std::time::Instant;

use diesel_routed::Context;

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::holds_within;

const THREADS: usize = 8;

/// How many connections to a replica there are, so how many requests it can take with it.
const BULKHEAD: u32 = 2;

fn read(pool: &Pool) -> diesel::QueryResult<String> {
    Context::new().run(|| pool.get().expect("a handle is free").distributed(try_who))
}

#[test]
fn it_leaves_rotation_blocks_only_the_reads_on_it_and_serves_again() {
    let cluster = cluster(2);
    let pool = pool_of(THREADS as u32, watched(sized(&cluster, 4, BULKHEAD)));
    let known = Known::to(&pool);
    let ((), tally) = under_load(
        THREADS,
        || read(&pool),
        |tally| {
            tally.wait_for_more_by("n1", 100);
            tally.wait_for_more_by("n2", 100);
            cluster.freeze(1);
            let out = known.wait("n1", "down");
            println!(
                "out of rotation after {out:?}, {:?} and 1 s are promised",
                TICK
            );
            let answered = tally.by("n1");
            tally.wait_for_more(1_000);
            let blocked = known.node("n1").in_flight;
            assert!(blocked <= BULKHEAD, "{blocked} are blocked");
            assert_eq!(tally.by("n1"), answered, "it answers nothing");
            cluster.thaw(1);
            tally.wait_for_more_by("n1", 100);
        },
    );
    assert_eq!(tally.failures(), [""; 0], "the blocked ones go on");
}

#[test]
fn with_every_connection_to_it_in_use_the_others_still_serve() {
    let cluster = cluster(2);
    let config = watched(sized(&cluster, 2, 1)).strategy(diesel_routed::Strategy::Failover);
    let pool = pool_of(4, config);
    let known = Known::to(&pool);
    pool.get().unwrap().distributed(|conn| {
        assert_eq!(who(conn), "n1", "its only connection");
        cluster.freeze(1);
        let frozen = Instant::now();
        while known.state("n1") != "down" {
            assert_eq!(read(&pool).as_deref(), Ok("n2"));
            assert!(frozen.elapsed() < SOON, "it leaves rotation");
        }
        for _ in 0..100 {
            assert_eq!(read(&pool).as_deref(), Ok("n2"));
        }
        cluster.thaw(1);
        assert_ne!(who(conn), "n2", "it might be older than what was read");
    });
    known.wait("n1", "up");
}

#[test]
fn a_frozen_one_blocks_nobody_who_comes_when_it_is_known() {
    let cluster = cluster(1);
    let pool = pool_of(4, watched(sized(&cluster, 4, BULKHEAD)));
    let known = Known::to(&pool);
    known.wait("n1", "up");
    cluster.freeze(1);
    known.wait("n1", "down");
    std::thread::scope(|scope| {
        let reads =
            scope.spawn(|| (0..50).for_each(|_| assert_eq!(read(&pool).as_deref(), Ok("n0"))));
        assert!(
            holds_within(SOON, || reads.is_finished()),
            "nobody waits for it"
        );
    });
    assert_eq!(known.node("n1").in_flight, 0);
    cluster.thaw(1);
    known.wait("n1", "up");
    drop(pool);
}

#[test]
fn a_frozen_primary_is_down_while_blocks_read_on() {
    let cluster = cluster(1);
    let config = watched(sized(&cluster, 2, 2)).checkout_timeout(std::time::Duration::from_secs(1));
    let pool = pool_of(2, config);
    let known = Known::to(&pool);
    known.wait("n0", "up");
    known.wait("n1", "up");
    cluster.freeze(0);
    let out = known.wait("n0", "down");
    println!("known after {out:?}");
    for _ in 0..100 {
        assert_eq!(read(&pool).as_deref(), Ok("n1"));
    }
    cluster.thaw(0);
    known.wait("n0", "up");
    write(&mut pool.get().unwrap(), "it takes notes again");
}

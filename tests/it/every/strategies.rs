//! Which replica serves a block, as the strategy and the weights say.

use std::collections::BTreeMap;
use std::sync::Arc;

use diesel_routed::{Candidate, ClusterConfig, NodeConfig, NodeState, Reason, Strategy};

use super::backend::*;
use super::pools::*;

/// Two replicas with these weights.
fn weighted(db: &Db, weights: [u32; 2]) -> ClusterConfig {
    let node = |place: usize| NodeConfig::new(db.cluster.url(place)).name(&format!("n{place}"));
    ClusterConfig::new(node(0))
        .replica(node(1).weight(weights[0]))
        .replica(node(2).weight(weights[1]))
}

/// How many of so many blocks each node has served.
fn shares(pool: &Pool, blocks: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..blocks {
        let name = pool.get().unwrap().distributed(who);
        *shares.entry(name).or_default() += 1;
    }
    shares
}

fn exactly<const N: usize>(shares: [(&str, usize); N]) -> BTreeMap<String, usize> {
    shares
        .map(|(name, blocks)| (name.to_owned(), blocks))
        .into()
}

#[test]
fn every_strategy_gives_the_shares_it_promises() {
    let db = db(2);
    let last = |candidates: &[Candidate<'_>]| candidates.len().checked_sub(1);
    let custom = Strategy::Custom(Arc::new(last));
    for (strategy, weights, expected) in [
        (
            Strategy::RoundRobin,
            [1, 1],
            exactly([("n1", 15), ("n2", 15)]),
        ),
        (
            Strategy::RoundRobin,
            [2, 1],
            exactly([("n1", 20), ("n2", 10)]),
        ),
        (Strategy::Failover, [1, 5], exactly([("n1", 30)])),
        (custom, [1, 1], exactly([("n2", 30)])),
        (Strategy::RoundRobin, [1, 0], exactly([("n1", 30)])),
        (Strategy::Failover, [0, 1], exactly([("n2", 30)])),
        (Strategy::TwoChoices, [0, 1], exactly([("n2", 30)])),
        (Strategy::Random, [1, 0], exactly([("n1", 30)])),
    ] {
        let pool = pool_of(1, weighted(&db, weights).strategy(strategy.clone()));
        assert_eq!(shares(&pool, 30), expected, "{strategy:?} with {weights:?}");
    }
}

#[test]
fn chance_keeps_to_the_weights() {
    let db = db(2);
    // 400 draws at 3:1 are within 240..360 but for one run in more than a million
    for (strategy, weights, bounds) in [
        (Strategy::WeightedRandom, [3, 1], 240..360),
        (Strategy::Random, [3, 1], 140..260),
        (Strategy::TwoChoices, [1, 1], 100..300),
    ] {
        let pool = pool_of(1, weighted(&db, weights).strategy(strategy.clone()));
        let shares = shares(&pool, 400);
        assert!(bounds.contains(&shares["n1"]), "{strategy:?}: {shares:?}");
        assert_eq!(shares["n1"] + shares["n2"], 400, "and nobody else serves");
    }
}

#[test]
fn two_choices_evade_the_busier_replica() {
    let db = db(2);
    let config = weighted(&db, [1, 1]).strategy(Strategy::TwoChoices);
    let pool = pool_of(2, config);
    pool.get().unwrap().distributed(|conn| {
        let busy = who(conn);
        let shares = shares(&pool, 40);
        // both draws fall on the busy one in a quarter of the cases at most
        let on_busy = shares.get(&busy).copied().unwrap_or_default();
        assert!(on_busy <= 20, "{busy} is in use: {shares:?}");
    });
}

#[test]
fn a_drained_replica_is_not_asked_even_if_all_others_are_gone() {
    let db = db(2);
    db.cluster.kill(1);
    let pool = pool_of(1, weighted(&db, [1, 0]));
    assert_eq!(shares(&pool, 10), exactly([("n0", 10)]));
    let status = pool.get().unwrap().cluster().status();
    assert_eq!(status.nodes[2].state, NodeState::Drained);
    assert_eq!((status.nodes[2].open, status.nodes[2].reads), (0, 0));
}

#[test]
fn a_choice_of_no_replica_goes_where_the_fallback_says() {
    let db = db(2);
    for (what, choice) in [("none", None), ("out of range", Some(7))] {
        let strategy = Strategy::Custom(Arc::new(move |_: &[Candidate<'_>]| choice));
        let pool = pool_of(1, weighted(&db, [1, 1]).strategy(strategy));
        let mut conn = pool.get().unwrap();
        let (name, time) = timed(|| conn.distributed(who));
        assert_eq!(name, "n0", "{what}");
        assert_eq!(
            conn.last_route().unwrap().reason,
            Reason::NoReplica,
            "{what}"
        );
        assert!(
            time.as_secs() < 3,
            "{what}: a choice is not waited out, {time:?}"
        );
    }
}

#[test]
fn a_strategy_that_panics_loses_no_connection() {
    let db = db(1);
    let strategy = Strategy::Custom(Arc::new(|_: &[Candidate<'_>]| panic_now()));
    let pool = pool_of(1, sized(&db.cluster, 1, 1).strategy(strategy));
    for _ in 0..3 {
        panics(|| pool.get().unwrap().distributed(who));
    }
    assert_eq!(in_flight(&pool), [0, 0]);
    assert_eq!(who(&mut pool.get().unwrap()), "n0");
}

#[test]
fn failover_passes_over_full_replicas_in_the_order_of_the_configuration() {
    let db = db(3);
    let config = sized(&db.cluster, 1, 1).strategy(Strategy::Failover);
    let pool = pool_of(4, config);
    let mut handles: Vec<_> = (0..3).map(|_| pool.get().unwrap()).collect();
    let [first, second, third] = &mut handles[..] else {
        unreachable!("there are three");
    };
    first.distributed(|first| {
        assert_eq!(who(first), "n1");
        second.distributed(|second| {
            assert_eq!(who(second), "n2");
            assert_eq!(third.distributed(who), "n3");
        });
    });
}

mod least_loaded;
mod shares;
mod weight;

use proptest::prelude::{
    Strategy as Values, prop, prop_assert, prop_assert_eq, prop_assert_ne, prop_oneof, proptest,
};

use super::dice::Dice;
use super::failover::Failover;
use super::least_loaded::LeastLoaded;
use super::random::Random;
use super::round_robin::RoundRobin;
use super::two_choices::TwoChoices;
use super::weighted_random::WeightedRandom;
use super::*;

const DRAWS: usize = 10_000;

/// A strategy, the weights of its candidates and the percentages they should get.
type Case<'a> = (&'a str, &'a dyn Select, &'a [u32], &'a [usize]);

/// Idle candidates of these weights, named a, b, c and so on.
fn idle(weights: &[u32]) -> Vec<Candidate<'static>> {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    names
        .into_iter()
        .zip(weights)
        .map(|(name, weight)| Candidate::new(name, *weight, 0))
        .collect()
}

fn sequence(select: &dyn Select, candidates: &[Candidate<'_>], length: usize) -> String {
    let names: Vec<_> = (0..length)
        .map(|_| {
            select
                .select(candidates)
                .map_or("-", |i| candidates[i].name)
        })
        .collect();
    names.join(" ")
}

/// How often each candidate is chosen in `DRAWS` calls.
fn shares(select: &dyn Select, candidates: &[Candidate<'_>]) -> Vec<usize> {
    let mut shares = vec![0; candidates.len()];
    for _ in 0..DRAWS {
        shares[select
            .select(candidates)
            .expect("some candidate has a weight")] += 1;
    }
    shares
}

fn every_strategy(seed: u64) -> Vec<(&'static str, Box<dyn Select>)> {
    vec![
        (
            "two choices",
            Box::new(TwoChoices::new(Dice::from_seed(seed))),
        ),
        (
            "least loaded",
            Box::new(LeastLoaded::new(Dice::from_seed(seed))),
        ),
        ("round robin", Box::new(RoundRobin::default())),
        ("random", Box::new(Random::new(Dice::from_seed(seed)))),
        (
            "weighted random",
            Box::new(WeightedRandom::new(Dice::from_seed(seed))),
        ),
        ("failover", Box::new(Failover)),
    ]
}

#[test]
fn round_robin_spreads_turns_evenly() {
    for (weights, expected) in [
        (&[5, 1, 1][..], "a a b a c a a"),
        (&[1, 1, 1], "a b c a b c"),
        (&[2, 1], "a b a a b a"),
        (&[3, 0, 1], "a a c a"),
        (&[1], "a a a"),
    ] {
        let turns = expected.split(' ').count();
        let round_robin = RoundRobin::default();
        for round in 1..=3 {
            let seen = sequence(&round_robin, &idle(weights), turns);
            assert_eq!(seen, expected, "weights {weights:?}, round {round}");
        }
    }
}

#[test]
fn round_robin_keeps_turns_while_nodes_leave_and_come() {
    let round_robin = RoundRobin::default();
    let all = idle(&[1, 1, 1]);
    assert_eq!(sequence(&round_robin, &all, 1), "a");
    let without_b = [all[0], all[2]];
    assert_eq!(
        sequence(&round_robin, &without_b, 1),
        "c",
        "a had its turn just before"
    );
    assert_eq!(
        sequence(&round_robin, &all, 1),
        "b",
        "b returns with the turn it had saved"
    );
    let reordered = [all[1], all[2], all[0]];
    let turns = sequence(&round_robin, &reordered, 3);
    assert!(
        turns.ends_with('b'),
        "b had its turn just before, a place in the list is no identity: {turns}"
    );
}

#[test]
fn round_robin_pays_no_burst_when_weights_fall() {
    let round_robin = RoundRobin::default();
    assert_eq!(sequence(&round_robin, &idle(&[4_000, 4_000]), 1), "a");
    assert_eq!(
        sequence(&round_robin, &idle(&[5, 5]), 4),
        "b a b a",
        "b is owed one turn, not the 800 that its old weight would buy"
    );
}

#[test]
fn round_robin_forgets_names_that_never_return() {
    let round_robin = RoundRobin::default();
    for i in 0..1_000 {
        let name = format!("node-{i}");
        round_robin.select(&[Candidate::new(&name, 1, 0), Candidate::new("stays", 1, 0)]);
    }
    let shares = shares(
        &round_robin,
        &[Candidate::new("stays", 1, 0), Candidate::new("new", 1, 0)],
    );
    assert!(
        shares[0].abs_diff(shares[1]) <= 2,
        "{shares:?} should be halves"
    );
    assert!(
        round_robin.remembered() <= 66,
        "memory must not grow with every name"
    );
}

#[test]
fn random_strategies_give_each_node_its_share() {
    for seed in [1, 2, 3] {
        let random = Random::new(Dice::from_seed(seed));
        let weighted = WeightedRandom::new(Dice::from_seed(seed));
        let two_choices = TwoChoices::new(Dice::from_seed(seed));
        let least_loaded = LeastLoaded::new(Dice::from_seed(seed));
        let cases: [Case<'_>; 9] = [
            ("random", &random, &[1, 1, 1, 1], &[25, 25, 25, 25]),
            ("random", &random, &[9, 0, 1], &[50, 0, 50]),
            ("weighted random", &weighted, &[3, 1], &[75, 25]),
            (
                "weighted random",
                &weighted,
                &[5, 0, 3, 2],
                &[50, 0, 30, 20],
            ),
            (
                "two choices",
                &two_choices,
                &[1, 1, 0, 1, 1],
                &[25, 25, 0, 25, 25],
            ),
            ("two choices", &two_choices, &[3, 1], &[75, 25]),
            ("two choices", &two_choices, &[5, 0, 3, 2], &[50, 0, 30, 20]),
            (
                "least loaded",
                &least_loaded,
                &[1, 1, 1, 1],
                &[25, 25, 25, 25],
            ),
            ("least loaded", &least_loaded, &[3, 1], &[75, 25]),
        ];
        for (name, select, weights, percent) in cases {
            let seen = shares(select, &idle(weights));
            for (seen, percent) in seen.iter().zip(percent) {
                let expected = percent * DRAWS / 100;
                let off = seen.abs_diff(expected);
                assert!(
                    off <= DRAWS / 50,
                    "{name} {weights:?}: {seen}, not about {expected}"
                );
                assert!(
                    *percent > 0 || *seen == 0,
                    "{name} {weights:?}: weight 0 was chosen"
                );
            }
        }
    }
}

#[test]
fn two_choices_take_the_less_busy_per_weight() {
    let two_choices = TwoChoices::new(Dice::from_seed(7));
    for (busy, free) in [
        (Candidate::new("a", 1, 3), Candidate::new("b", 1, 2)),
        (Candidate::new("a", 1, 2), Candidate::new("b", 4, 4)),
        (
            Candidate::new("a", 1, u32::MAX),
            Candidate::new("b", u32::MAX, u32::MAX),
        ),
    ] {
        for _ in 0..100 {
            let chosen = two_choices.select(&[busy, free]);
            assert_eq!(chosen, Some(1), "{free:?} has more room than {busy:?}");
        }
    }
}

#[test]
fn two_choices_never_take_the_busiest_of_all() {
    let candidates = [
        Candidate::new("a", 1, 1),
        Candidate::new("b", 1, 9),
        Candidate::new("c", 1, 1),
    ];
    let shares = shares(&TwoChoices::new(Dice::from_seed(7)), &candidates);
    assert_eq!(shares[1], 0, "whatever it is compared with has more room");
}

#[test]
fn failover_returns_to_the_first_that_recovers() {
    let all = idle(&[1, 1, 1]);
    for (candidates, expected) in [
        (&all[..], "a"),
        (&all[1..], "b"),
        (&all[2..], "c"),
        (&all, "a"),
    ] {
        assert_eq!(sequence(&Failover, candidates, 1), expected);
    }
    assert_eq!(
        sequence(&Failover, &idle(&[0, 1]), 1),
        "b",
        "a drained node is passed over"
    );
}

#[test]
fn without_a_weighted_candidate_nothing_is_chosen() {
    for (name, select) in every_strategy(1) {
        for weights in [&[][..], &[0], &[0, 0, 0]] {
            assert_eq!(
                select.select(&idle(weights)),
                None,
                "{name} with weights {weights:?}"
            );
        }
    }
}

#[test]
fn every_strategy_makes_a_selector_and_custom_makes_the_given_one() {
    let last = |candidates: &[Candidate<'_>]| candidates.len().checked_sub(1);
    for (strategy, name, expected) in [
        (Strategy::default(), "TwoChoices", None),
        (Strategy::LeastLoaded, "LeastLoaded", None),
        (Strategy::RoundRobin, "RoundRobin", Some("a b c")),
        (Strategy::Random, "Random", None),
        (Strategy::WeightedRandom, "WeightedRandom", None),
        (Strategy::Failover, "Failover", Some("a a a")),
        (Strategy::Custom(Arc::new(last)), "Custom", Some("c c c")),
    ] {
        assert_eq!(format!("{strategy:?}"), name);
        let seen = sequence(&*strategy.selector(), &idle(&[1, 1, 1]), 3);
        assert!(
            !seen.contains('-'),
            "{name} should choose each time: {seen}"
        );
        assert!(
            expected.is_none_or(|expected| seen == expected),
            "{name} chose {seen}"
        );
    }
}

/// Small ones, and those at which something could overflow.
fn any_number() -> impl Values<Value = u32> {
    prop_oneof![4 => 0..5u32, 1 => u32::MAX - 2..=u32::MAX, 1 => proptest::num::u32::ANY]
}

proptest! {
    #[test]
    fn the_chosen_index_is_in_range_and_has_a_weight(
        seed: u64,
        calls in prop::collection::vec(
            prop::collection::vec((0..8usize, any_number(), any_number(), any_number()), 0..8),
            1..20),
    ) {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for (name, select) in every_strategy(seed) {
            for call in &calls {
                let candidates: Vec<_> = call
                    .iter()
                    .map(|(i, weight, busy, load)| {
                        Candidate::new(NAMES[*i], *weight, *busy).with_load(load.checked_sub(1))
                    })
                    .collect();
                let some = candidates.iter().any(|candidate| candidate.weight > 0);
                let chosen = select.select(&candidates);
                prop_assert_eq!(chosen.is_some(), some, "{}", name);
                if let Some(i) = chosen {
                    prop_assert!(candidates[i].weight > 0, "{} chose weight 0", name);
                }
            }
        }
    }

    #[test]
    fn the_two_that_are_compared_differ(
        seed: u64,
        weights in prop::collection::vec(1..1_000u32, 2..8),
    ) {
        let two_choices = TwoChoices::new(Dice::from_seed(seed));
        let (first, second) = two_choices.draw(&idle(&weights)).expect("all have a weight");
        prop_assert_ne!(first, second);
    }

    #[test]
    fn round_robin_gives_exact_shares_over_one_round(
        weights in prop::collection::vec(0..20u32, 1..8),
    ) {
        let round: u32 = weights.iter().sum();
        let round_robin = RoundRobin::default();
        let candidates = idle(&weights);
        let mut seen = vec![0; weights.len()];
        for _ in 0..round {
            seen[round_robin.select(&candidates).expect("the sum is not 0")] += 1;
        }
        prop_assert_eq!(seen, weights);
    }

    #[test]
    fn round_robin_owes_nobody_more_than_some_turns(
        calls in prop::collection::vec(
            prop::collection::btree_map(0..6usize, 1..=u32::MAX, 1..6), 1..500),
    ) {
        const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
        let round_robin = RoundRobin::default();
        for call in &calls {
            let candidates: Vec<_> = call
                .iter()
                .map(|(i, weight)| Candidate::new(NAMES[*i], *weight, 0))
                .collect();
            round_robin.select(&candidates);
        }
        prop_assert!(round_robin.largest_debt() < 6.0, "{}", round_robin.largest_debt());
    }
}

use std::collections::BTreeSet;

use super::*;

/// Those that are ever chosen in many calls.
fn chosen(candidates: &[Candidate<'_>]) -> String {
    let least_loaded = LeastLoaded::new(Dice::from_seed(7));
    let chosen: BTreeSet<_> = (0..200)
        .map(|_| candidates[least_loaded.select(candidates).unwrap()].name)
        .collect();
    chosen.into_iter().collect::<Vec<_>>().join(" ")
}

/// Candidates a, b, c ..: weight, own in-flight, load of the server.
fn candidates(of: &[(u32, u32, Option<u32>)]) -> Vec<Candidate<'static>> {
    let names = ["a", "b", "c", "d"];
    let all = names.into_iter().zip(of);
    all.map(|(name, (weight, in_flight, load))| {
        Candidate::new(name, *weight, *in_flight).with_load(*load)
    })
    .collect()
}

#[test]
fn the_least_load_per_weight_is_chosen_and_equals_take_turns_at_random() {
    const MAX: u32 = u32::MAX;
    for (of, expected, why) in [
        (&[(1, 0, Some(3)), (1, 0, Some(2))][..], "b", "2 < 3"),
        (
            &[(1, 0, Some(2)), (1, 0, Some(2)), (1, 0, Some(3))],
            "a b",
            "2 = 2 < 3",
        ),
        (
            &[(1, 2, Some(2)), (1, 0, Some(3))],
            "b",
            "what this process has in flight is load, too",
        ),
        (
            &[(4, 0, Some(6)), (1, 0, Some(2))],
            "a",
            "6 of 4 is less than 2 of 1",
        ),
        (
            &[(1000, 0, Some(0)), (999, 0, Some(0))],
            "a b",
            "a thousandth decides nothing between idle servers",
        ),
        (
            &[(1000, 0, Some(7)), (999, 0, Some(7))],
            "a b",
            "nor between busy ones",
        ),
        (
            &[(0, 0, Some(0)), (1, 0, Some(9))],
            "b",
            "weight 0 gets nothing, however idle",
        ),
        (
            &[(MAX, MAX, Some(MAX)), (1, MAX, Some(MAX))],
            "a",
            "the largest numbers overflow nothing",
        ),
        (
            &[(MAX, MAX, None), (MAX, MAX, Some(MAX))],
            "a b",
            "nor does a mean of them",
        ),
    ] {
        assert_eq!(chosen(&candidates(of)), expected, "{why}: {of:?}");
    }
}

#[test]
fn a_server_whose_load_is_unknown_counts_as_the_others_on_average() {
    for (of, expected, why) in [
        (
            &[(1, 0, None), (1, 0, None)][..],
            "a b",
            "nothing is known of either",
        ),
        (
            &[(1, 0, None), (1, 1, None)],
            "a",
            "then what this process has in flight decides",
        ),
        (
            &[(1, 0, None), (1, 0, Some(50))],
            "a b",
            "unknown is not idle, else a would get all",
        ),
        (
            &[(1, 1, None), (1, 0, Some(50))],
            "b",
            "and not overloaded, else b would always get all",
        ),
        (
            &[(1, 0, None), (1, 0, Some(2)), (1, 0, Some(6))],
            "b",
            "the mean is 4",
        ),
        (
            &[(1, 0, None), (10, 0, Some(50)), (10, 0, Some(50))],
            "a b c",
            "the mean is per weight: 5 for a",
        ),
        (
            &[(1, 0, None), (1, 0, Some(5)), (0, 0, Some(500))],
            "a b",
            "a drained server says nothing of the others",
        ),
    ] {
        assert_eq!(chosen(&candidates(of)), expected, "{why}: {of:?}");
    }
}

#[test]
fn equals_are_chosen_equally_often() {
    let tied = candidates(&[
        (1, 0, Some(5)),
        (1, 3, Some(2)),
        (1, 0, None),
        (1, 0, Some(9)),
    ]);
    // the mean of 5, 2 and 9 is 5
    let shares = shares(&LeastLoaded::new(Dice::from_seed(3)), &tied);
    for share in &shares[..3] {
        assert!(share.abs_diff(DRAWS / 3) < DRAWS / 50, "{shares:?}");
    }
    assert_eq!(shares[3], 0, "9 is more than 5");
}

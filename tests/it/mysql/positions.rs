//! Positions are read and compared as the server does.

use diesel_routed::{Coverage, Position};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::Cluster;

/// A set of a few servers' transactions, with gaps, out of order, some of them twice.
fn gtids(dice: &mut StdRng) -> String {
    let servers = dice.random_range(1..=3);
    let part = |dice: &mut StdRng| {
        let uuid = format!(
            "3e11fa47-71ca-11e1-9e33-c80aa942956{}",
            dice.random_range(0..3)
        );
        let intervals: Vec<_> = (0..dice.random_range(1..=3))
            .map(|_| {
                let (start, length) = (dice.random_range(1..8), dice.random_range(0..6));
                format!("{start}-{}", start + length)
            })
            .collect();
        format!("{uuid}:{}", intervals.join(":"))
    };
    let parts: Vec<_> = (0..servers).map(|_| part(dice)).collect();
    parts.join(",")
}

fn position(text: &str) -> Position {
    format!("mysql:{text}").parse().expect("a position")
}

#[test]
fn a_set_covers_another_where_gtid_subset_says_so() {
    let cluster = Cluster::mysql(0);
    let seed = rand::random();
    let mut dice = StdRng::seed_from_u64(seed);
    let pairs: Vec<_> = (0..400)
        .map(|_| (gtids(&mut dice), gtids(&mut dice)))
        .collect();
    let asks: Vec<_> = pairs
        .iter()
        .map(|(one, other)| format!("GTID_SUBSET('{other}', '{one}')"))
        .collect();
    let told = cluster.sql(0, &format!("SELECT CONCAT_WS(',', {})", asks.join(", ")));
    let told: Vec<_> = told.trim().split(',').collect();
    assert_eq!(told.len(), pairs.len());
    for ((one, other), told) in pairs.iter().zip(&told) {
        let covers = position(one).covers(&position(other)) == Coverage::Yes;
        assert_eq!(covers, *told == "1", "seed {seed}: {one} and {other}");
    }
    assert!(told.contains(&"1") && told.contains(&"0"), "both were met");
    for (one, _) in &pairs[..20] {
        let normal = cluster.sql(0, &format!("SELECT GTID_SUBTRACT('{one}', '')"));
        let normal = normal.replace("\\n", "");
        assert_eq!(position(&normal), position(one), "seed {seed}");
    }
}

//! Positions are compared as the server compares them.

use diesel_routed::{Coverage, Position};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::Cluster;

fn lsn(dice: &mut StdRng) -> String {
    // few high halves, so that the low ones decide as often
    let (high, low) = (dice.random_range(0..3u32), dice.random_range(0..40u32));
    let low = low * dice.random_range(1..=u32::MAX / 40);
    format!("{high:X}/{low:X}")
}

#[test]
fn an_lsn_covers_another_where_pg_wal_lsn_diff_is_not_negative() {
    let cluster = Cluster::postgres(0);
    let seed = rand::random();
    let mut dice = StdRng::seed_from_u64(seed);
    let mut pairs: Vec<_> = (0..2_000)
        .map(|_| (lsn(&mut dice), lsn(&mut dice)))
        .collect();
    let same: Vec<_> = pairs.iter().take(50).map(|(one, _)| one.clone()).collect();
    pairs.extend(same.into_iter().map(|one| (one.clone(), one)));
    let rows: Vec<_> = (0..)
        .zip(&pairs)
        .map(|(n, (one, other)): (usize, _)| format!("({n}, '{one}'::pg_lsn, '{other}'::pg_lsn)"))
        .collect();
    let told = cluster.sql(
        0,
        &format!(
            "SELECT (pg_wal_lsn_diff(one, other) >= 0)::int FROM (VALUES {}) AS p (n, one, other) ORDER BY n",
            rows.join(", ")
        ),
    );
    let told: Vec<_> = told.lines().collect();
    assert_eq!(told.len(), pairs.len());
    for ((one, other), told) in pairs.iter().zip(told) {
        let position = |lsn: &str| format!("postgres:7301234567890123456:1:{lsn}");
        let of = |lsn: &str| position(lsn).parse::<Position>().expect("a position");
        let covers = of(one).covers(&of(other)) == Coverage::Yes;
        assert_eq!(covers, told == "1", "seed {seed}: {one} and {other}");
    }
}

//! Positions are compared as the server compares them.

use diesel_routed::{Coverage, Position};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::Cluster;

/// A position in some of the domains 7, 8 and 9, which the server itself does not write to.
fn gtids(dice: &mut StdRng) -> String {
    let mut domains: Vec<_> = (7..10).filter(|_| dice.random_bool(0.6)).collect();
    if domains.is_empty() {
        domains.push(7);
    }
    let of = |domain| format!("{domain}-1-{}", dice.random_range(1..6));
    let all: Vec<_> = domains.into_iter().map(of).collect();
    all.join(",")
}

fn position(text: &str) -> Position {
    format!("mariadb:{text}").parse().expect("a position")
}

#[test]
fn a_position_covers_another_where_a_replica_there_need_not_wait_for_it() {
    let cluster = Cluster::mariadb(0);
    let seed = rand::random();
    let mut dice = StdRng::seed_from_u64(seed);
    let mut met = [0; 2];
    for _ in 0..20 {
        let one = gtids(&mut dice);
        let others: Vec<_> = (0..30).map(|_| gtids(&mut dice)).collect();
        let asks: Vec<_> = others
            .iter()
            .map(|other| format!("MASTER_GTID_WAIT('{other}', 0) = 0"))
            .collect();
        cluster.sql(0, &format!("SET GLOBAL gtid_slave_pos = '{one}'"));
        let told = cluster.sql(0, &format!("SELECT CONCAT_WS(',', {})", asks.join(", ")));
        let told: Vec<_> = told.trim().split(',').collect();
        assert_eq!(told.len(), others.len());
        for (other, told) in others.iter().zip(told) {
            let covers = position(&one).covers(&position(other)) == Coverage::Yes;
            assert_eq!(covers, told == "1", "seed {seed}: {one} and {other}");
            met[usize::from(covers)] += 1;
        }
    }
    assert!(met.iter().all(|times| *times > 0), "both were met: {met:?}");
}

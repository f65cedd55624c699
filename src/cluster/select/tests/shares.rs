//! What becomes of the shares while reads are in flight, by simulation.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;

/// How many reads each replica serves while always so many are in flight, which all take equally
/// long on average.
fn served(select: &dyn Select, weights: &[u32], concurrent: usize) -> Vec<usize> {
    let mut rng = StdRng::seed_from_u64(11);
    let mut running: Vec<usize> = vec![];
    let mut candidates = idle(weights);
    let mut served = vec![0; weights.len()];
    for _ in 0..DRAWS {
        if running.len() == concurrent {
            let done = running.swap_remove(rng.random_range(0..concurrent));
            candidates[done].in_flight -= 1;
        }
        let chosen = select.select(&candidates).expect("all have a weight");
        candidates[chosen].in_flight += 1;
        running.push(chosen);
        served[chosen] += 1;
    }
    served
}

#[test]
fn what_goes_by_weight_keeps_its_shares_at_any_load() {
    for weights in [
        &[1, 1][..],
        &[3, 1],
        &[1_000, 990],
        &[5, 3, 2],
        &[1_000, 100],
    ] {
        // with a few in flight the shares are as coarse as these few reads
        for (concurrent, tolerance) in [(1, 2), (2, 11), (5, 5), (20, 2), (100, 2)] {
            for (name, select) in [
                ("two choices", every_strategy(5).swap_remove(0).1),
                ("least loaded", every_strategy(5).swap_remove(1).1),
            ] {
                let total: u32 = weights.iter().sum();
                let seen = served(&*select, weights, concurrent);
                for (weight, served) in weights.iter().zip(&seen) {
                    let expected = DRAWS * *weight as usize / total as usize;
                    let off = served.abs_diff(expected) * 100 / DRAWS;
                    assert!(
                        off <= tolerance,
                        "{name} with {weights:?} and {concurrent} in flight: {seen:?}"
                    );
                }
            }
        }
    }
}

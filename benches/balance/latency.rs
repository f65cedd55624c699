//! Two choices by latency: what a read took lately, times what is under way, per weight.
//!
//! An exponentially weighted moving average that forgets by time.

use std::sync::{Arc, Mutex, PoisonError};

use diesel_routed::{Candidate, Select};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Seconds, after which a third of an old figure is left. From 0.2 to 5 there is little difference;
/// averages that jump up at once are worse where some reads are long ones.
const MEMORY: f64 = 1.0;

/// What reads took lately, by node, in seconds.
#[derive(Default)]
pub struct Averages {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    now: f64,
    nodes: Vec<(String, Average)>,
}

#[derive(Clone, Copy, Default)]
struct Average {
    took: f64,
    at: f64,
}

impl Averages {
    /// Sets the clock.
    pub fn set_clock(&self, now: f64) {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .now = now;
    }

    /// Takes in how long a read took.
    pub fn learn(&self, node: &str, took: f64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = known.now;
        let Some((_, average)) = known.nodes.iter_mut().find(|(name, _)| name == node) else {
            known
                .nodes
                .push((node.to_owned(), Average { took, at: now }));
            return;
        };
        let old = ((average.at - now) / MEMORY).exp();
        average.took = average.took * old + took * (1.0 - old);
        average.at = now;
    }

    /// What a read takes there, by what is known; less and less as nothing is heard.
    fn expected(&self, node: &str) -> f64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let average = known.nodes.iter().find(|(name, _)| name == node);
        let average = average.map_or(Average::default(), |(_, average)| *average);
        average.took * ((average.at - known.now) / MEMORY).exp()
    }
}

pub struct ByLatency {
    averages: Arc<Averages>,
    dice: Mutex<StdRng>,
}

impl ByLatency {
    pub fn new(averages: Arc<Averages>, seed: u64) -> Self {
        let dice = Mutex::new(StdRng::seed_from_u64(seed));
        ByLatency { averages, dice }
    }

    /// One by weight, other than `except`.
    fn draw(&self, candidates: &[Candidate<'_>], except: Option<usize>) -> Option<usize> {
        let weight = |i: usize| match Some(i) == except {
            true => 0,
            false => candidates[i].weight,
        };
        let total: u32 = (0..candidates.len()).map(weight).sum();
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = (total > 0).then(|| dice.random_range(0..total))?;
        (0..candidates.len()).find(|i| match left.checked_sub(weight(*i)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
    }
}

impl Select for ByLatency {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let first = self.draw(candidates, None)?;
        let Some(second) = self.draw(candidates, Some(first)) else {
            return Some(first);
        };
        let cost = |i: usize| {
            let candidate = &candidates[i];
            let reads = f64::from(candidate.in_flight + 1) / f64::from(candidate.weight);
            self.averages.expected(candidate.name) * reads
        };
        Some(if cost(second) < cost(first) {
            second
        } else {
            first
        })
    }
}

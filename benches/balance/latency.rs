//! Two ways to go by how long reads took lately, which is an exponentially weighted moving average
//! that forgets by time: what a cluster makes of the weights under the default strategy, and one that
//! the crate has not.

use std::sync::{Arc, Mutex, PoisonError};

use diesel_routed::{Candidate, Select, Strategy};
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
    count: f64,
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
            let first = Average {
                took,
                at: now,
                count: 1.0,
            };
            known.nodes.push((node.to_owned(), first));
            return;
        };
        average.count += 1.0;
        let forgotten = 1.0 - ((average.at - now) / MEMORY).exp();
        let share = forgotten.max(1.0 / average.count);
        average.took = average.took * (1.0 - share) + took * share;
        average.at = now;
    }

    /// What a read took there, if one ever did.
    fn took(&self, node: &str) -> Option<f64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let average = known.nodes.iter().find(|(name, _)| name == node);
        average.map(|(_, average)| average.took)
    }

    /// What a read takes there, by what is known; less and less as nothing is heard.
    fn expected(&self, node: &str) -> f64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let average = known.nodes.iter().find(|(name, _)| name == node);
        let average = average.map_or(Average::default(), |(_, average)| *average);
        average.took * ((average.at - known.now) / MEMORY).exp()
    }
}

/// Two choices, of which the one wins where a read takes less, times what is under way, per weight.
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

/// The default strategy as a cluster uses it: with less weight where reads take longer than where they
/// take least.
pub struct LessIfSlow {
    averages: Arc<Averages>,
    two_choices: Arc<dyn Select>,
}

/// By how much replicas may differ before one counts as slow, and what the slowest keeps.
const TOLERANCE: f64 = 1.5;
const LEAST_SHARE: f64 = 0.1;

impl LessIfSlow {
    pub fn new(averages: Arc<Averages>, seed: u64) -> Self {
        let two_choices = Strategy::TwoChoices.selector_from_seed(seed);
        LessIfSlow {
            averages,
            two_choices,
        }
    }
}

impl Select for LessIfSlow {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let took = |candidate: &Candidate<'_>| self.averages.took(candidate.name);
        let least = candidates
            .iter()
            .filter_map(took)
            .fold(f64::INFINITY, f64::min);
        let share = |candidate: &Candidate<'_>| match took(candidate) {
            Some(took) => (TOLERANCE * least / took).clamp(LEAST_SHARE, 1.0),
            None => 1.0,
        };
        let mut weighed = candidates.to_vec();
        for candidate in &mut weighed {
            candidate.weight = (f64::from(candidate.weight) * share(candidate)).ceil() as u32;
        }
        self.two_choices.select(&weighed)
    }
}

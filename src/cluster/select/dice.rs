//! The randomness of the strategies.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Candidate;

/// Draws numbers: from the thread's generator, in tests and simulations from a seed.
pub(super) struct Dice(Source);

enum Source {
    Thread,
    /// Protects the generator alone, for the length of one draw.
    Seeded(Box<Mutex<StdRng>>),
}

impl Dice {
    pub(super) fn thread() -> Self {
        Dice(Source::Thread)
    }

    pub(super) fn from_seed(seed: u64) -> Self {
        let generator = StdRng::seed_from_u64(seed);
        Dice(Source::Seeded(Box::new(Mutex::new(generator))))
    }

    /// A number below `bound`, which must not be 0.
    fn below(&self, bound: u64) -> u64 {
        match &self.0 {
            Source::Thread => rand::rng().random_range(0..bound),
            Source::Seeded(generator) => generator.lock().random_range(0..bound),
        }
    }

    /// An index, each with the probability of its share of `weights`; `None` if all are 0.
    pub(super) fn weighted<I>(&self, weights: I) -> Option<usize>
    where
        I: Iterator<Item = u32> + Clone,
    {
        let total: u64 = weights.clone().map(u64::from).sum();
        if total == 0 {
            return None;
        }
        let mut left = self.below(total);
        for (i, weight) in weights.enumerate() {
            match left.checked_sub(u64::from(weight)) {
                Some(rest) => left = rest,
                None => return Some(i),
            }
        }
        None
    }
}

pub(super) fn weights<'a>(
    candidates: &'a [Candidate<'_>],
) -> impl Iterator<Item = u32> + Clone + 'a {
    candidates.iter().map(|candidate| candidate.weight)
}

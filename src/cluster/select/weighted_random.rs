//! At random, by weight.

use super::dice::{Dice, weights};
use super::{Candidate, Select};

/// Chooses each candidate with the probability of its share of the weights.
pub(super) struct WeightedRandom {
    dice: Dice,
}

impl WeightedRandom {
    pub(super) fn new(dice: Dice) -> Self {
        WeightedRandom { dice }
    }
}

impl Select for WeightedRandom {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        self.dice.weighted(weights(candidates))
    }
}

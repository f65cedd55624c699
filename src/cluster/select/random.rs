//! At random, all alike.

use super::dice::{Dice, weights};
use super::{Candidate, Select};

/// Chooses any candidate that has a weight at all.
pub(super) struct Random {
    dice: Dice,
}

impl Random {
    pub(super) fn new(dice: Dice) -> Self {
        Random { dice }
    }
}

impl Select for Random {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        self.dice
            .weighted(weights(candidates).map(|weight| weight.min(1)))
    }
}

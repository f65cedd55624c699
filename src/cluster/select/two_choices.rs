//! The better of two: the power of two random choices (Mitzenmacher, 2001).

use super::dice::{Dice, weights};
use super::{Candidate, Select};

/// Draws two different candidates by weight and chooses the less busy one.
///
/// In-flight counts are this process's own. Comparing only two keeps many processes, each of
/// which sees little, from choosing the same node at the same time.
pub(super) struct TwoChoices {
    dice: Dice,
}

impl TwoChoices {
    pub(super) fn new(dice: Dice) -> Self {
        TwoChoices { dice }
    }

    /// Two different indices, or the same twice if there is only one to choose.
    pub(super) fn draw(&self, candidates: &[Candidate<'_>]) -> Option<(usize, usize)> {
        let first = self.dice.weighted(weights(candidates))?;
        let others = weights(candidates).enumerate();
        let others = others.map(|(i, weight)| if i == first { 0 } else { weight });
        Some((first, self.dice.weighted(others).unwrap_or(first)))
    }
}

impl Select for TwoChoices {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let (first, second) = self.draw(candidates)?;
        match candidates[first].is_busier_than(&candidates[second]) {
            true => Some(second),
            false => Some(first),
        }
    }
}

//! The better of two: the power of two random choices (Mitzenmacher, 2001).

use super::dice::{Dice, weights};
use super::{Candidate, Select};

/// Draws two different candidates by weight and takes the second only if the first is busier.
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
        match is_busier(&candidates[first], &candidates[second]) {
            true => Some(second),
            false => Some(first),
        }
    }
}

/// Tells whether `first` has more in use per weight than `second`, by more than half a read.
///
/// With equal weights that is any difference. With others there is nearly always some: less than
/// half a read decides nothing, and the order of the draw stands, which goes by weight. Otherwise
/// the heavier of two idle nodes would get every read, be it heavier by a thousandth.
fn is_busier(first: &Candidate<'_>, second: &Candidate<'_>) -> bool {
    let halves = |reads: u32| u128::from(reads) * 2;
    halves(first.in_flight) * u128::from(second.weight)
        > (halves(second.in_flight) + 1) * u128::from(first.weight)
}

//! By what the servers say of themselves.

use super::dice::Dice;
use super::{Candidate, Select};

/// Chooses the candidate with the least load per weight; among equals at random, by weight.
///
/// The load is what the server reported plus what this process has in flight there, which has
/// mostly begun after that. What differs by less than half a statement is equal: else the heavier
/// of two idle nodes would get every read, be it heavier by a thousandth.
pub(super) struct LeastLoaded {
    dice: Dice,
}

impl LeastLoaded {
    pub(super) fn new(dice: Dice) -> Self {
        LeastLoaded { dice }
    }
}

impl Select for LeastLoaded {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let usual = Usual::of(candidates);
        let usable = candidates.iter().filter(|c| c.weight > 0);
        let bounds = usable.map(|c| PerWeight(usual.halves(c) + 1, c.weight));
        let bound = bounds.reduce(|a, b| if b.is_below(a) { b } else { a })?;
        self.dice.weighted(candidates.iter().map(|c| {
            match PerWeight(usual.halves(c), c.weight).is_below(bound) {
                true => c.weight,
                false => 0,
            }
        }))
    }
}

/// Half statements per weight, compared without dividing.
///
/// The load is at most a product of two sums of 32-bit numbers, and the weight has 32 bits: 128
/// hold what comes of both.
#[derive(Clone, Copy)]
struct PerWeight(u128, u32);

impl PerWeight {
    fn is_below(self, other: Self) -> bool {
        self.0 * u128::from(other.1) < other.0 * u128::from(self.1)
    }
}

/// What the servers whose load is known have to do, per weight.
///
/// One whose load is unknown is taken to have as much to do as the others: nothing would draw
/// all reads to a server that may be overloaded, and the worst would keep all from one that
/// merely lacks a privilege.
#[derive(Clone, Copy, Default)]
struct Usual {
    load: u128,
    weight: u128,
}

impl Usual {
    fn of(candidates: &[Candidate<'_>]) -> Self {
        let mut usual = Usual::default();
        for candidate in candidates.iter().filter(|c| c.weight > 0) {
            if let Some(load) = candidate.load {
                usual.load += u128::from(load);
                usual.weight += u128::from(candidate.weight);
            }
        }
        usual
    }

    /// The load of a candidate, in half statements.
    fn halves(self, candidate: &Candidate<'_>) -> u128 {
        let of_server = match candidate.load {
            Some(load) => u128::from(load) * 2,
            None => self.load * 2 * u128::from(candidate.weight) / self.weight.max(1),
        };
        of_server + u128::from(candidate.in_flight) * 2
    }
}

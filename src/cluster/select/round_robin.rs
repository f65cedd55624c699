//! In turns by weight, evenly spread: weights 5, 1, 1 give a a b a c a a.

use parking_lot::Mutex;

use super::{Candidate, Select};

/// Lets every candidate save up its share of a turn; the one that saved most is chosen and pays.
///
/// What a node saved is kept by its name, so nodes may leave and come between two calls without
/// disturbing the turns of the others. Savings are counted in turns and not in weights, which
/// change from call to call: what was saved by a large weight would buy a burst of turns among
/// small ones.
#[derive(Default)]
pub(super) struct RoundRobin {
    /// Protects the savings for the length of one choice.
    savings: Mutex<Vec<Saving>>,
}

struct Saving {
    name: Box<str>,
    /// In parts of a turn, and never more than some turns.
    amount: i64,
}

#[cfg(test)]
impl RoundRobin {
    pub(super) fn remembered(&self) -> usize {
        self.savings.lock().len()
    }

    /// The most that a node has saved or owes, in turns.
    pub(super) fn largest_debt(&self) -> f64 {
        let savings = self.savings.lock();
        let turns = savings.iter().map(|s| s.amount as f64 / TURN as f64);
        turns.fold(0.0, |most, turns| most.max(turns.abs()))
    }
}

/// More savings than this mean that nodes come under ever new names; the absent are forgotten.
const MOST: usize = 64;

/// The parts of a turn; a product with a weight has 63 bits at most.
const TURN: u64 = 1 << 31;

impl Select for RoundRobin {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let total: u64 = candidates.iter().map(|c| u64::from(c.weight)).sum();
        let mut savings = self.savings.lock();
        if savings.len() > MOST {
            savings.retain(|saving| candidates.iter().any(|c| *c.name == *saving.name));
        }
        let mut price = 0;
        let mut best: Option<(usize, usize, i64)> = None;
        for (i, candidate) in candidates.iter().enumerate() {
            if candidate.weight == 0 {
                continue;
            }
            let share = (u64::from(candidate.weight) * TURN / total).max(1) as i64;
            let at = position(&mut savings, candidate.name);
            let amount = savings[at].amount + share;
            savings[at].amount = amount;
            price += share;
            if best.is_none_or(|(.., most)| amount > most) {
                best = Some((i, at, amount));
            }
        }
        let (chosen, at, _) = best?;
        savings[at].amount -= price;
        Some(chosen)
    }
}

/// Where the savings of `name` are; allocates only for a name never seen.
fn position(savings: &mut Vec<Saving>, name: &str) -> usize {
    let known = savings.iter().position(|saving| *saving.name == *name);
    known.unwrap_or_else(|| {
        savings.push(Saving {
            name: name.into(),
            amount: 0,
        });
        savings.len() - 1
    })
}

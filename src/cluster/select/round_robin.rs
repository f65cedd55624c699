//! In turns by weight, evenly spread: weights 5, 1, 1 give a a b a c a a.

use parking_lot::Mutex;

use super::{Candidate, Select};

/// Lets every candidate save up its weight; the one that saved most is chosen and pays the sum.
///
/// What a node saved is kept by its name, so nodes may leave and come between two calls without
/// disturbing the turns of the others.
#[derive(Default)]
pub(super) struct RoundRobin {
    /// Protects the savings for the length of one choice.
    savings: Mutex<Vec<Saving>>,
}

struct Saving {
    name: Box<str>,
    amount: i64,
}

#[cfg(test)]
impl RoundRobin {
    pub(super) fn remembered(&self) -> usize {
        self.savings.lock().len()
    }
}

/// More savings than this mean that nodes come under ever new names; the absent are forgotten.
const MOST: usize = 64;

impl Select for RoundRobin {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        let mut savings = self.savings.lock();
        if savings.len() > MOST {
            savings.retain(|saving| candidates.iter().any(|c| *c.name == *saving.name));
        }
        let mut total = 0;
        let mut best: Option<(usize, usize, i64)> = None;
        for (i, candidate) in candidates.iter().enumerate() {
            if candidate.weight == 0 {
                continue;
            }
            let at = position(&mut savings, candidate.name);
            let amount = savings[at].amount + i64::from(candidate.weight);
            savings[at].amount = amount;
            total += i64::from(candidate.weight);
            if best.is_none_or(|(.., most)| amount > most) {
                best = Some((i, at, amount));
            }
        }
        let (chosen, at, _) = best?;
        savings[at].amount -= total;
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

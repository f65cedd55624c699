//! In the order of the configuration.

use super::{Candidate, Select};

/// Chooses the first candidate, so one that recovers is used again at once.
pub(super) struct Failover;

impl Select for Failover {
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        candidates.iter().position(|candidate| candidate.weight > 0)
    }
}

//! What a node is used as, and since which change.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cluster::Role;

/// A node's time in a role. Connections opened in an earlier term are closed, because sessions are
/// prepared for a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term(u64);

impl Term {
    fn first(role: Role) -> Self {
        Self(role_bit(role))
    }

    fn next(self, role: Role) -> Self {
        Self((self.0 | 1) + 1 + role_bit(role))
    }

    pub(crate) fn role(self) -> Role {
        match self.0 & 1 {
            0 => Role::Primary,
            _ => Role::Replica,
        }
    }
}

fn role_bit(role: Role) -> u64 {
    match role {
        Role::Primary => 0,
        Role::Replica => 1,
    }
}

/// The present term of a node, which whoever dials it reads.
#[derive(Debug)]
pub(crate) struct PresentTerm(AtomicU64);

impl PresentTerm {
    pub(super) fn new(role: Role) -> Self {
        Self(AtomicU64::new(Term::first(role).0))
    }

    pub(super) fn get(&self) -> Term {
        Term(self.0.load(Ordering::Acquire))
    }

    /// Begins a new term, also in the same role: whatever is open is of the past then.
    pub(super) fn begin(&self, role: Role) {
        // changed by one thread at a time, under the lock of the cluster's roles
        self.0.store(self.get().next(role).0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_term_is_another_one_and_knows_its_role() {
        let present = PresentTerm::new(Role::Replica);
        let mut seen = vec![present.get()];
        for role in [Role::Primary, Role::Primary, Role::Replica, Role::Replica] {
            present.begin(role);
            assert_eq!(present.get().role(), role);
            assert!(!seen.contains(&present.get()), "never the same again");
            seen.push(present.get());
        }
    }
}

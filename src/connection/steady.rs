//! What nearly all statements of a block are: one more read where the block reads.

use super::RoutedConnection;
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::{Affinity, ClusterMode, Consistency};
use crate::node::Node;
use crate::statement::Statement;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Tells whether a statement is one more read where the block reads, and nothing has happened
    /// since the last one: then the rules need not be gone through, and there is nothing to clear up.
    ///
    /// It never says so where the rules decide otherwise; builds with debug assertions compare.
    #[inline]
    pub(super) fn is_steady(&self, statement: &Statement) -> bool {
        let Some(node) = self.leases.only_replica() else {
            return false;
        };
        statement.is_read()
            && self.cluster.mode() == ClusterMode::Normal
            && self.unit.reads_steadily_from(node)
    }
}

impl Unit {
    #[inline]
    fn reads_steadily_from<C: ReplicatedConnection>(&self, node: &Node<C>) -> bool {
        let Some(block) = &self.block else {
            return false;
        };
        let consistent = matches!(
            block.consistency,
            Consistency::Session | Consistency::Eventual
        );
        consistent
            && self.ambient.is_none()
            && !self.forced
            && !self.in_transaction()
            && !self.transaction_lost
            && block.affinity == Affinity::Block
            && !block.used_primary
            && !node.is_gone()
            && block
                .pin
                .as_ref()
                .is_some_and(|pin| pin.node == node.place() && self.is_unchanged_since(pin))
    }
}

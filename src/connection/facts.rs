//! What a decision has to know of the replicas.

use std::sync::Arc;
use std::time::Instant;

use super::RoutedConnection;
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::Cluster;
use crate::decision::{PinFacts, ReplicaFacts};
use crate::node::Node;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// What has become of the replica that the block reads from.
    pub(super) fn pin_facts(&mut self) -> PinFacts {
        let Some(place) = self.unit.pinned() else {
            return PinFacts::None;
        };
        let limit = self.unit.limit();
        let holds = self
            .leases
            .replica()
            .filter(|lease| lease.node().place() == place);
        match (holds, limit) {
            (Some(lease), _) if lease.node().is_gone() => return PinFacts::Gone,
            (_, None) => {}
            (_, Some(_)) => {
                let members = self.cluster.members();
                let fresh = |node: &Arc<Node<C>>| node.admits(limit, Instant::now());
                if !members.find(place).is_some_and(fresh) {
                    return PinFacts::Late;
                }
            }
        }
        let cluster = &self.cluster;
        self.unit
            .pin_facts(cluster.place(), |need| cluster.has(place, need))
    }
}

pub(super) fn replica_facts<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    unit: &mut Unit,
) -> ReplicaFacts {
    unit.look(cluster.place());
    cluster.replica_facts(unit.terms())
}

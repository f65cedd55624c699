//! What the nodes are like now, as a status.

use super::{Cluster, ClusterStatus, NodeState, NodeStatus};
use crate::backend::ReplicatedConnection;

impl<C: ReplicatedConnection> Cluster<C> {
    /// Returns what is known of the nodes; does no I/O.
    pub fn status(&self) -> ClusterStatus {
        let nodes = self.nodes().map(|node| {
            let (reads, writes, errors) = node.counts();
            let (open, idle) = node.connections();
            NodeStatus {
                name: node.name().to_string(),
                role: node.role(),
                state: match (node.weight(), node.is_down()) {
                    (0, _) => NodeState::Drained,
                    (_, true) => NodeState::Down,
                    (_, false) => NodeState::Up,
                },
                in_flight: node.in_flight(),
                open,
                idle,
                reads,
                writes,
                errors,
                last_error: node.last_error().map(|error| error.to_string()),
            }
        });
        ClusterStatus {
            nodes: nodes.collect(),
        }
    }
}

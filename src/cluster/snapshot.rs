//! What the nodes are like now, as a status.

use std::time::Instant;

use super::{Cluster, ClusterStatus, NodeStatus};
use crate::backend::ReplicatedConnection;
use crate::node::Node;
use crate::position::Position;

impl<C: ReplicatedConnection> Cluster<C> {
    /// Returns what is known of the nodes; does no I/O.
    pub fn status(&self) -> ClusterStatus {
        let now = Instant::now();
        let members = self.members();
        ClusterStatus {
            name: self.settings().name.clone(),
            mode: self.mode(),
            nodes: members.nodes.iter().map(|node| status(node, now)).collect(),
        }
    }
}

fn status<C: ReplicatedConnection>(node: &Node<C>, now: Instant) -> NodeStatus {
    let (reads, writes, errors) = node.counts();
    let (open, idle) = node.connections();
    let role = node.role();
    let in_flight = node.in_flight();
    let known = node.known();
    let health = &known.health;
    let age = |then: Instant| now.saturating_duration_since(then);
    let position = known
        .report
        .as_ref()
        .and_then(|report| report.position.clone());
    let refusal = health.refusal().map(|refusal| refusal.to_string());
    NodeStatus {
        name: node.name().to_string(),
        role,
        state: health.state(now),
        state_since: age(health.since()),
        lag: health.shown_lag(now),
        timeline: match &position {
            Some(Position::Postgres(wal)) => Some(wal.timeline),
            _ => None,
        },
        position,
        load: known.numbers.and_then(|(numbers, _)| numbers.load),
        last_probe_age: health.heard().map(age),
        identity: known.report.as_ref().map(|report| report.identity.clone()),
        in_flight,
        open,
        idle,
        reads,
        writes,
        errors,
        last_error: refusal.or_else(|| known.last_error().map(|error| error.to_string())),
    }
}

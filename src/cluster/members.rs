//! The nodes of a cluster, and who of them is what, at one moment.

use std::sync::Arc;

use crate::backend::ReplicatedConnection;
use crate::error::RoutedError;
use crate::node::{Node, Refusal};

/// The nodes of a cluster, and who of them is what; replaced as a whole when that changes.
pub(crate) struct Members<C: ReplicatedConnection> {
    /// In the order of the configuration.
    pub(super) nodes: Vec<Arc<Node<C>>>,
    pub(super) seat: Seat,
    /// Those of `nodes` that are not the primary, in the same order.
    pub(super) replicas: Vec<Arc<Node<C>>>,
}

/// Who takes the writes, by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    Taken(usize),
    /// Two servers take writes.
    Contested(usize, usize),
    Empty,
}

impl<C: ReplicatedConnection> Members<C> {
    pub(super) fn new(nodes: Vec<Arc<Node<C>>>, seat: Seat) -> Self {
        let is_primary = |node: &Node<C>| seat == Seat::Taken(node.place());
        Self {
            replicas: nodes
                .iter()
                .filter(|node| !is_primary(node))
                .cloned()
                .collect(),
            nodes,
            seat,
        }
    }

    pub(crate) fn find(&self, place: usize) -> Option<&Arc<Node<C>>> {
        self.nodes.iter().find(|node| node.place() == place)
    }

    /// The node that takes the writes.
    pub(crate) fn primary(&self) -> Option<&Arc<Node<C>>> {
        match self.seat {
            Seat::Taken(place) => self.find(place),
            Seat::Contested(..) | Seat::Empty => None,
        }
    }

    /// Says why nobody takes the writes.
    pub(super) fn no_primary(&self) -> RoutedError {
        let name = |place| {
            self.find(place)
                .map_or_else(String::new, |node| node.name().to_string())
        };
        match self.seat {
            Seat::Contested(one, other) => RoutedError::RoleConflict {
                nodes: format!("{} and {}", name(one), name(other)),
            },
            Seat::Taken(place) => RoutedError::NoPrimary {
                node: name(place),
                cause: "it was removed".to_owned(),
            },
            Seat::Empty => RoutedError::NoPrimary {
                node: self
                    .nodes
                    .first()
                    .map_or_else(String::new, |node| node.name().to_string()),
                cause: "it follows another server now, and none that is known takes writes"
                    .to_owned(),
            },
        }
    }

    /// Tells whether there is any server besides the primary; one that is the primary under
    /// another address is none.
    pub(crate) fn has_replicas(&self) -> bool {
        let is_one = |node: &Arc<Node<C>>| node.known().health.refusal() != Some(Refusal::Alias);
        self.replicas.iter().any(is_one)
    }
}

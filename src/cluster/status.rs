//! A snapshot of the cluster, to print and to graph.

use std::fmt;

use super::Role;

/// What is known of a cluster at one moment.
///
/// `Display` makes a table of it, for people; the fields are for graphs.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let mut conn = pool().get()?;
/// let replica = &conn.cluster().status().nodes[1];
/// assert_eq!((replica.name.as_str(), replica.state), ("replica", NodeState::Up));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// The primary first, then the replicas in the order of the configuration.
    pub nodes: Vec<NodeStatus>,
}

/// What is known of a node at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's name.
    pub name: String,
    /// What the node is used as.
    pub role: Role,
    /// Whether it is asked.
    pub state: NodeState,
    /// Connections in use now.
    pub in_flight: u32,
    /// Connections open, in use or idle.
    pub open: u32,
    /// Connections open and idle.
    pub idle: u32,
    /// Reads that it has answered.
    pub reads: u64,
    /// Writes that it has done.
    pub writes: u64,
    /// Failures to reach it.
    pub errors: u64,
    /// The last failure to reach it, without secrets.
    pub last_error: Option<String>,
}

/// Whether a node is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeState {
    /// Nothing speaks against it.
    Up,
    /// It could not be reached, and is tried again after `quarantine`.
    Down,
    /// Its weight is 0: it is never asked.
    Drained,
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Drained => "drained",
        })
    }
}

impl fmt::Display for ClusterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.nodes.iter().map(|node| node.name.len()).max();
        let width = width.unwrap_or(0).max("node".len());
        writeln!(
            f,
            "{:width$}  role     state    in use  open      reads     writes  errors",
            "node"
        )?;
        for node in &self.nodes {
            writeln!(
                f,
                "{:width$}  {:8} {:8} {:6} {:5} {:10} {:10} {:7}",
                node.name,
                node.role.to_string(),
                node.state,
                node.in_flight,
                node.open,
                node.reads,
                node.writes,
                node.errors
            )?;
        }
        Ok(())
    }
}

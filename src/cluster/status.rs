//! A snapshot of the cluster, to print and to graph.

use std::fmt;
use std::time::Duration;

use super::{ClusterMode, Role};
use crate::node::NodeState;
use crate::position::Position;
use crate::report::Identity;

/// What is known of a cluster at one moment.
///
/// `Display` makes a table of it, for people; the fields are for graphs.
///
/// With the feature `serde` it is `Serialize`: an object with these fields under these names, in
/// which what is not known is null. Times are seconds with a fraction; roles, states and positions
/// are their texts (`"replica"`, `"read-only"`, `"mariadb:0-1-9"`), of a node that is down the
/// word `"down"` alone; modes are written as in `ROUTED_MODE`. Nothing in it is secret, but names
/// of nodes, and errors with host names, are not for everybody.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let mut conn = pool().get()?;
/// let replica = &conn.cluster().status().nodes[1];
/// assert_eq!((replica.name.as_str(), replica.state), ("replica", NodeState::Up));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClusterStatus {
    /// What the cluster is called.
    pub name: String,
    /// What it serves at present.
    pub mode: ClusterMode,
    /// The nodes in the order of the configuration, which calls the first one primary.
    pub nodes: Vec<NodeStatus>,
}

/// What is known of a node at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NodeStatus {
    /// The node's name.
    pub name: String,
    /// What the node is used as.
    pub role: Role,
    /// Whether it is asked.
    pub state: NodeState,
    /// For how long it has been in that state.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serial::seconds"))]
    pub state_since: Duration,
    /// How far a replica is behind, at most; `None` if that is not known, or it is down.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serial::seconds"))]
    pub lag: Option<Duration>,
    /// How far it had come when it was last probed.
    pub position: Option<Position>,
    /// PostgreSQL: the timeline of that position.
    pub timeline: Option<u32>,
    /// How many statements the server works on, if the strategy asks for it.
    pub load: Option<u32>,
    /// How long ago it was last probed with success.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serial::seconds"))]
    pub last_probe_age: Option<Duration>,
    /// Which server it is, in which run, as it said when it was last probed.
    pub identity: Option<Identity>,
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
    /// The last failure to reach it, or why it is refused; without secrets.
    pub last_error: Option<String>,
}

impl fmt::Display for ClusterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.nodes.iter().map(|node| node.name.len()).max();
        let width = width.unwrap_or(0).max("node".len());
        writeln!(
            f,
            "{:width$}  role     state           for     lag  in use  open      reads     writes  errors",
            "node"
        )?;
        for node in &self.nodes {
            let lag = node.lag.map_or("-".to_owned(), seconds);
            writeln!(
                f,
                "{:width$}  {:8} {:9} {:>8} {:>7} {:7} {:5} {:10} {:10} {:7}",
                node.name,
                node.role.to_string(),
                node.state,
                seconds(node.state_since),
                lag,
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

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

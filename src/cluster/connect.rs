//! Starting a cluster: looking at the nodes once, and sharing one between equal URL lists.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use super::{Cluster, ClusterConfig, ConfigError, Inner};
use crate::backend::ReplicatedConnection;
use crate::node::Node;

/// Why a cluster could not be started.
///
/// No message holds a URL or a password.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// let config = ClusterConfig::new("/nowhere/app.db");
/// match RoutedConnectionManager::<SqliteConnection>::connect(config) {
///     Err(ConnectError::Unreachable(nodes)) => assert_eq!(nodes[0].0, "app.db"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration is wrong.
    Config(ConfigError),
    /// No node can be reached: each with its reason.
    Unreachable(Vec<(String, String)>),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Unreachable(causes) => {
                f.write_str("no node can be reached")?;
                for (node, cause) in causes {
                    write!(f, "; {node}: {cause}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Unreachable(_) => None,
        }
    }
}

impl From<ConfigError> for ConnectError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl<C: ReplicatedConnection> Cluster<C> {
    /// Dials every node once, all at the same time; one that answers is enough.
    ///
    /// Those that do not are logged by name and cause. A dial that hangs is left to its thread.
    pub(crate) fn look_around(&self) -> Result<(), ConnectError> {
        let timeout = self.settings().connect_timeout;
        let members = self.members();
        let dials: Vec<_> = members.nodes.iter().map(dial_in_background).collect();
        let deadline = Instant::now() + timeout;
        let causes: Vec<(String, String)> = members
            .nodes
            .iter()
            .zip(dials)
            .filter_map(|(node, dial)| {
                let left = deadline.saturating_duration_since(Instant::now());
                let cause = match dial.recv_timeout(left) {
                    Ok(Ok(())) => return None,
                    Ok(Err(cause)) => cause,
                    Err(_) => format!("no answer within {timeout:?}"),
                };
                Some((node.name().to_string(), cause))
            })
            .collect();
        if causes.len() == members.nodes.len() {
            return Err(ConnectError::Unreachable(causes));
        }
        for (node, cause) in causes {
            self.events().unreachable_at_start(&node, &cause);
        }
        Ok(())
    }
}

fn dial_in_background<C: ReplicatedConnection>(
    node: &Arc<Node<C>>,
) -> Receiver<Result<(), String>> {
    let (sender, receiver) = mpsc::channel();
    let node = Arc::clone(node);
    thread::spawn(move || {
        // nobody listens any more if the dial took too long
        let _ = sender.send(node.look());
    });
    receiver
}

/// Clusters by connection type and URL list, for as long as somebody uses them.
type Registry = HashMap<(TypeId, String), Box<dyn Any + Send>>;

/// Protects the list of clusters made by `establish`; no I/O happens under it.
static SHARED: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

/// Returns the cluster that other handles with the same URLs use, or makes it.
///
/// Pools that call `establish` for each object (deadpool, multi-connections) would otherwise
/// build a cluster for each.
pub(crate) fn shared<C: ReplicatedConnection>(urls: &str) -> Result<Cluster<C>, ConfigError> {
    let key = (TypeId::of::<C>(), urls.to_owned());
    if let Some(known) = find(&SHARED.lock(), &key) {
        return Ok(known);
    }
    // outside the lock: it logs, and a logger may use a database itself
    let cluster = Cluster::new(ClusterConfig::from_urls(urls))?;
    let mut registry = SHARED.lock();
    if let Some(known) = find(&registry, &key) {
        drop(registry);
        return Ok(known);
    }
    // the list does not grow with what nobody uses any more
    registry.retain(|_, weak| {
        let weak = weak.downcast_ref::<Weak<Inner<C>>>();
        weak.is_none_or(|weak| weak.strong_count() > 0)
    });
    registry.insert(key, Box::new(Arc::downgrade(&cluster.0)));
    Ok(cluster)
}

fn find<C: ReplicatedConnection>(
    registry: &Registry,
    key: &(TypeId, String),
) -> Option<Cluster<C>> {
    let weak = registry.get(key)?.downcast_ref::<Weak<Inner<C>>>()?;
    weak.upgrade().map(Cluster)
}

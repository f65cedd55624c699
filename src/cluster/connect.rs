//! Starting a cluster: looking at the nodes once, and sharing one between equal URL lists.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Weak};
use std::thread;

use parking_lot::Mutex;

use super::{Cluster, ClusterConfig, ConfigError, Inner};
use crate::backend::ReplicatedConnection;

/// Why a cluster could not be started.
///
/// No message holds a URL or a password.
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
    /// Those that do not are logged by name and cause.
    pub(crate) fn look_around(&self) -> Result<(), ConnectError> {
        let causes: Vec<(String, String)> = thread::scope(|scope| {
            let dials: Vec<_> = self
                .nodes()
                .map(|node| (node, scope.spawn(|| node.probe())))
                .collect();
            dials
                .into_iter()
                .filter_map(|(node, dial)| {
                    let cause = match dial.join() {
                        Ok(Ok(())) => return None,
                        Ok(Err(cause)) => cause,
                        Err(_) => "dialling panicked".to_owned(),
                    };
                    Some((node.name().to_string(), cause))
                })
                .collect()
        });
        if causes.len() == self.nodes().count() {
            return Err(ConnectError::Unreachable(causes));
        }
        for (node, cause) in causes {
            log::warn!("{node}: not reachable at start, {cause}");
        }
        Ok(())
    }
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
    let mut registry = SHARED.lock();
    let known = registry
        .get(&key)
        .and_then(|weak| weak.downcast_ref::<Weak<Inner<C>>>())
        .and_then(Weak::upgrade);
    if let Some(inner) = known {
        return Ok(Cluster(inner));
    }
    let cluster = Cluster::new(ClusterConfig::from_urls(urls))?;
    registry.insert(key, Box::new(Arc::downgrade(&cluster.0)));
    Ok(cluster)
}

//! What an operator does with a cluster at run time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::members::Members;
use super::{Cluster, ClusterMode, ClusterStatus, ConfigError, NodeConfig, Role};
use crate::backend::ReplicatedConnection;
use crate::error::RoutedError;
use crate::node::{Event, News, Node, NodeState};

impl<C: ReplicatedConnection> Cluster<C> {
    /// Changes at run time which statements are served, for maintenance and roll-back.
    ///
    /// It holds from the next statement on, inside blocks too, and in this process alone. A
    /// transaction that has begun stays on its node.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.cluster().set_mode(ClusterMode::ReadOnly);
    /// let error = diesel::delete(posts::table).execute(&mut conn).unwrap_err();
    /// assert_eq!(RoutedError::downcast(&error), Some(RoutedError::ReadOnlyMode));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_mode(&self, mode: ClusterMode) {
        self.0.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Returns the mode set by [`set_mode`](Self::set_mode) or `ROUTED_MODE`.
    pub fn mode(&self) -> ClusterMode {
        const PRIMARY_ONLY: u8 = ClusterMode::PrimaryOnly as u8;
        const READ_ONLY: u8 = ClusterMode::ReadOnly as u8;
        match self.0.mode.load(Ordering::Relaxed) {
            PRIMARY_ONLY => ClusterMode::PrimaryOnly,
            READ_ONLY => ClusterMode::ReadOnly,
            _ => ClusterMode::Normal,
        }
    }

    /// Probes every node now, and returns what is known then.
    ///
    /// Waits until each node has answered or failed, for `connect_timeout` at most.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let conn = pool().get()?;
    /// let status = conn.cluster().check();
    /// assert!(status.nodes.iter().all(|node| node.state == NodeState::Up));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> ClusterStatus {
        self.0.wake();
        let asked = Instant::now();
        // the monitor is there for as long as the cluster
        let _ = self.0.common.news.send(News::Check);
        let deadline = asked + self.settings().connect_timeout;
        let done = || self.0.have_answered_since(asked).then_some(());
        self.0.common.bell.wait_for(deadline, done);
        self.status()
    }

    /// Tells whether requests can be served, for the endpoint that a load balancer asks: whether
    /// somebody takes writes and answers, or in [`ClusterMode::ReadOnly`] answers at all.
    ///
    /// Replicas do not count: without them the primary serves. It does no I/O where the nodes are
    /// monitored, but for the first time.
    ///
    /// # Errors
    ///
    /// [`RoutedError::NoPrimary`] or [`RoutedError::RoleConflict`].
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let conn = pool().get()?;
    /// conn.cluster().ready()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ready(&self) -> Result<(), RoutedError> {
        self.0.wake();
        let unknown = |node: &Arc<Node<C>>| !node.was_asked();
        if !self.0.is_monitored() || self.members().primary().is_some_and(unknown) {
            self.check();
        }
        let members = self.members();
        let Some(primary) = members.primary() else {
            return Err(members.no_primary());
        };
        let known = primary.known();
        let state = known.health.state(Instant::now());
        let cause = match (state, self.mode()) {
            (NodeState::Up, _) | (NodeState::ReadOnly, ClusterMode::ReadOnly) => return Ok(()),
            (NodeState::ReadOnly, _) => "it refuses writes".to_owned(),
            (state, _) => match known.last_error() {
                Some(error) => error.to_string(),
                None => format!("it is {state}"),
            },
        };
        Err(RoutedError::NoPrimary {
            node: primary.name().to_string(),
            cause,
        })
    }

    /// Takes a replica out of rotation, by name: what runs on it ends, and nothing new begins.
    ///
    /// In this process alone. Draining the primary changes nothing for it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownNode`] if no node is called so.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let conn = pool().get()?;
    /// conn.cluster().drain("replica")?;
    /// assert_eq!(conn.cluster().status().nodes[1].state, NodeState::Drained);
    /// conn.cluster().resume("replica")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drain(&self, name: &str) -> Result<(), ConfigError> {
        self.tell(name, Event::Drained)
    }

    /// Takes a node in again that [`drain`](Self::drain) took out; it is asked slowly at first.
    ///
    /// # Errors
    ///
    /// As [`drain`](Self::drain).
    pub fn resume(&self, name: &str) -> Result<(), ConfigError> {
        self.tell(name, Event::Resumed)
    }

    fn tell(&self, name: &str, event: Event) -> Result<(), ConfigError> {
        let members = self.members();
        let node = members.nodes.iter().find(|node| &**node.name() == name);
        let node = node.ok_or_else(|| ConfigError::UnknownNode {
            name: name.to_owned(),
        })?;
        node.note(event, Instant::now());
        self.0.common.bell.ring();
        Ok(())
    }

    /// Replaces the replicas; what is described as before stays as it is.
    ///
    /// A node that is left out lends nothing more; what runs on it ends. One that has become
    /// primary meanwhile stays, whatever the list says, and so does the configured primary.
    ///
    /// # Errors
    ///
    /// If the nodes do not make sense together; then nothing has changed.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let conn = pool().get()?;
    /// conn.cluster().set_replicas(vec![])?; // everything on the primary
    /// assert_eq!(conn.cluster().status().nodes.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_replicas(&self, replicas: Vec<NodeConfig>) -> Result<(), ConfigError> {
        let inner = &self.0;
        let described = inner.config.with_replicas(replicas, C::DIALECT)?;
        let _one_at_a_time = inner.changing.lock();
        let before = self.members();
        let known = |settings| {
            before
                .nodes
                .iter()
                .find(|node| node.settings().is_same(settings))
        };
        let primary = before.nodes.iter().take(1).cloned();
        let replicas = described.iter().map(|settings| match known(settings) {
            Some(node) => Arc::clone(node),
            None => {
                let place = inner.next_place.fetch_add(1, Ordering::Relaxed);
                Node::new(place, Role::Replica, settings.clone(), &inner.common)
            }
        });
        let mut nodes: Vec<_> = primary.chain(replicas).collect();
        if let Some(promoted) = before.primary() {
            if !nodes.iter().any(|node| node.place() == promoted.place()) {
                nodes.push(Arc::clone(promoted));
            }
        }
        inner.publish(Members::new(nodes, before.seat));
        let _ = inner.common.news.send(News::Members);
        inner.wake();
        Ok(())
    }
}

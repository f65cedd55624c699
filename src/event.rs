//! What happened, told in one place: to the log and to the user's observer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Role;
use crate::connection::Route;
use crate::decision::{Reason, Rule};
use crate::node::{Change, NodeState};
use crate::report::ErrorClass;

/// What an [`Observer`] is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The state of a node has changed.
    #[non_exhaustive]
    NodeChanged {
        /// The node.
        node: &'a str,
        /// What it is used as.
        role: Role,
        /// The state it was in.
        from: NodeState,
        /// The state it is in now.
        to: NodeState,
        /// Why, in words.
        cause: &'a str,
        /// How long the old state has lasted.
        lasted: Duration,
    },
    /// Another server takes the writes now, or none.
    #[non_exhaustive]
    PrimaryChanged {
        /// The one that took them.
        from: Option<&'a str>,
        /// The one that takes them, or why there is none.
        to: Result<&'a str, &'a str>,
    },
    /// A node is used as something else now, so that its connections are replaced: those in use at
    /// the end of their statement or transaction.
    #[non_exhaustive]
    Retired {
        /// The node.
        node: &'a str,
        /// What it is used as now.
        role: Role,
        /// How many connections were closed at once.
        closed: u32,
        /// How many were in use.
        in_use: u32,
    },
    /// A statement was answered.
    Routed(&'a Route),
    /// A read failed on a replica through no fault of its own, and goes on elsewhere.
    #[non_exhaustive]
    Retried {
        /// The replica.
        node: &'a str,
        /// What the error was.
        class: ErrorClass,
    },
    /// A read goes to the primary in place of a replica.
    #[non_exhaustive]
    FellBack {
        /// Why.
        reason: &'a Reason,
    },
    /// A replica refused a statement that was taken for a read.
    #[non_exhaustive]
    Refused {
        /// The statement, by name or shape and without its values.
        statement: &'a str,
    },
    /// The primary has lost something that it had shown, as after a crash with asynchronous
    /// commits.
    #[non_exhaustive]
    PositionWentBack {
        /// The primary.
        node: &'a str,
    },
    /// A request wrote after the head of its response had been made, so that its client's token
    /// does not tell of it: the client's next request may miss it.
    TokenTooLate,
}

/// Is told what happens in a cluster, for metrics and alarms.
///
/// Closures of the same signature implement it.
///
/// Called on the thread on which it happens, a caller's or the monitor's, while no lock is held. It
/// should return at once: a statement may wait for it. A panic is caught and logged.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let _keeps_the_database = pool();
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let fallbacks = Arc::new(AtomicU64::new(0));
/// let counter = fallbacks.clone();
/// let config = config().observer(move |event: &Event<'_>| {
///     if let Event::FellBack { .. } = event {
///         counter.fetch_add(1, Ordering::Relaxed);
///     }
/// });
/// # let _ = config;
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Takes in what happened.
    fn observe(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// Where everything that happens is told.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    observer: Option<Arc<dyn Observer>>,
}

impl Events {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer }
    }

    fn tell(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            if catch_unwind(AssertUnwindSafe(|| observer.observe(event))).is_err() {
                log::error!("the observer panicked");
            }
        }
    }

    /// The cluster exists: one line with the configuration that is in force, without secrets.
    pub(crate) fn started(&self, summary: &str) {
        log::info!("{summary}");
    }

    /// A node did not answer when the cluster was started.
    pub(crate) fn unreachable_at_start(&self, node: &str, cause: &str) {
        log::warn!("{node}: not reachable at start, {cause}");
    }

    /// A node is in another state, or something else is worth telling of it.
    pub(crate) fn node_changed(
        &self,
        node: &str,
        role: Role,
        change: &Change,
        last_error: Option<&str>,
    ) {
        let Change {
            old,
            new,
            cause,
            lasted,
        } = *change;
        let error = match (new, last_error) {
            (NodeState::Down { .. }, Some(error)) => format!(" ({error})"),
            _ if cause.is_refused_password() => format!(" ({})", last_error.unwrap_or_default()),
            _ => String::new(),
        };
        let level = match new {
            _ if cause.is_refused_password() => log::Level::Error,
            NodeState::Up | NodeState::Drained => log::Level::Info,
            NodeState::Unknown if !matches!(old, NodeState::Up) => log::Level::Info,
            _ => log::Level::Warn,
        };
        log::log!(level, "{role} {node}: {change}{error}");
        let cause = cause.to_string();
        self.tell(&Event::NodeChanged {
            node,
            role,
            from: old,
            to: new,
            cause: &cause,
            lasted,
        });
    }

    /// Another server takes the writes, or none.
    pub(crate) fn primary_changed(&self, from: Option<&str>, to: Result<&str, &str>) {
        let before = from.unwrap_or("none");
        match to {
            Ok(node) => log::warn!("primary: {before} -> {node}"),
            Err(why) => log::error!("primary: {before} -> none: {why}"),
        }
        self.tell(&Event::PrimaryChanged { from, to });
    }

    /// The connections of a node are replaced, because it is used as something else now.
    pub(crate) fn retired(&self, node: &str, role: Role, closed: u32, in_use: u32) {
        log::debug!("{node}: is {role} now; {closed} connections closed, {in_use} in use");
        self.tell(&Event::Retired {
            node,
            role,
            closed,
            in_use,
        });
    }

    /// The user of a node's connections may not see all that is asked for.
    pub(crate) fn missing_grant(&self, node: &str, grant: &str) {
        log::warn!("{node}: its role is not seen in full; needs {grant}");
    }

    /// A connection was opened, but could not be made ready.
    pub(crate) fn not_ready(&self, node: &str, cause: &str) {
        log::error!("{node}: a connection was opened, but could not be made ready: {cause}");
    }

    /// The primary has lost what it had shown.
    pub(crate) fn position_went_back(&self, node: &str) {
        log::warn!("{node}: its position went back, so that commits are lost");
        self.tell(&Event::PositionWentBack { node });
    }

    /// The monitor could not be started.
    pub(crate) fn no_monitor(&self, error: &std::io::Error) {
        log::error!("the nodes are not monitored: {error}");
    }

    /// Not all is well; told once a minute.
    pub(crate) fn summary(&self, text: &str) {
        log::warn!("{text}");
    }

    /// A replica refused a statement that was taken for a read; told once for each statement, by
    /// name or shape and never with its values.
    pub(crate) fn refused(&self, statement: &str) {
        log::warn!(
            "a replica refused a statement that writes; it runs on the primary from now on: {statement}"
        );
        self.tell(&Event::Refused { statement });
    }

    /// A read goes on elsewhere.
    pub(crate) fn retried(&self, node: &str, class: ErrorClass) {
        log::debug!("{node}: a read goes on elsewhere ({class:?})");
        self.tell(&Event::Retried { node, class });
    }

    /// A read goes to the primary in place of a replica.
    pub(crate) fn fell_back(&self, rule: Rule) {
        let reason = &rule.reason(None);
        self.tell(&Event::FellBack { reason });
    }

    /// A write began when its request had been answered.
    pub(crate) fn token_too_late(&self) {
        log::debug!("a request wrote after its response had begun: its token does not tell of it");
        self.tell(&Event::TokenTooLate);
    }

    /// A statement was answered.
    #[inline]
    pub(crate) fn routed(&self, route: impl FnOnce() -> Route) {
        if self.observer.is_some() {
            self.tell(&Event::Routed(&route()));
        }
    }
}

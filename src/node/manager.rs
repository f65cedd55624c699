//! The r2d2 manager of one server: opens its connections and says which are worth keeping.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::r2d2::{CustomizeConnection, Error as PoolError, ManageConnection};
use r2d2::{NopErrorHandler, Pool};
use rand::Rng;
use scheduled_thread_pool::{OnPoolDropBehavior, ScheduledThreadPool};

use super::dialer::{DialError, Dialer, Purpose};
use super::term::Term;
use crate::backend::ReplicatedConnection;
use crate::report::Identity;

/// How long an unused node connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How old a connection may get: r2d2's `max_lifetime` has no jitter, so that all connections
/// of a deploy would expire together.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Makes connections for the pool of one server.
///
/// `connect` never fails: r2d2 hides a failure until its own timeout, so that it is handed
/// over as a value instead.
pub(crate) struct NodeManager<C>(pub(super) Dialer<C>);

impl<C: ReplicatedConnection> ManageConnection for NodeManager<C> {
    /// Boxed, because pools and leases move it about: at each checkout, and in each idle handle.
    type Connection = Box<NodeConnection<C>>;
    type Error = PoolError;

    fn connect(&self) -> Result<Box<NodeConnection<C>>, PoolError> {
        let (opened, term) = (Instant::now(), self.0.term.get());
        // r2d2 still makes the dials of those who gave up, which would go on against a dead
        // server for as long as there were callers
        let (link, fate) = match self.0.dials.is_anybody_waiting() {
            true => (self.0.dial(Purpose::Statements), Fate::Keep),
            false => (Err(not_made()), Fate::Close),
        };
        let (link, identity, term) = match link {
            Ok(dialled) => (Ok(dialled.conn), Some(dialled.identity), dialled.term),
            Err(error) => (Err(error), None, term),
        };
        let jitter = rand::rng().random_range(0.8..1.2);
        Ok(Box::new(NodeConnection {
            link,
            identity,
            term,
            opened,
            proven: opened,
            used: Instant::now(),
            expires: opened + LIFETIME.mul_f64(jitter),
            fate,
            evidence: None,
        }))
    }

    fn is_valid(&self, _: &mut Box<NodeConnection<C>>) -> Result<(), PoolError> {
        Ok(())
    }

    fn has_broken(&self, conn: &mut Box<NodeConnection<C>>) -> bool {
        conn.fate == Fate::Close
    }
}

fn not_made() -> DialError {
    DialError::death("not dialled, because nobody waited".to_owned())
}

/// Hands a connection that the pool closes over to the user's customizer.
pub(crate) struct Releaser<C>(pub(super) Dialer<C>);

impl<C> fmt::Debug for Releaser<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Releaser")
    }
}

impl<C: ReplicatedConnection> CustomizeConnection<Box<NodeConnection<C>>, PoolError>
    for Releaser<C>
{
    fn on_release(&self, conn: Box<NodeConnection<C>>) {
        if let Ok(conn) = conn.link {
            self.0.close(conn);
        }
    }
}

/// What becomes of a connection when it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Back into the pool.
    Keep,
    /// Closed: it is broken, or holds state that the next request must not see.
    Close,
}

/// A connection to one server, or the reason why there is none.
pub(crate) struct NodeConnection<C> {
    pub(crate) link: Result<C, DialError>,
    /// The server at the other end; `None` if there is none.
    pub(crate) identity: Option<Identity>,
    /// The node's term in which it was opened.
    pub(crate) term: Term,
    /// When dialling it began.
    pub(crate) opened: Instant,
    /// When it was dialled or pinged.
    pub(crate) proven: Instant,
    /// When it was lent or given back.
    pub(crate) used: Instant,
    pub(crate) expires: Instant,
    pub(crate) fate: Fate,
    /// The server's answer to `write_evidence` after the last failure.
    pub(crate) evidence: Option<String>,
}

impl<C: ReplicatedConnection> NodeConnection<C> {
    /// Tells whether a transaction is open, or the state of it unknown.
    pub(crate) fn in_transaction(&mut self) -> bool {
        match &mut self.link {
            Ok(conn) => match C::TransactionManager::transaction_manager_status_mut(conn) {
                TransactionManagerStatus::Valid(status) => status.transaction_depth().is_some(),
                TransactionManagerStatus::InError => true,
            },
            Err(_) => false,
        }
    }
}

/// The pool of one server.
pub(super) fn pool_of<C: ReplicatedConnection>(dialer: &Dialer<C>) -> Pool<NodeManager<C>> {
    // one thread a node and never a shared one: a host that swallows packets would keep the dials
    // of all others waiting; it ends with the pool, not when r2d2 next looks for idle connections
    let thread = ScheduledThreadPool::builder()
        .num_threads(1)
        .on_drop_behavior(OnPoolDropBehavior::DiscardPendingScheduled)
        .build();
    Pool::builder()
        .max_size(dialer.node.largest_pool())
        .min_idle(Some(0))
        .idle_timeout(Some(IDLE_TIMEOUT))
        .max_lifetime(None)
        .test_on_check_out(false)
        .connection_timeout(dialer.connect_timeout)
        // r2d2's own handler logs the text of the error
        .error_handler(Box::new(NopErrorHandler))
        .connection_customizer(Box::new(Releaser(dialer.clone())))
        .thread_pool(Arc::new(thread))
        .build_unchecked(NodeManager(dialer.clone()))
}

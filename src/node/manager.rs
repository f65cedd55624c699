//! The r2d2 manager of one server: opens its connections and says which are worth keeping.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::{TransactionManager, TransactionManagerStatus};
use diesel::r2d2::{CustomizeConnection, Error as PoolError, ManageConnection};
use diesel::result::{ConnectionError, QueryResult};
use parking_lot::{Mutex, RwLock};
use rand::Rng;

use crate::backend::ReplicatedConnection;
use crate::cluster::{NodeSettings, Role};

/// How old a connection may get: r2d2's `max_lifetime` has no jitter, so that all connections
/// of a deploy would expire together.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

type Customizer<C> = Arc<dyn CustomizeConnection<C, PoolError>>;
type Setup<C> = Arc<dyn Fn(&mut C, Role) -> QueryResult<()> + Send + Sync>;

/// What the user wants done with each node connection; shared by all nodes.
pub(crate) struct Hooks<C> {
    /// Protects the list while the manager is built; read once for each dial.
    inner: RwLock<HookList<C>>,
}

struct HookList<C> {
    customizer: Option<Customizer<C>>,
    setup: Vec<Setup<C>>,
}

impl<C> Default for Hooks<C> {
    fn default() -> Self {
        Self {
            inner: RwLock::new(HookList {
                customizer: None,
                setup: Vec::new(),
            }),
        }
    }
}

impl<C> Hooks<C> {
    pub(crate) fn set_customizer(&self, customizer: Customizer<C>) {
        self.inner.write().customizer = Some(customizer);
    }

    pub(crate) fn add_setup(&self, setup: Setup<C>) {
        self.inner.write().setup.push(setup);
    }

    fn customizer(&self) -> Option<Customizer<C>> {
        self.inner.read().customizer.clone()
    }

    fn setup(&self) -> Vec<Setup<C>> {
        self.inner.read().setup.clone()
    }
}

impl<C> fmt::Debug for Hooks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.read();
        f.debug_struct("Hooks")
            .field("customizer", &inner.customizer.is_some())
            .field("setup", &inner.setup.len())
            .finish()
    }
}

/// Opens connections to one server.
///
/// `connect` never fails: r2d2 hides a failure until its own timeout, so that it is handed
/// over as a value instead.
pub(crate) struct NodeManager<C> {
    pub(crate) node: NodeSettings,
    pub(crate) role: Role,
    pub(crate) hooks: Arc<Hooks<C>>,
    pub(crate) dials: Arc<Dials>,
}

/// What the one thread that dials a node and those who wait for it tell each other.
#[derive(Debug, Default)]
pub(crate) struct Dials {
    waiting: AtomicUsize,
    /// When the last dial succeeded.
    last_success: Mutex<Option<Instant>>,
}

impl Dials {
    /// Runs `f`, which waits for a dial.
    pub(crate) fn wait<R>(&self, f: impl FnOnce() -> R) -> R {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let result = f();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn is_anybody_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn note_success(&self) {
        *self.last_success.lock() = Some(Instant::now());
    }

    /// Tells whether a dial has succeeded since `then`: the server answers, if not at once.
    pub(crate) fn succeeded_since(&self, then: Instant) -> bool {
        self.last_success.lock().is_some_and(|last| last >= then)
    }
}

impl<C: ReplicatedConnection> NodeManager<C> {
    /// Opens one connection and makes it ready: the user's customizer first, because it may have
    /// to be the first to speak (an encryption key), then the read-only session, then the hooks.
    pub(crate) fn dial(&self) -> Result<C, String> {
        catch_unwind(AssertUnwindSafe(|| self.dial_and_prepare())).unwrap_or_else(|panic| {
            let said = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            Err(self
                .node
                .scrub(&format!("a connection hook panicked: {said}")))
        })
    }

    fn dial_and_prepare(&self) -> Result<C, String> {
        let scrub = |text: String| self.node.scrub(&text);
        let mut conn =
            C::open(self.node.dial_url(), self.role).map_err(|error| scrub(describe(&error)))?;
        if let Some(customizer) = self.hooks.customizer() {
            customizer
                .on_acquire(&mut conn)
                .map_err(|error| scrub(error.to_string()))?;
        }
        conn.prepare_session(self.role)
            .map_err(|error| scrub(error.to_string()))?;
        for setup in self.hooks.setup() {
            setup(&mut conn, self.role).map_err(|error| scrub(error.to_string()))?;
        }
        Ok(conn)
    }
}

/// The text of a connection error, without Diesel's advice that is no help to an operator.
fn describe(error: &ConnectionError) -> String {
    error.to_string().trim().to_owned()
}

impl<C: ReplicatedConnection> ManageConnection for NodeManager<C> {
    type Connection = NodeConnection<C>;
    type Error = PoolError;

    fn connect(&self) -> Result<NodeConnection<C>, PoolError> {
        let opened = Instant::now();
        // r2d2 still makes the dials of those who gave up, which would go on against a dead
        // server for as long as there were callers
        let (link, fate) = match self.dials.is_anybody_waiting() {
            true => (self.dial(), Fate::Keep),
            false => (Err("nobody waited for it".to_owned()), Fate::Close),
        };
        if link.is_ok() {
            self.dials.note_success();
        }
        let jitter = rand::rng().random_range(0.8..1.2);
        Ok(NodeConnection {
            link,
            opened,
            proven: opened,
            used: Instant::now(),
            expires: opened + LIFETIME.mul_f64(jitter),
            fate,
            evidence: None,
        })
    }

    fn is_valid(&self, _: &mut NodeConnection<C>) -> Result<(), PoolError> {
        Ok(())
    }

    fn has_broken(&self, conn: &mut NodeConnection<C>) -> bool {
        conn.fate == Fate::Close
    }
}

/// Hands a connection that is closed over to the user's customizer.
pub(crate) struct Releaser<C>(pub(crate) Arc<Hooks<C>>);

impl<C> fmt::Debug for Releaser<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Releaser")
    }
}

impl<C: ReplicatedConnection> CustomizeConnection<NodeConnection<C>, PoolError> for Releaser<C> {
    fn on_release(&self, conn: NodeConnection<C>) {
        // r2d2 calls this on a thread of its own, too: a panic there would end the reaper
        let released = catch_unwind(AssertUnwindSafe(|| {
            if let (Ok(conn), Some(customizer)) = (conn.link, self.0.customizer()) {
                customizer.on_release(conn);
            }
        }));
        if released.is_err() {
            log::error!("closing a node connection panicked");
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
    pub(crate) link: Result<C, String>,
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

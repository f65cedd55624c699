//! One server: its pool of connections, who may have one, and whether it answers.

mod circuit;
#[allow(dead_code)]
mod health;
#[allow(dead_code)]
mod history;
mod lease;
mod manager;
mod permits;
#[cfg(all(test, feature = "sqlite"))]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use r2d2::{NopErrorHandler, Pool, PooledConnection};
use scheduled_thread_pool::ScheduledThreadPool;

use self::circuit::{Change, Circuit};
pub(crate) use self::lease::{Lease, Tenancy};
use self::manager::Dials;
use self::manager::Releaser;
pub(crate) use self::manager::{Fate, Hooks, NodeConnection, NodeManager};
pub(crate) use self::permits::{Bell, Permit, Permits};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Candidate, NodeSettings, Role, Settings};
use crate::event;

/// How long an unused node connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The waits of the configuration that concern a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    connect_timeout: Duration,
    validate_after: Duration,
    quarantine: Duration,
}

impl Timing {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            connect_timeout: settings.connect_timeout,
            validate_after: settings.validate_after,
            quarantine: settings.quarantine,
        }
    }
}

/// One server of the cluster.
pub(crate) struct Node<C: ReplicatedConnection> {
    /// Its place in the cluster: 0 is the primary.
    place: usize,
    role: Role,
    settings: NodeSettings,
    timing: Timing,
    pool: Pool<NodeManager<C>>,
    dials: Arc<Dials>,
    permits: Arc<Permits>,
    state: Mutex<State>,
    reads: AtomicU64,
    writes: AtomicU64,
    errors: AtomicU64,
}

/// What is known of the server; changes only when something happens to it.
#[derive(Debug, Default)]
struct State {
    circuit: Circuit,
    /// Connections that were last proven before this moment are pinged before they are lent.
    last_loss: Option<Instant>,
    last_error: Option<Arc<str>>,
}

impl<C: ReplicatedConnection> Node<C> {
    pub(crate) fn new(
        place: usize,
        role: Role,
        settings: NodeSettings,
        timing: Timing,
        hooks: Arc<Hooks<C>>,
        bell: Arc<Bell>,
    ) -> Arc<Self> {
        let dials = Arc::new(Dials::default());
        let manager = NodeManager {
            node: settings.clone(),
            role,
            hooks: Arc::clone(&hooks),
            dials: Arc::clone(&dials),
        };
        // one thread a node and never a shared one: a host that swallows packets would
        // keep the dials of all others waiting
        let pool = Pool::builder()
            .max_size(settings.pool_size)
            .min_idle(Some(0))
            .idle_timeout(Some(IDLE_TIMEOUT))
            .max_lifetime(None)
            .test_on_check_out(false)
            .connection_timeout(timing.connect_timeout)
            // r2d2's own handler logs the text of the error
            .error_handler(Box::new(NopErrorHandler))
            .connection_customizer(Box::new(Releaser(hooks)))
            .thread_pool(Arc::new(ScheduledThreadPool::new(1)))
            .build_unchecked(manager);
        Arc::new(Self {
            permits: Permits::new(settings.pool_size, bell),
            place,
            role,
            settings,
            timing,
            pool,
            dials,
            state: Mutex::default(),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        })
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.settings.name
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }

    pub(crate) fn weight(&self) -> u32 {
        self.settings.weight
    }

    /// What a strategy is told of the node.
    pub(crate) fn candidate(&self) -> Candidate<'_> {
        Candidate::new(&self.settings.name, self.settings.weight, self.in_flight())
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.permits.taken()
    }

    pub(crate) fn permits(&self) -> &Arc<Permits> {
        &self.permits
    }

    /// Tells whether the node may be asked: not drained and not in quarantine.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.settings.weight > 0 && self.state.lock().circuit.admits(now)
    }

    /// Dials once, outside the pool, and says what went wrong.
    pub(crate) fn probe(&self) -> Result<(), String> {
        let manager = NodeManager::<C> {
            node: self.settings.clone(),
            role: self.role,
            hooks: Arc::default(),
            dials: Arc::default(),
        };
        manager.dial().map(drop)
    }

    /// Lends a connection under a permit, before `deadline`.
    pub(crate) fn lend(
        self: &Arc<Self>,
        permit: Permit,
        deadline: Instant,
    ) -> Result<Lease<C>, Denial> {
        let asked = Instant::now();
        let mut heard = asked;
        loop {
            let patience = deadline.min(heard + self.timing.connect_timeout);
            let left = patience.saturating_duration_since(Instant::now());
            let Ok(mut pooled) = self.dials.wait(|| self.pool.get_timeout(left)) else {
                let now = Instant::now();
                if now < deadline && self.dials.succeeded_since(heard) {
                    heard = now;
                    continue;
                }
                return Err(self.waited_in_vain(heard));
            };
            match self.admit(&mut pooled, asked) {
                Admission::Lend => {
                    self.reached(pooled.proven);
                    return Ok(Lease::new(Arc::clone(self), pooled, permit));
                }
                Admission::Discard => pooled.fate = Fate::Close,
                Admission::Failed(cause) => {
                    pooled.fate = Fate::Close;
                    drop(pooled);
                    return Err(Denial::NotAnswering(self.unreachable(cause)));
                }
            }
        }
    }

    /// Only silence for a whole `connect_timeout` says that the server is gone.
    fn waited_in_vain(&self, heard: Instant) -> Denial {
        let timeout = self.timing.connect_timeout;
        if heard.elapsed() < timeout || self.dials.succeeded_since(heard) {
            return Denial::Busy;
        }
        Denial::NotAnswering(self.unreachable(format!("no answer within {timeout:?}")))
    }

    fn admit(&self, pooled: &mut PooledConnection<NodeManager<C>>, asked: Instant) -> Admission {
        let now = Instant::now();
        let NodeConnection {
            link,
            opened,
            proven,
            used,
            expires,
            fate,
            ..
        } = &mut **pooled;
        let conn = match link {
            Ok(conn) => conn,
            // neither a failure from before this checkout nor a dial that was not made says
            // anything of the node now
            Err(_) if *opened < asked || *fate == Fate::Close => return Admission::Discard,
            Err(cause) => return Admission::Failed(cause.clone()),
        };
        if now >= *expires {
            return Admission::Discard;
        }
        let lost = self.state.lock().last_loss;
        let doubtful = now.duration_since(*used) >= self.timing.validate_after
            || lost.is_some_and(|lost| *proven <= lost);
        if doubtful {
            if conn.ping().is_err() {
                self.lost();
                return Admission::Discard;
            }
            *proven = now;
        }
        *used = Instant::now();
        Admission::Lend
    }

    /// Notes that a connection broke: those opened before this moment are pinged before use.
    pub(crate) fn lost(&self) {
        self.state.lock().last_loss = Some(Instant::now());
    }

    /// Notes that a connection was lost in the middle of a statement: the server is taken for gone.
    pub(crate) fn died(&self) {
        self.unreachable("the connection was lost".to_owned());
    }

    /// Notes that the server answered nothing or refused; a replica's circuit opens.
    pub(crate) fn unreachable(&self, cause: String) -> String {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let change = {
            let mut state = self.state.lock();
            state.last_error = Some(cause.as_str().into());
            state.last_loss = Some(now);
            match self.role {
                // pooled connections of the primary stay in use whatever a dial says
                Role::Primary => Change::None,
                Role::Replica => state.circuit.open(now, self.timing.quarantine),
            }
        };
        if change == Change::Opened {
            event::node_down(&self.settings.name, &cause, self.timing.quarantine);
        }
        cause
    }

    /// Notes that the server has answered at this moment.
    fn reached(&self, proven: Instant) {
        let change = {
            let mut state = self.state.lock();
            match state.last_loss.is_some_and(|lost| proven <= lost) {
                true => Change::None,
                false => state.circuit.close(),
            }
        };
        if change == Change::Closed {
            event::node_up(&self.settings.name);
        }
    }

    pub(crate) fn count(&self, use_: Use) {
        let counter = match use_ {
            Use::Read => &self.reads,
            Use::Write => &self.writes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The last error of the node, without secrets.
    pub(crate) fn last_error(&self) -> Option<Arc<str>> {
        self.state.lock().last_error.clone()
    }

    /// Tells whether the last thing known of the node is that it does not answer.
    pub(crate) fn is_down(&self) -> bool {
        self.state.lock().circuit.is_open()
    }

    /// Statements answered as (reads, writes, errors).
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (get(&self.reads), get(&self.writes), get(&self.errors))
    }

    /// Connections of the pool as (open, idle).
    pub(crate) fn connections(&self) -> (u32, u32) {
        let state = self.pool.state();
        (state.connections, state.idle_connections)
    }
}

/// What a statement was to the node that answered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// Why a node lent no connection although it had a permit to give.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The server refuses or is silent; a replica's circuit is open now.
    NotAnswering(String),
    /// It was not long enough to tell.
    Busy,
}

enum Admission {
    Lend,
    Discard,
    Failed(String),
}

impl<C: ReplicatedConnection> fmt::Debug for Node<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("settings", &self.settings)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

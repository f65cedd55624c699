//! One server: its pool of connections, who may have one, and whether it answers.

mod checkout;
mod dialer;
mod health;
mod history;
mod hooks;
mod knowledge;
mod latency;
mod lease;
mod manager;
mod permits;
mod prober;
mod term;
#[cfg(all(test, feature = "sqlite"))]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use r2d2::Pool;

pub(crate) use self::checkout::Denial;
pub(crate) use self::dialer::DialError;
use self::dialer::{Dialer, Dials, Stage};
pub use self::health::NodeState;
pub(crate) use self::health::{Change, Event, Evidence, HealthSettings, Refusal, Watch};
use self::health::{Dialler, Health};
pub(crate) use self::history::{Era, Freshness, History, Life, Recorded, Source};
pub(crate) use self::hooks::Hooks;
pub(crate) use self::knowledge::Known;
pub(crate) use self::latency::Latency;
pub(crate) use self::lease::{Acquaintance, Lease, Origin, Tenancy};
use self::manager::pool_of;
pub(crate) use self::manager::{Fate, NodeConnection, NodeManager};
pub(crate) use self::permits::{Bell, Permit, Permits};
pub(crate) use self::prober::{Answer, Ask, Numbers, Prober, Share};
use self::term::{PresentTerm, Term};
use crate::backend::ReplicatedConnection;
use crate::cluster::{NodeSettings, Role, Settings};
use crate::event::Events;
use crate::report::Report;

/// What the monitor of a cluster is told.
#[derive(Debug)]
pub(crate) enum News {
    /// A probe has passed or failed.
    Answer(Box<Answer>),
    /// Something happened that makes a closer look worth while.
    Alarm,
    /// Somebody waits for every node to be probed.
    Check,
    /// A read waits for a replica to catch up.
    Awaited,
    /// The nodes have changed.
    Members,
    /// The cluster is gone.
    Stop,
}

/// The parts of a node that all nodes of a cluster have in common.
pub(crate) struct Common<C> {
    pub(crate) timing: Timing,
    pub(crate) health: HealthSettings,
    pub(crate) hooks: Arc<Hooks<C>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) events: Events,
    pub(crate) news: Sender<News>,
}

/// The waits of the configuration that concern a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    connect_timeout: Duration,
    validate_after: Duration,
}

impl Timing {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            connect_timeout: settings.connect_timeout,
            validate_after: settings.validate_after,
        }
    }
}

/// One server of the cluster.
pub(crate) struct Node<C: ReplicatedConnection> {
    /// Tells it from all nodes that the cluster has or had.
    place: usize,
    /// What the configuration calls it.
    configured: Role,
    settings: Arc<NodeSettings>,
    timing: Timing,
    pool: Pool<NodeManager<C>>,
    dialer: Dialer<C>,
    permits: Arc<Permits>,
    known: Mutex<Known>,
    /// As `known` had it last: read for each statement of a block.
    gone: AtomicBool,
    /// It was asked how it is, as `known` has it: read for each block.
    was_asked: AtomicBool,
    events: Events,
    news: Sender<News>,
    reads: AtomicU64,
    writes: AtomicU64,
    errors: AtomicU64,
}

impl<C: ReplicatedConnection> Node<C> {
    pub(crate) fn new(
        place: usize,
        role: Role,
        settings: NodeSettings,
        common: &Common<C>,
    ) -> Arc<Self> {
        let settings = Arc::new(settings);
        let timing = common.timing;
        let dialer = Dialer {
            node: Arc::clone(&settings),
            term: Arc::new(PresentTerm::new(role)),
            hooks: Arc::clone(&common.hooks),
            dials: Arc::new(Dials::default()),
            connect_timeout: timing.connect_timeout,
        };
        let pool = pool_of(&dialer);
        let node = Arc::new(Self {
            permits: Permits::new(settings.pool_size(role), Arc::clone(&common.bell)),
            known: Mutex::new(Known::new(
                place,
                Health::new(role, common.health, Instant::now()),
            )),
            place,
            configured: role,
            pool,
            settings,
            timing,
            dialer,
            gone: AtomicBool::new(false),
            was_asked: AtomicBool::new(false),
            events: common.events.clone(),
            news: common.news.clone(),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        });
        if node.settings.weight == 0 && role == Role::Replica {
            // it was configured so, which is no news
            node.known.lock().on(Event::Drained, Instant::now());
        }
        node
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.settings.name
    }

    pub(crate) fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    pub(crate) fn role(&self) -> Role {
        self.term().role()
    }

    fn term(&self) -> Term {
        self.dialer.term.get()
    }

    pub(crate) fn configured(&self) -> Role {
        self.configured
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.permits.taken()
    }

    pub(crate) fn permits(&self) -> &Arc<Permits> {
        &self.permits
    }

    /// What is known of the server.
    pub(crate) fn known(&self) -> parking_lot::MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// Tells whether the node may be asked for a read that accepts data of this age, if it says so.
    pub(crate) fn admits(&self, limit: Option<Duration>, now: Instant) -> bool {
        self.known.lock().health.admits(limit, now)
    }

    /// Tells, without a lock, whether a statement should rather not go on here.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Tells, without a lock, whether the server was ever asked how it is, with whatever result.
    pub(crate) fn was_asked(&self) -> bool {
        self.was_asked.load(Ordering::Acquire)
    }

    /// Tells whether a caller may dial the server.
    pub(crate) fn may_dial(&self, now: Instant) -> bool {
        self.known.lock().health.may_dial(Dialler::Caller, now)
    }

    /// Tells whether the monitor may probe the server.
    pub(crate) fn may_probe(&self, now: Instant) -> bool {
        self.known.lock().health.may_dial(Dialler::Monitor, now)
    }

    /// Tells whether the server's load, as it was last asked for, is older than `life`.
    pub(crate) fn wants_load(&self, life: Duration, now: Instant) -> bool {
        let numbers = self.known.lock().numbers;
        numbers.is_none_or(|(_, asked)| now.saturating_duration_since(asked) >= life)
    }

    /// Uses the server in a role from now on: what was opened before is closed, unused connections
    /// at once and those in use at the end of their statement.
    pub(crate) fn begin_term(&self, role: Role, now: Instant) {
        self.dialer.term.begin(role);
        self.permits.resize(self.settings.pool_size(role));
        self.note(Event::RoleChanged(role), now);
        let open: Vec<_> = std::iter::from_fn(|| self.pool.try_get()).collect();
        let mut closed = 0;
        for mut pooled in open {
            if pooled.term != self.term() {
                pooled.fate = Fate::Close;
                closed += 1;
            }
        }
        self.events
            .retired(self.name(), role, closed, self.in_flight());
    }

    /// Starts a thread that probes the server and hands each answer to the monitor.
    pub(crate) fn prober(
        &self,
        number: u64,
        timeout: Duration,
        share: Share,
    ) -> std::io::Result<Prober> {
        let news = self.news.clone();
        let reply = move |answer| {
            // a cluster that is gone wants no answers
            let _ = news.send(News::Answer(Box::new(answer)));
        };
        Prober::start(
            self.dialer.clone(),
            self.place,
            number,
            timeout,
            share,
            reply,
        )
    }

    /// Dials once, outside the pool, and says what went wrong.
    pub(crate) fn look(&self) -> Result<(), String> {
        let dialled = self.dialer.dial(dialer::Purpose::Statements);
        dialled
            .map(|dialled| self.dialer.close(dialled.conn))
            .map_err(|error| error.cause)
    }

    /// Notes that a connection broke: those opened before this moment are pinged before use.
    pub(crate) fn lost(&self) {
        self.known.lock().last_loss = Some(Instant::now());
        self.alarm();
    }

    /// Notes that a connection opened then was lost in the middle of a statement.
    pub(crate) fn died(&self, opened: Instant) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        {
            let lost = DialError::death("the connection was lost".to_owned());
            self.known.lock().failed(&lost, now);
        }
        self.note(Event::ConnectionLost { opened }, now);
        self.alarm();
    }

    /// Notes that a dial that began then has failed.
    fn unreachable(&self, began: Instant, error: DialError) -> DialError {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let failure = error.failure();
        let is_new = self.known.lock().failed(&error, now);
        if is_new && error.stage == Stage::Preparing {
            self.events.not_ready(self.name(), &error.cause);
        }
        self.note(Event::DialFailed { began, failure }, now);
        self.alarm();
        error
    }

    /// Takes in what the server said when it was asked at `sent`.
    pub(crate) fn heard(&self, sent: Instant, report: Report, numbers: Option<Numbers>) {
        let missing = self.known.lock().heard(sent, report, numbers);
        self.was_asked.store(true, Ordering::Release);
        if let Some(grant) = missing {
            self.events.missing_grant(self.name(), grant);
        }
    }

    /// Takes in how far the server has come, asked on a connection that leads to it.
    pub(crate) fn has_come(&self, report: Report, sent: Instant) {
        self.known.lock().has_come(report, sent);
    }

    /// Notes that a probe failed that was sent then.
    pub(crate) fn probe_failed(&self, sent: Instant, error: DialError, now: Instant) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.known.lock().failed(&error, now);
        self.note(Event::ProbeFailed(error.failure()), now);
        // whoever sees that it was asked also sees what that made of it
        self.known.lock().asked = Some(sent);
        self.was_asked.store(true, Ordering::Release);
    }

    /// Takes in what happened, and tells of what it changed.
    pub(crate) fn note(&self, event: Event, at: Instant) {
        let (change, last_error) = {
            let mut known = self.known.lock();
            let change = known.on(event, at);
            self.gone.store(known.is_gone(), Ordering::Relaxed);
            (change, known.last_error())
        };
        if let Some(change) = change {
            self.events
                .node_changed(self.name(), self.role(), &change, last_error.as_deref());
        }
    }

    /// Asks the monitor for a closer look.
    pub(crate) fn alarm(&self) {
        // without a monitor nobody listens
        let _ = self.news.send(News::Alarm);
    }

    /// Notes that a connection was in use for so long.
    fn was_used(&self, took: Duration, now: Instant) {
        let mut known = self.known.lock();
        known.latency = Some(Latency::after(known.latency, took, now));
    }

    pub(crate) fn count(&self, use_: Use) {
        let counter = match use_ {
            Use::Read => &self.reads,
            Use::Write => &self.writes,
        };
        counter.fetch_add(1, Ordering::Relaxed);
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

impl<C: ReplicatedConnection> fmt::Debug for Node<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("settings", &self.settings)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

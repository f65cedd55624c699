//! The thread that has every node probed.
//!
//! It does no I/O itself, so that no server can hold it up: each node has a prober with a thread
//! and a connection of its own. One that gets no answer is given up and replaced; the node is down
//! by then, by the age of its last good probe. It holds the cluster weakly, and ends with it.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;

use super::Inner;
use super::config::PROBE_TIMEOUT;
use super::members::Seat;
use crate::backend::ReplicatedConnection;
use crate::node::{Ask, Event, News, Node, NodeState, Prober, Share};

/// How often nodes are probed for a while after something has happened.
const FAST: Duration = Duration::from_millis(250);
/// For how long.
const WHILE: Duration = Duration::from_secs(30);
/// The shortest time from one probe of a node to the next.
const BREATH: Duration = Duration::from_millis(50);

/// The same while reads wait for a replica to catch up.
const SHORT_BREATH: Duration = Duration::from_millis(10);
/// How many probers of a node may be stuck before no more are started.
const MOST_STUCK: usize = 3;
/// How long replicas wait for the first sample of the primary, without which theirs say nothing.
const FIRST_SAMPLE: Duration = Duration::from_millis(300);
/// How often it is told that something is not as it should be.
const SUMMARY: Duration = Duration::from_secs(60);

type States = Vec<(usize, Discriminant<NodeState>)>;

/// Starts the thread.
pub(super) fn start<C: ReplicatedConnection>(
    cluster: &Arc<Inner<C>>,
    news: Receiver<News>,
) -> std::io::Result<()> {
    let settings = &cluster.config.settings;
    let now = Instant::now();
    let mut monitor = Monitor {
        cluster: Arc::downgrade(cluster),
        interval: settings.check_interval,
        stuck_after: settings.connect_timeout + 2 * PROBE_TIMEOUT,
        load_life: settings.load_life(),
        share: cluster.config.share(),
        desks: HashMap::new(),
        fast_until: now,
        summary: now + SUMMARY,
    };
    thread::Builder::new()
        .name("routed monitor".to_owned())
        .spawn(move || monitor.run(&news))
        .map(drop)
}

struct Monitor<C: ReplicatedConnection> {
    cluster: Weak<Inner<C>>,
    /// Zero: probes are made only when somebody asks for them.
    interval: Duration,
    /// How long a prober may take to answer.
    stuck_after: Duration,
    /// How old a server's load may get before it is asked for again; `None`: nobody wants it.
    load_life: Option<Duration>,
    share: Share,
    /// By the place of the node.
    desks: HashMap<usize, Desk>,
    fast_until: Instant,
    /// When a summary is due.
    summary: Instant,
}

/// Where the probes of one node are looked after.
struct Desk {
    prober: Option<Prober>,
    /// How many probers there were.
    count: u64,
    /// How many of them never answered.
    stuck: usize,
    /// When the question was sent that is not answered yet.
    pending: Option<Instant>,
    asked: Option<Instant>,
    next: Option<Instant>,
}

impl<C: ReplicatedConnection> Monitor<C> {
    fn run(&mut self, news: &Receiver<News>) {
        loop {
            let wait = self.look_after_all();
            let Some(wait) = wait else {
                return;
            };
            match news.recv_timeout(wait) {
                Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn take(&mut self, news: News) {
        let Some(cluster) = self.cluster.upgrade() else {
            return;
        };
        let now = Instant::now();
        match news {
            News::Answer(answer) => {
                let (place, prober) = (answer.place, answer.prober);
                if self.is_awaited(place, prober, now) {
                    let before = states(&cluster, now);
                    cluster.learn(*answer);
                    self.follow_up(&cluster, place, &before, now);
                }
            }
            News::Alarm if self.interval.is_zero() => {}
            News::Alarm => self.hurry(&cluster, now),
            News::Check => self.soon(&cluster, now, BREATH, |_| true),
            News::Awaited => self.soon(&cluster, now, SHORT_BREATH, |_| true),
            News::Members | News::Stop => {}
        }
    }

    /// Notes that an answer has come; one of a prober that was given up is no answer any more.
    fn is_awaited(&mut self, place: usize, prober: u64, now: Instant) -> bool {
        let pause = self.pause(now);
        let Some(desk) = self.desks.get_mut(&place) else {
            return false;
        };
        if desk.count != prober {
            desk.stuck = desk.stuck.saturating_sub(1);
            return false;
        }
        desk.pending = None;
        desk.next = match self.interval.is_zero() {
            true => None,
            false => Some(now + pause),
        };
        true
    }

    /// The time until the next probe, with a jitter so that a fleet does not act in step.
    fn pause(&self, now: Instant) -> Duration {
        let pause = match now < self.fast_until {
            true => self.interval.min(FAST),
            false => self.interval,
        };
        pause.mul_f64(rand::rng().random_range(0.9..1.1))
    }

    /// Asks again at once where an answer makes that worth while.
    fn follow_up(&mut self, cluster: &Inner<C>, place: usize, before: &States, now: Instant) {
        if !self.interval.is_zero() && *before != states(cluster, now) {
            self.hurry(cluster, now);
        }
        if matches!(cluster.members().seat, Seat::Contested(..)) {
            // the next answers may decide
            self.soon(cluster, now, BREATH, |_| true);
        }
        let is_primary = cluster.members().seat == Seat::Taken(place);
        let unsure = |node: &Node<C>| node.known().health.state(now) == NodeState::Unknown;
        if is_primary {
            // their positions say something now
            self.soon(cluster, now, BREATH, |node| {
                node.place() != place && unsure(node)
            });
        } else if cluster
            .members()
            .find(place)
            .is_some_and(|node| unsure(node))
        {
            self.soon(cluster, now, BREATH, |node| {
                cluster.members().seat == Seat::Taken(node.place())
            });
        }
    }

    /// Probes more often for a while.
    fn hurry(&mut self, cluster: &Inner<C>, now: Instant) {
        self.fast_until = now + WHILE;
        self.soon(cluster, now, BREATH, |_| true);
    }

    /// Probes those nodes as soon as they have taken a breath.
    fn soon(
        &mut self,
        cluster: &Inner<C>,
        now: Instant,
        breath: Duration,
        which: impl Fn(&Node<C>) -> bool,
    ) {
        for node in cluster.members().nodes.iter().filter(|node| which(node)) {
            if let Some(desk) = self.desks.get_mut(&node.place()) {
                let earliest = desk.asked.map_or(now, |asked| now.max(asked + breath));
                desk.next = Some(desk.next.map_or(earliest, |next| next.min(earliest)));
            }
        }
    }

    /// Asks whoever is due; returns how long there is nothing to do, or `None` at the end.
    fn look_after_all(&mut self) -> Option<Duration> {
        let cluster = self.cluster.upgrade()?;
        let now = Instant::now();
        let members = cluster.members();
        self.desks.retain(|place, _| {
            let stays = members.find(*place).is_some();
            if !stays {
                cluster.forget(*place);
            }
            stays
        });
        let mut wait = SUMMARY;
        let mut silenced = false;
        for node in &members.nodes {
            silenced |= fell_silent(node, now);
            let due = self.look_after(node, members.seat, now);
            let due = due.map_or(SUMMARY, |due| due.saturating_duration_since(now));
            wait = wait.min(due);
        }
        if silenced {
            cluster.tell_roles(now);
            self.hurry(&cluster, now);
            wait = BREATH;
        }
        if now >= self.summary {
            self.summary = now + SUMMARY;
            cluster.summarise(now);
        }
        // silence is noticed in time without being told
        Some(wait.clamp(Duration::from_millis(1), FAST.max(self.interval)))
    }

    /// Asks one node, if it is due; returns when to look at it next.
    fn look_after(&mut self, node: &Arc<Node<C>>, seat: Seat, now: Instant) -> Option<Instant> {
        let first = match seat == Seat::Taken(node.place()) {
            true => now,
            false => now + FIRST_SAMPLE,
        };
        let desk = self
            .desks
            .entry(node.place())
            .or_insert_with(|| Desk::new(first));
        if let Some(pending) = desk.pending {
            let stuck_at = pending + self.stuck_after;
            if now < stuck_at || desk.stuck >= MOST_STUCK {
                return Some(stuck_at.max(now + BREATH));
            }
            // left to its thread, which ends when the server lets it go
            desk.prober = None;
            desk.pending = None;
            desk.stuck += 1;
            desk.next = Some(now);
        }
        let next = desk.next?;
        if now < next {
            return Some(next);
        }
        if !node.may_probe(now) {
            desk.next = Some(now + self.interval.max(BREATH));
            return desk.next;
        }
        let wants_load = |life| node.wants_load(life, now);
        let ask = match self.load_life.is_some_and(wants_load) {
            true => Ask::StateAndLoad,
            false => Ask::State,
        };
        desk.ask(node, ask, &self.share, now);
        Some(now + self.stuck_after)
    }
}

impl Desk {
    fn new(first: Instant) -> Self {
        Self {
            prober: None,
            count: 0,
            stuck: 0,
            pending: None,
            asked: None,
            next: Some(first),
        }
    }

    fn ask<C: ReplicatedConnection>(
        &mut self,
        node: &Node<C>,
        ask: Ask,
        share: &Share,
        now: Instant,
    ) {
        if self.prober.is_none() {
            self.count += 1;
            self.prober = node
                .prober(self.count, PROBE_TIMEOUT, Arc::clone(share))
                .ok();
        }
        if let Some(prober) = &self.prober {
            prober.ask(ask);
        }
        // without a thread the node falls silent, and another try is made later
        self.pending = Some(now);
        self.asked = Some(now);
        self.next = None;
    }
}

/// Notes that the last good probe of a node is too old, if it is.
fn fell_silent<C: ReplicatedConnection>(node: &Node<C>, now: Instant) -> bool {
    let before = node.known().health.last_state();
    let is_down = |state| matches!(state, NodeState::Down { .. });
    if is_down(before) || !is_down(node.known().health.state(now)) {
        return false;
    }
    node.note(Event::Silence, now);
    true
}

/// The state of each node by its place, without details.
fn states<C: ReplicatedConnection>(cluster: &Inner<C>, now: Instant) -> States {
    let kind = |node: &Arc<Node<C>>| discriminant(&node.known().health.state(now));
    let members = cluster.members();
    let states = members.nodes.iter().map(|node| (node.place(), kind(node)));
    states.collect()
}

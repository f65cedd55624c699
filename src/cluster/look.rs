//! Having the nodes looked at: for the first time, regularly, or when somebody asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::config::PROBE_TIMEOUT;
use super::{Inner, monitor};
use crate::backend::ReplicatedConnection;
use crate::context::{Has, Need, Replicas};
use crate::node::{Known, News, Node, NodeState};

/// How long the first caller waits at most for replicas that are only just not known to be fresh.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// Tells whether a node has answered and is just not known to be fresh yet; one that refuses to answer
/// is not known either, and nothing will come of it soon.
fn is_unsure(known: &Known, now: Instant) -> bool {
    known.report.is_some() && known.health.state(now) == NodeState::Unknown
}

impl<C: ReplicatedConnection> fmt::Debug for Inner<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("name", &self.config.settings.name)
            .finish_non_exhaustive()
    }
}

impl<C: ReplicatedConnection> Replicas for Inner<C> {
    fn all_have(&self, need: &Need) -> bool {
        let (now, era) = (Instant::now(), self.era());
        self.members().replicas.iter().all(|node| {
            let known = node.known();
            let drained = known.health.last_state() == NodeState::Drained;
            drained || !known.is_shared && known.has(need, era, now) == Has::All
        })
    }
}

impl<C: ReplicatedConnection> Inner<C> {
    /// Has the nodes looked after, for a read; the first ones wait until each node has been looked at
    /// once, but no longer than a probe takes.
    pub(super) fn attend_read(self: &Arc<Self>) {
        self.attend(|started| started + PROBE_TIMEOUT);
    }

    /// Has the nodes looked after, for a write; the first ones wait longer than reads, as who is
    /// primary is not known before all have answered, or were given the time to.
    ///
    /// But a quarter of the time until `deadline` is left: a node that is all silence must not make a
    /// write fail which another one takes.
    pub(super) fn attend_write(self: &Arc<Self>, deadline: Instant) {
        self.attend(|started| {
            let left = deadline.saturating_duration_since(Instant::now());
            (started + self.config.settings.connect_timeout).min(deadline - left / 4)
        });
    }

    fn attend(self: &Arc<Self>, until: impl FnOnce(Instant) -> Instant) {
        if self.looked.load(Ordering::Acquire) {
            self.refresh();
            return;
        }
        if self.members().nodes.len() > 1 {
            let started = *self.started.lock().get_or_insert_with(Instant::now);
            self.refreshed.lock().get_or_insert(started);
            self.wake();
            let (bell, until) = (&self.common.bell, until(started));
            let asked = |node: &Arc<Node<C>>| node.was_asked();
            let in_time = bell.wait_for(until, || self.all(asked).then_some(()));
            if in_time.is_some() {
                let sure = |node: &Arc<Node<C>>| !is_unsure(&node.known(), Instant::now());
                let patience = until.min(Instant::now() + FIRST_LOOK);
                bell.wait_for(patience, || self.all(sure).then_some(()));
            } else if started.elapsed() < self.config.settings.connect_timeout {
                return;
            }
        }
        self.looked.store(true, Ordering::Release);
    }

    /// Waits until the primary has answered or failed once, if replicas wait for that: until then
    /// none of them is known to be fresh, and a primary that is all silence would be asked.
    pub(super) fn hear_primary(&self) {
        let settled = || {
            let members = self.members.read();
            let heard = |primary: &Arc<Node<C>>| primary.was_asked();
            let waits = |node: &Arc<Node<C>>| is_unsure(&node.known(), Instant::now());
            members.primary().is_none_or(heard) || !members.replicas.iter().any(waits)
        };
        // nearly always, and the bell has a lock that all readers would meet at
        if settled() {
            return;
        }
        // the dial of its prober fails by then
        let deadline = Instant::now() + self.config.settings.connect_timeout + PROBE_TIMEOUT;
        self.common
            .bell
            .wait_for(deadline, || settled().then_some(()));
    }

    /// Starts the monitor, unless it runs.
    pub(super) fn wake(self: &Arc<Self>) {
        let inbox = self.inbox.lock().take();
        if let Some(inbox) = inbox {
            if let Err(error) = monitor::start(self, inbox) {
                self.common.events.no_monitor(&error);
            }
        }
    }

    fn all(&self, condition: impl Fn(&Arc<Node<C>>) -> bool) -> bool {
        self.members().nodes.iter().all(condition)
    }

    /// Tells whether every node has answered, or failed, a question sent since `then`.
    pub(super) fn have_answered_since(&self, then: Instant) -> bool {
        self.all(|node| node.known().was_asked_since(then))
    }

    /// Has every node asked now, and waits until the primary has answered and a replica, or for as
    /// long as it is worth while.
    pub(super) fn ask_anew(self: &Arc<Self>, until: Instant) {
        self.wake();
        let asked = Instant::now();
        // the monitor makes one probe of many such questions
        let _ = self.common.news.send(News::Awaited);
        let heard = |node: &Arc<Node<C>>| node.known().was_asked_since(asked);
        let answered = || {
            let members = self.members();
            let primary = members.primary().is_none_or(heard);
            (primary && members.replicas.iter().any(heard)).then_some(())
        };
        self.common.bell.wait_for(until, answered);
    }

    /// Tells whether the nodes are probed regularly.
    pub(super) fn is_monitored(&self) -> bool {
        !self.config.settings.check_interval.is_zero() && self.inbox.lock().is_none()
    }

    /// Has the nodes looked at, where nobody does so regularly and the last look is too long ago.
    ///
    /// By one caller; the others go by what is known, and so does that one.
    pub(super) fn refresh(self: &Arc<Self>) {
        let settings = &self.config.settings;
        if !settings.check_interval.is_zero() || self.members().nodes.len() < 2 {
            return;
        }
        let now = Instant::now();
        {
            let mut refreshed = self.refreshed.lock();
            let recent = |at: Instant| now.saturating_duration_since(at) < settings.check_ttl;
            if refreshed.is_some_and(recent) {
                return;
            }
            *refreshed = Some(now);
        }
        let _ = self.common.news.send(News::Check);
    }

    /// Tells what is not as it should be, if anything is not.
    pub(super) fn summarise(&self, now: Instant) {
        let members = self.members();
        let state = |node: &Arc<Node<C>>| node.known().health.state(now);
        let fine = |node: &Arc<Node<C>>| matches!(state(node), NodeState::Up | NodeState::Drained);
        if members.nodes.iter().all(fine) {
            return;
        }
        let states = members.nodes.iter().map(|node| {
            let since = node.known().health.since();
            let lasted = now.saturating_duration_since(since).as_secs();
            format!("{} {} for {lasted} s", node.name(), state(node))
        });
        let states: Vec<_> = states.collect();
        let name = &self.config.settings.name;
        self.common
            .events
            .summary(&format!("cluster {name:?}: {}", states.join(", ")));
    }
}

//! Dialling one server: within a time, not too often at once, and with everything done that a
//! connection needs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use diesel::result::{ConnectionError, Error};
use parking_lot::{Condvar, Mutex};

use super::health::Failure;
use super::hooks::Hooks;
use super::term::{PresentTerm, Term};
use crate::backend::ReplicatedConnection;
use crate::cluster::NodeSettings;
use crate::report::{ErrorClass, Identity};

/// How many dials to one server may be under way: after a promotion a whole fleet dials.
const AT_ONCE: usize = 2;

/// A dial that hangs for longer counts no more: a server that is well again has to be reached.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// Opens connections to one server.
pub(crate) struct Dialer<C> {
    pub(super) node: Arc<NodeSettings>,
    pub(super) term: Arc<PresentTerm>,
    pub(super) hooks: Arc<Hooks<C>>,
    pub(super) dials: Arc<Dials>,
    pub(super) connect_timeout: Duration,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Statements of the application, in the role of the node.
    Statements,
    /// Probes that take no longer than this.
    Probes(Duration),
}

/// An open connection, with what was found out by opening it.
pub(super) struct Dialled<C> {
    pub(super) conn: C,
    pub(super) identity: Identity,
    pub(super) term: Term,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialError {
    /// Without secrets.
    pub(crate) cause: String,
    pub(crate) class: ErrorClass,
    pub(crate) stage: Stage,
}

/// How far a dial came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not to an open connection.
    Opening,
    /// The connection was open, but could not be made ready: mostly a hook of the user's.
    Preparing,
}

impl DialError {
    pub(super) fn death(cause: String) -> Self {
        Self {
            cause,
            class: ErrorClass::Death,
            stage: Stage::Opening,
        }
    }

    fn hook(cause: String) -> Self {
        Self {
            cause,
            class: ErrorClass::Query,
            stage: Stage::Preparing,
        }
    }

    /// What it says of the node.
    pub(super) fn failure(&self) -> Failure {
        match (self.class, self.stage) {
            (ErrorClass::Load, _) => Failure::Load,
            (ErrorClass::Authentication, _) => Failure::Authentication,
            (ErrorClass::Death, _) | (_, Stage::Opening) => Failure::Death,
            // it answers: no probe would find anything wrong
            (_, Stage::Preparing) => Failure::Load,
        }
    }
}

impl<C> Clone for Dialer<C> {
    fn clone(&self) -> Self {
        Self {
            node: Arc::clone(&self.node),
            term: Arc::clone(&self.term),
            hooks: Arc::clone(&self.hooks),
            dials: Arc::clone(&self.dials),
            connect_timeout: self.connect_timeout,
        }
    }
}

impl<C: ReplicatedConnection> Dialer<C> {
    /// Opens one connection and makes it ready, within `connect_timeout`.
    ///
    /// Not every client library can be told a timeout, and none has one for a host name, so that
    /// the dial has a thread of its own; one that hangs is left to it.
    pub(super) fn dial(&self, purpose: Purpose) -> Result<Dialled<C>, DialError> {
        let deadline = Instant::now() + self.connect_timeout;
        let in_vain = || DialError::death(format!("no answer within {:?}", self.connect_timeout));
        let turn = self.dials.take_turn(deadline).ok_or_else(in_vain)?;
        let (sender, receiver) = mpsc::channel();
        let dialer = self.clone();
        let spawned = thread::Builder::new()
            .name(format!("dial {}", self.node.name))
            .spawn(move || {
                let dialled = dialer.dial_caught(purpose);
                drop(turn);
                // nobody listens any more if it took too long
                let _ = sender.send(dialled);
            });
        if let Err(error) = spawned {
            return Err(DialError::death(format!("no thread to dial: {error}")));
        }
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(dialled)) => {
                self.dials.note_success();
                Ok(dialled)
            }
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(in_vain()),
        }
    }

    fn dial_caught(&self, purpose: Purpose) -> Result<Dialled<C>, DialError> {
        let dialled = catch_unwind(AssertUnwindSafe(|| self.dial_here(purpose)));
        dialled.unwrap_or_else(|panic| {
            let said = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            let text = format!("a connection hook panicked: {said}");
            Err(DialError::hook(self.node.scrub(&text)))
        })
    }

    /// The user's customizer comes first, because it may have to be the first to speak (an
    /// encryption key), then the read-only session, then the hooks.
    fn dial_here(&self, purpose: Purpose) -> Result<Dialled<C>, DialError> {
        let term = self.term.get();
        let url = self.node.dial_url();
        let opened = match purpose {
            Purpose::Statements => C::open(url, term.role()),
            Purpose::Probes(timeout) => C::open_probe(url, term.role(), timeout),
        };
        let mut conn = opened.map_err(|error| self.refused(&error))?;
        if let Some(customizer) = self.hooks.customizer() {
            let done = customizer.on_acquire(&mut conn);
            done.map_err(|error| DialError::hook(self.node.scrub(&error.to_string())))?;
        }
        let failed = |error: Error| self.failed(&error);
        // a probe asks how the server itself is set, and runs nothing of the application's
        match purpose {
            Purpose::Probes(timeout) => conn.prepare_probe(timeout).map_err(failed)?,
            Purpose::Statements => {
                conn.prepare_session(term.role()).map_err(failed)?;
                for setup in self.hooks.setup() {
                    setup(&mut conn, term.role()).map_err(failed)?;
                }
            }
        }
        Ok(Dialled {
            identity: conn.identify().map_err(failed)?,
            conn,
            term,
        })
    }

    /// Closes a connection, and lets the user's customizer know.
    pub(super) fn close(&self, conn: C) {
        self.hooks.release(conn, &self.node.name);
    }

    fn refused(&self, error: &ConnectionError) -> DialError {
        DialError {
            cause: self.node.scrub(&error.to_string()),
            class: C::class_of_dial(error),
            stage: Stage::Opening,
        }
    }

    /// Describes what a statement of the router, or of a hook, met.
    pub(super) fn failed(&self, error: &Error) -> DialError {
        DialError {
            cause: self.node.scrub(&error.to_string()),
            class: C::class_of(error),
            stage: Stage::Preparing,
        }
    }
}

impl<C> fmt::Debug for Dialer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// What those who dial a node, and those who wait for it, tell each other.
#[derive(Debug, Default)]
pub(crate) struct Dials {
    waiting: AtomicUsize,
    /// When the last dial succeeded.
    last_success: Mutex<Option<Instant>>,
    /// When the dials began that are under way.
    under_way: Mutex<Vec<Instant>>,
    ended: Condvar,
}

fn has_room(under_way: &[Instant], now: Instant) -> bool {
    let young = |began: &&Instant| now.saturating_duration_since(**began) < GIVEN_UP;
    under_way.iter().filter(young).count() < AT_ONCE
}

impl Dials {
    /// Runs `f`, which waits for a dial.
    pub(super) fn wait<R>(&self, f: impl FnOnce() -> R) -> R {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let result = f();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }

    pub(super) fn is_anybody_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn note_success(&self) {
        *self.last_success.lock() = Some(Instant::now());
    }

    /// Tells whether a dial has succeeded since `then`: the server answers, if not at once.
    pub(super) fn succeeded_since(&self, then: Instant) -> bool {
        self.last_success.lock().is_some_and(|last| last >= then)
    }

    /// Waits until a dial may be made.
    fn take_turn(self: &Arc<Self>, deadline: Instant) -> Option<Turn> {
        let mut under_way = self.under_way.lock();
        while !has_room(&under_way, Instant::now()) {
            if self.ended.wait_until(&mut under_way, deadline).timed_out() {
                return None;
            }
        }
        let began = Instant::now();
        under_way.push(began);
        let dials = Arc::clone(self);
        Some(Turn { dials, began })
    }
}

/// The right to one dial; ends when dropped.
struct Turn {
    dials: Arc<Dials>,
    began: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut under_way = self.dials.under_way.lock();
        if let Some(at) = under_way.iter().position(|began| *began == self.began) {
            under_way.swap_remove(at);
        }
        self.dials.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dials_are_under_way_at_most_and_one_that_hangs_for_long_counts_no_more() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(has_room(&[at(0)], at(1)));
        assert!(!has_room(&[at(0), at(1)], at(59)), "two are under way");
        assert!(has_room(&[at(0), at(1)], at(60)), "the first is given up");
    }

    #[test]
    fn a_turn_ends_with_its_dial() {
        let dials = Arc::<Dials>::default();
        let soon = || Instant::now() + Duration::from_millis(1);
        let (first, _second) = (dials.take_turn(soon()), dials.take_turn(soon()));
        assert!(dials.take_turn(soon()).is_none(), "two are under way");
        drop(first);
        assert!(dials.take_turn(soon()).is_some());
    }
}

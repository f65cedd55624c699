//! A connection of a node, lent to a handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use diesel::connection::{CacheSize, InstrumentationEvent};
use diesel::r2d2::PooledConnection;

use super::{Fate, Node, NodeConnection, NodeManager, Permit};
use crate::backend::ReplicatedConnection;
use crate::cluster::Role;

/// What a lease has taken on that must not reach the next borrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenancy {
    /// Nothing: the connection can go back.
    Clean,
    /// What keeps the handle nowhere: settings that it puts on each of its connections, or what a
    /// routine may have left. It is closed at the end.
    Private,
    /// Session state (settings, locks, temporary tables, a raw transaction): it is closed at the
    /// end, never reset, because a reset breaks Diesel's cache of prepared statements.
    Session,
    /// The connection is gone.
    Broken,
}

/// Where an answer came from: a node, on a connection opened then.
pub(crate) struct Origin<'a, C: ReplicatedConnection> {
    pub(crate) node: &'a Arc<Node<C>>,
    opened: &'a Instant,
}

impl<C: ReplicatedConnection> Origin<'_, C> {
    /// Notes that the connection was lost in the middle of a statement.
    pub(crate) fn died(&self) {
        self.node.died(*self.opened);
    }
}

/// Whether a connection leads to the server that the node's probes have met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acquaintance {
    Known,
    /// The same server in another run. It may be in its own past, which would be too old even for
    /// those who need nothing: they may have been told that every replica has what they wrote.
    Reborn,
    /// Another server: behind the URL of the node there may be several, and what is known of the
    /// node does not hold for it.
    Stranger,
}

/// A node's connection in the hands of one handle; goes back, or is closed, when dropped.
pub(crate) struct Lease<C: ReplicatedConnection> {
    node: Arc<Node<C>>,
    /// `None` only while it is being dropped.
    pooled: Option<Box<PooledConnection<NodeManager<C>>>>,
    pub(crate) tenancy: Tenancy,
    /// The handle's instrumentation is on it.
    pub(crate) instrumented: bool,
    /// The handle's size of the statement cache is on it.
    pub(crate) cache_resized: bool,
    /// Whether what is known of the node holds for this connection.
    pub(crate) acquaintance: Acquaintance,
    /// Given back after the connection, so that whoever gets it finds a connection free.
    _permit: Permit,
    /// A read that came here because no replica answers is counted while it lasts.
    pub(crate) admission: Option<Permit>,
}

const HELD: &str = "a lease holds its connection until it is dropped";

impl<C: ReplicatedConnection> Lease<C> {
    pub(super) fn new(
        node: Arc<Node<C>>,
        pooled: PooledConnection<NodeManager<C>>,
        permit: Permit,
        acquaintance: Acquaintance,
    ) -> Self {
        Self {
            node,
            pooled: Some(Box::new(pooled)),
            tenancy: Tenancy::Clean,
            instrumented: false,
            cache_resized: false,
            acquaintance,
            _permit: permit,
            admission: None,
        }
    }

    pub(crate) fn node(&self) -> &Arc<Node<C>> {
        &self.node
    }

    pub(crate) fn inner(&mut self) -> &mut NodeConnection<C> {
        self.pooled.as_mut().expect(HELD)
    }

    /// The real connection.
    pub(crate) fn connection(&mut self) -> &mut C {
        self.split().1
    }

    /// Runs `f` on the real connection. If a panic cuts it short nobody else gets the connection,
    /// even if the caller catches the panic: what state it is in is not known.
    pub(crate) fn run<R>(&mut self, f: impl FnOnce(&mut C) -> R) -> R {
        let tenancy = self.tenancy;
        self.make_private();
        let result = f(self.connection());
        self.tenancy = tenancy;
        result
    }

    /// Where an answer on this connection comes from.
    pub(crate) fn origin(&mut self) -> Origin<'_, C> {
        self.split().0
    }

    /// Where an answer comes from, and the connection to ask.
    pub(crate) fn split(&mut self) -> (Origin<'_, C>, &mut C) {
        let inner: &mut NodeConnection<C> = self.pooled.as_mut().expect(HELD);
        let origin = Origin {
            node: &self.node,
            opened: &inner.opened,
        };
        let link = inner.link.as_mut();
        (origin, link.expect("only an open connection is lent"))
    }

    /// The role that the session was prepared for.
    pub(crate) fn role(&mut self) -> Role {
        self.inner().term.role()
    }

    /// Tells whether the node is used as something else by now.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.pooled.as_ref().expect(HELD).term != self.node.term()
    }

    /// Tells whether another connection has to go on in its place, and may: what was set in a session
    /// is nowhere else.
    pub(crate) fn is_to_be_replaced(&mut self) -> bool {
        self.tenancy != Tenancy::Session && self.is_retired()
    }

    /// Notes that nobody else may get the connection.
    pub(crate) fn make_private(&mut self) {
        if self.tenancy == Tenancy::Clean {
            self.tenancy = Tenancy::Private;
        }
    }

    /// Notes that the connection broke.
    pub(crate) fn lose(&mut self) {
        self.tenancy = Tenancy::Broken;
        self.node.lost();
    }

    /// Takes off what the handle has put on.
    fn take_off(&mut self) {
        let (instrumented, resized) = (self.instrumented, self.cache_resized);
        let conn = self.connection();
        if instrumented {
            conn.set_instrumentation(|_: InstrumentationEvent<'_>| {});
        }
        if resized {
            conn.set_prepared_statement_cache_size(CacheSize::Unbounded);
        }
    }
}

impl<C: ReplicatedConnection> Drop for Lease<C> {
    fn drop(&mut self) {
        let clean = self.tenancy == Tenancy::Clean && !std::thread::panicking();
        // the drop of a connection is foreign code; a panic in it must not cost the permit
        let given_back = catch_unwind(AssertUnwindSafe(|| {
            // closed unless everything below says otherwise, also by a panic
            self.inner().fate = Fate::Close;
            if clean && !self.is_retired() && !self.inner().in_transaction() {
                self.take_off();
                let inner = self.inner();
                inner.fate = Fate::Keep;
                let now = Instant::now();
                let lent = std::mem::replace(&mut inner.used, now);
                if inner.term.role() == Role::Replica {
                    self.node.was_used(now.saturating_duration_since(lent), now);
                }
            }
            drop(self.pooled.take());
        }));
        if given_back.is_err() {
            log::error!("giving a connection to {} back panicked", self.node.name());
        }
    }
}

//! What a handle puts on every node connection it borrows.

use std::sync::Arc;

use diesel::connection::{
    CacheSize, Instrumentation, InstrumentationEvent, get_default_instrumentation,
};
use diesel::result::QueryResult;
use parking_lot::Mutex;

use crate::backend::ReplicatedConnection;
use crate::node::Lease;

/// One instrumentation for all node connections of a handle.
///
/// The lock is held while the user's code runs, as it has to be: one instrumentation, one event
/// at a time. A handle runs one statement at a time, so nobody else waits for it.
#[derive(Clone)]
pub(super) struct SharedInstrumentation(Option<Arc<Mutex<Box<dyn Instrumentation>>>>);

impl Default for SharedInstrumentation {
    fn default() -> Self {
        Self(get_default_instrumentation().map(|default| Arc::new(Mutex::new(default))))
    }
}

impl Instrumentation for SharedInstrumentation {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let Some(shared) = &self.0 {
            shared.lock().on_connection_event(event);
        }
    }
}

type SessionHook<C> = Box<dyn Fn(&mut C) -> QueryResult<()> + Send>;

/// What a handle puts on every node connection it borrows.
pub(super) struct Outfit<C> {
    pub(super) instrumentation: SharedInstrumentation,
    cache_size: Option<CacheSize>,
    session: Vec<SessionHook<C>>,
}

impl<C: ReplicatedConnection> Outfit<C> {
    pub(super) fn new() -> Self {
        Self {
            instrumentation: SharedInstrumentation::default(),
            cache_size: None,
            session: Vec::new(),
        }
    }

    pub(super) fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
        let shared = Arc::new(Mutex::new(
            Box::new(instrumentation) as Box<dyn Instrumentation>
        ));
        self.instrumentation = SharedInstrumentation(Some(shared));
    }

    pub(super) fn set_cache_size(&mut self, size: CacheSize) {
        self.cache_size = Some(size);
    }

    pub(super) fn add_session_hook(&mut self, hook: SessionHook<C>) {
        self.session.push(hook);
    }

    /// Forgets what belongs to one use of the handle.
    pub(super) fn end_unit(&mut self) {
        self.session.clear();
    }

    /// Puts all of it on a connection that was just borrowed.
    pub(super) fn put_on(&self, lease: &mut Lease<C>) -> QueryResult<()> {
        self.put_on_instrumentation(lease);
        self.put_on_cache_size(lease);
        for hook in &self.session {
            lease.make_private();
            hook(lease.connection())?;
        }
        Ok(())
    }

    pub(super) fn put_on_instrumentation(&self, lease: &mut Lease<C>) {
        if self.instrumentation.0.is_some() {
            lease.instrumented = true;
            lease
                .connection()
                .set_instrumentation(self.instrumentation.clone());
        }
    }

    pub(super) fn put_on_cache_size(&self, lease: &mut Lease<C>) {
        if let Some(size) = self.cache_size {
            lease.cache_resized = true;
            lease.connection().set_prepared_statement_cache_size(size);
        }
    }

    /// Runs the newest session hook on a connection that was borrowed before it was set.
    pub(super) fn put_on_newest_hook(&self, lease: &mut Lease<C>) -> QueryResult<()> {
        lease.make_private();
        match self.session.last() {
            Some(hook) => hook(lease.connection()),
            None => Ok(()),
        }
    }
}

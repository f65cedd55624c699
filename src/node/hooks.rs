//! What the user wants done with each node connection.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use diesel::r2d2::{CustomizeConnection, Error as PoolError};
use diesel::result::QueryResult;
use parking_lot::RwLock;

use crate::cluster::Role;

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

impl<C: 'static> Hooks<C> {
    pub(crate) fn set_customizer(&self, customizer: Customizer<C>) {
        self.inner.write().customizer = Some(customizer);
    }

    pub(crate) fn add_setup(&self, setup: Setup<C>) {
        self.inner.write().setup.push(setup);
    }

    /// Hands a connection that is to be closed over to the customizer.
    ///
    /// r2d2 does this on a thread of its own, too: a panic there would end the reaper.
    pub(super) fn release(&self, conn: C, node: &str) {
        let released = catch_unwind(AssertUnwindSafe(|| match self.customizer() {
            Some(customizer) => customizer.on_release(conn),
            None => drop(conn),
        }));
        if released.is_err() {
            log::error!("{node}: closing a connection panicked");
        }
    }

    pub(super) fn customizer(&self) -> Option<Customizer<C>> {
        self.inner.read().customizer.clone()
    }

    pub(super) fn setup(&self) -> Vec<Setup<C>> {
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

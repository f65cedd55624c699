//! Blocks without a connection in hand: the ambient entry points.
//!
//! [`install`] a pool once, then call [`distributed`] anywhere. Here the connection type has to
//! be written in each closure (`|conn: &mut RoutedConnection<PgConnection>|`);
//! [`define_route!`](crate::define_route) makes a module of your own in which it is inferred.
//!
//! ```
//! # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
//! # use setup::*;
//! use diesel_routed::route;
//!
//! type Db = RoutedConnection<SqliteConnection>;
//!
//! route::install(&pool());
//! let count = route::distributed(|conn: &mut Db| posts::table.count().get_result::<i64>(conn))?;
//! # Ok::<(), diesel::result::Error>(())
//! ```

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, OnceLock};

use diesel::r2d2::PooledConnection;
use diesel::result::Error;
use parking_lot::RwLock;

use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Consistency};
use crate::connection::RoutedConnection;
#[cfg(feature = "tokio")]
use crate::context::Context;
use crate::error::RoutedError;
use crate::manager::{RoutedConnectionManager, RoutedPool, no_handle};

/// The pools by connection type.
type Installed = HashMap<TypeId, Box<dyn Any + Send + Sync>>;

/// Protects the list of installed pools; a pool is cloned out of it.
static INSTALLED: LazyLock<RwLock<Installed>> = LazyLock::new(RwLock::default);

/// Installs the pool that the functions of this module use, one for each connection type.
///
/// A later call for the same type replaces it. Two databases of one type need two modules made by
/// [`define_route!`](crate::define_route). It takes a handle for a moment, and waits for one as
/// long as [`Pool::get`](diesel::r2d2::Pool::get) does if all are in use.
pub fn install<C: ReplicatedConnection>(pool: &RoutedPool<C>) {
    let installed = Ambient::new(pool);
    let replaced = INSTALLED
        .write()
        .insert(TypeId::of::<C>(), Box::new(installed));
    // the last user of a pool closes its connections: not under the lock
    drop(replaced);
}

/// Runs a [`distributed`](RoutedConnection::distributed) block on a handle of its own.
///
/// It shares the context of this thread with every other handle. It waits for no place in the
/// pool: a handle that is idle there is used, and else one beyond the pool's size, so that it may
/// be called while a handle is held. The connections to each node stay bounded.
///
/// # Errors
///
/// The error of `f`, and as Diesel's error: [`RoutedError::NotInstalled`] if no pool is
/// installed, [`RoutedError::TestTransaction`] where a test transaction is open on a handle that
/// is in use, which another one could not see into.
pub fn distributed<C, T, E, F>(f: F) -> Result<T, E>
where
    C: ReplicatedConnection,
    F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
    E: From<Error>,
{
    on(installed(), |conn| conn.distributed(f))
}

/// As [`distributed`], with a consistency of its own.
///
/// # Errors
///
/// As [`distributed`].
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// use diesel_routed::route;
///
/// type Db = RoutedConnection<SqliteConnection>;
///
/// route::install(&pool());
/// let count = route::distributed_with(Consistency::Eventual, |conn: &mut Db| {
///     posts::table.count().get_result::<i64>(conn)
/// })?;
/// # Ok::<(), diesel::result::Error>(())
/// ```
pub fn distributed_with<C, T, E, F>(consistency: Consistency, f: F) -> Result<T, E>
where
    C: ReplicatedConnection,
    F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
    E: From<Error>,
{
    on(installed(), |conn| conn.distributed_with(consistency, f))
}

/// Runs a [`primary`](RoutedConnection::primary) block on a handle of its own.
///
/// # Errors
///
/// As [`distributed`].
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// use diesel_routed::route;
///
/// type Db = RoutedConnection<SqliteConnection>;
///
/// route::install(&pool());
/// route::primary(|conn: &mut Db| diesel::delete(posts::table).execute(conn))?;
/// # Ok::<(), diesel::result::Error>(())
/// ```
pub fn primary<C, T, E, F>(f: F) -> Result<T, E>
where
    C: ReplicatedConnection,
    F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
    E: From<Error>,
{
    on(installed(), |conn| conn.primary(f))
}

fn installed<C: ReplicatedConnection>() -> Option<Ambient<C>> {
    let installed = INSTALLED.read();
    let ambient = installed.get(&TypeId::of::<C>())?;
    ambient.downcast_ref::<Ambient<C>>().cloned()
}

/// A pool and the cluster behind it, for handles beyond the pool's size.
struct Ambient<C: ReplicatedConnection> {
    pool: RoutedPool<C>,
    /// r2d2 gives no access to the manager of a pool, but to its connections: known as soon as
    /// one of them was in hand.
    cluster: Arc<OnceLock<Cluster<C>>>,
}

impl<C: ReplicatedConnection> Ambient<C> {
    fn new(pool: &RoutedPool<C>) -> Self {
        let ambient = Self {
            pool: pool.clone(),
            cluster: Arc::default(),
        };
        // a pool all of whose handles are in use would keep the start waiting
        if pool.state().connections < pool.max_size() {
            drop(pool.get());
        }
        drop(ambient.idle());
        ambient
    }

    fn idle(&self) -> Option<PooledConnection<RoutedConnectionManager<C>>> {
        let idle = self.pool.try_get()?;
        self.cluster.get_or_init(|| idle.cluster().clone());
        Some(idle)
    }
}

impl<C: ReplicatedConnection> Clone for Ambient<C> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            cluster: Arc::clone(&self.cluster),
        }
    }
}

fn on<C, T, E>(
    ambient: Option<Ambient<C>>,
    f: impl FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
) -> Result<T, E>
where
    C: ReplicatedConnection,
    E: From<Error>,
{
    let Some(ambient) = ambient else {
        return Err(Error::from(RoutedError::NotInstalled).into());
    };
    if let Some(mut idle) = ambient.idle() {
        return f(&mut idle);
    }
    let Some(cluster) = ambient.cluster.get() else {
        let mut conn = ambient.pool.get().map_err(no_handle)?;
        return f(&mut conn);
    };
    if cluster.test_transactions().load(Ordering::Relaxed) > 0 {
        return Err(Error::from(RoutedError::TestTransaction).into());
    }
    f(&mut cluster.connection())
}

/// Runs `f` on a thread where tokio lets tasks block, inside the context of the caller.
///
/// As [`tokio::task::spawn_blocking`], which starts without a context: what it writes, the request
/// around it would not read.
///
/// # Panics
///
/// Outside a tokio runtime.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// use diesel_routed::route;
///
/// # let pool = pool();
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async move {
/// let request = Context::new();
/// let write = async move {
///     route::spawn_blocking(move || {
///         let mut conn = pool.get()?;
///         diesel::delete(posts::table).execute(&mut conn)?;
///         Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
///     })
///     .await?
/// };
/// request.scope(write).await?;
/// assert!(request.is_sticky());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "tokio")]
pub fn spawn_blocking<F, R>(f: F) -> tokio::task::JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let context = Context::current();
    tokio::task::spawn_blocking(move || match context {
        Some(context) => context.run(f),
        None => f(),
    })
}

/// The pool of a module made by [`define_route!`](crate::define_route).
#[doc(hidden)]
pub struct Slot<C: ReplicatedConnection>(RwLock<Option<Ambient<C>>>);

impl<C: ReplicatedConnection> Slot<C> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default)] // made by the macro alone, in a static
    pub const fn new() -> Self {
        Self(RwLock::new(None))
    }

    #[doc(hidden)]
    pub fn install(&self, pool: &RoutedPool<C>) {
        let installed = Ambient::new(pool);
        let replaced = self.0.write().replace(installed);
        drop(replaced);
    }

    #[doc(hidden)]
    pub fn on<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
    ) -> Result<T, E> {
        let ambient = self.0.read().clone();
        on(ambient, f)
    }
}

impl<C: ReplicatedConnection> fmt::Debug for Slot<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

/// Makes a module with `install`, `distributed`, `distributed_with` and `primary` for one
/// connection type, so that closures need no annotation.
///
/// Each such module has a pool of its own: make one for each database.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// diesel_routed::define_route!(pub mod route for diesel::sqlite::SqliteConnection);
///
/// route::install(&pool());
/// let titles = route::distributed(|conn| posts::table.select(posts::title).load::<String>(conn))?;
/// # Ok::<(), diesel::result::Error>(())
/// ```
#[macro_export]
macro_rules! define_route {
    ($visibility:vis mod $name:ident for $connection:ty) => {
        /// Blocks without a connection in hand, on the pool that was installed last.
        $visibility mod $name {
            #[allow(unused_imports)] // the type may be written with its path
            use super::*;

            static SLOT: $crate::route::Slot<$connection> = $crate::route::Slot::new();

            /// Installs the pool that the functions of this module use.
            pub fn install(pool: &$crate::RoutedPool<$connection>) {
                SLOT.install(pool);
            }

            /// Runs a `distributed` block on a handle of its own.
            ///
            /// # Errors
            ///
            /// The error of `f`, or why no handle is to be had.
            pub fn distributed<T, E: From<$crate::__private::Error>>(
                f: impl FnOnce(&mut $crate::RoutedConnection<$connection>) -> Result<T, E>,
            ) -> Result<T, E> {
                SLOT.on(|conn| conn.distributed(f))
            }

            /// As `distributed`, with a consistency of its own.
            ///
            /// # Errors
            ///
            /// As `distributed`.
            pub fn distributed_with<T, E: From<$crate::__private::Error>>(
                consistency: $crate::Consistency,
                f: impl FnOnce(&mut $crate::RoutedConnection<$connection>) -> Result<T, E>,
            ) -> Result<T, E> {
                SLOT.on(|conn| conn.distributed_with(consistency, f))
            }

            /// Runs a `primary` block on a handle of its own.
            ///
            /// # Errors
            ///
            /// As `distributed`.
            pub fn primary<T, E: From<$crate::__private::Error>>(
                f: impl FnOnce(&mut $crate::RoutedConnection<$connection>) -> Result<T, E>,
            ) -> Result<T, E> {
                SLOT.on(|conn| conn.primary(f))
            }
        }
    };
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_blocking_task_is_in_the_context_of_its_caller() {
        let inside = || spawn_blocking(Context::current);
        assert!(inside().await.unwrap().is_none(), "outside any");
        let context = Context::new();
        let found = context.scope(async { inside().await.unwrap() }).await;
        assert!(found.unwrap().is(&context));
        let plain = context.scope(async {
            let spawned = tokio::task::spawn_blocking(Context::current);
            spawned.await.unwrap()
        });
        assert!(plain.await.is_none(), "tokio's own starts without");
    }
}

//! The r2d2 manager of routed connections.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use diesel::r2d2::{CustomizeConnection, Error as PoolError, ManageConnection, Pool};
use diesel::result::QueryResult;

use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, ClusterConfig, ConfigError, ConnectError, Consistency, Role};
use crate::connection::RoutedConnection;
use crate::error::RoutedError;

/// A pool of routed connections: r2d2's own pool, with everything it can do.
///
/// Its size bounds how many requests work at once; the handles in it own no socket. So `get`
/// succeeds while the database is down, and the first statement says so.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// let config = ClusterConfig::new("app.db").replica("app.db").pool_size(4);
/// let manager = RoutedConnectionManager::<SqliteConnection>::new(config)?;
/// let pool: RoutedPool<SqliteConnection> = RoutedPool::builder().max_size(4).build(manager)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type RoutedPool<C> = Pool<RoutedConnectionManager<C>>;

/// Makes the handles of a [`RoutedPool`].
///
/// It holds the [`Cluster`]: handles of one manager share its node connections, its health and
/// its settings. Its error type is Diesel's own, so that Diesel's customizers fit the pool.
pub struct RoutedConnectionManager<C: ReplicatedConnection> {
    cluster: Cluster<C>,
}

impl<C: ReplicatedConnection> RoutedConnectionManager<C> {
    /// Creates a manager; does no I/O, so that it works while the database is down.
    ///
    /// # Errors
    ///
    /// If the configuration is wrong; the error names the setting and what is accepted.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// let config = ClusterConfig::new("app.db").pool_size(0);
    /// let error = RoutedConnectionManager::<SqliteConnection>::new(config).unwrap_err();
    /// assert_eq!(error.to_string(), "pool_size: \"0\" is not accepted, write 1 or more");
    /// ```
    pub fn new(config: ClusterConfig) -> Result<Self, ConfigError> {
        Cluster::new(config).map(|cluster| Self { cluster })
    }

    /// Creates a manager and dials each node once, to say at start what is wrong.
    ///
    /// Any one node that answers is enough; the others are logged.
    ///
    /// # Errors
    ///
    /// If the configuration is wrong, or no node answers: then each is named with its cause.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// let manager = RoutedConnectionManager::<SqliteConnection>::connect(config())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(config: ClusterConfig) -> Result<Self, ConnectError> {
        let manager = Self::new(config)?;
        manager.cluster.look_around()?;
        Ok(manager)
    }

    /// Creates a manager from the environment; see [`ClusterConfig::from_env`].
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); the error names the variable.
    ///
    /// ```no_run
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// // DATABASE_URL and DATABASE_REPLICA_URLS
    /// let manager = RoutedConnectionManager::<SqliteConnection>::from_env()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::new(ClusterConfig::from_env()?)
    }

    /// Adds a function that runs once on every new connection to a node, told the node's role.
    ///
    /// For constant settings: they are in force at every checkout, on every node. Functions run
    /// in the order in which they were added, after the
    /// [customizer](Self::connection_customizer). An error or a panic is a failed dial.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// use diesel::connection::SimpleConnection;
    ///
    /// let manager = RoutedConnectionManager::<SqliteConnection>::new(config())?
    ///     .with_setup(|conn, role| match role {
    ///         Role::Primary => conn.batch_execute("PRAGMA foreign_keys = on"),
    ///         Role::Replica => Ok(()),
    ///     });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_setup(
        self,
        setup: impl Fn(&mut C, Role) -> QueryResult<()> + Send + Sync + 'static,
    ) -> Self {
        self.cluster.hooks().add_setup(Arc::new(setup));
        self
    }

    /// Takes an r2d2 customizer for plain connections and runs it on every connection to a node.
    ///
    /// It is the first to speak on a new connection, as an encryption key has to be. Give it
    /// here and not to the builder of the pool, where it would see handles instead. A second call
    /// replaces the first.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// use diesel::connection::SimpleConnection;
    /// use diesel::r2d2::{CustomizeConnection, Error};
    ///
    /// #[derive(Debug)]
    /// struct BusyTimeout;
    ///
    /// impl CustomizeConnection<SqliteConnection, Error> for BusyTimeout {
    ///     fn on_acquire(&self, conn: &mut SqliteConnection) -> Result<(), Error> {
    ///         conn.batch_execute("PRAGMA busy_timeout = 2000").map_err(Error::QueryError)
    ///     }
    /// }
    ///
    /// let manager = RoutedConnectionManager::new(config())?.connection_customizer(Box::new(BusyTimeout));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn connection_customizer(
        self,
        customizer: Box<dyn CustomizeConnection<C, PoolError>>,
    ) -> Self {
        self.cluster.hooks().set_customizer(customizer.into());
        self
    }

    /// Returns the cluster whose handles it makes.
    ///
    /// Clone it before the manager goes into the pool, which gives it out no more.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// let manager = RoutedConnectionManager::<SqliteConnection>::new(config())?;
    /// let cluster = manager.cluster().clone();
    /// let pool = RoutedPool::new(manager)?;
    /// println!("{}", cluster.status());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cluster(&self) -> &Cluster<C> {
        &self.cluster
    }
}

impl<C: ReplicatedConnection> ManageConnection for RoutedConnectionManager<C> {
    type Connection = RoutedConnection<C>;
    type Error = PoolError;

    /// Makes a handle; does no I/O.
    fn connect(&self) -> Result<RoutedConnection<C>, PoolError> {
        Ok(self.cluster.connection())
    }

    /// Does no I/O: node connections are validated when they are borrowed.
    fn is_valid(&self, _: &mut RoutedConnection<C>) -> Result<(), PoolError> {
        Ok(())
    }

    /// Called when a handle comes back: its node connections go back too.
    ///
    /// A handle that a panic gives back in a test transaction is closed, so that the pool's
    /// customizer opens another one. So is one that holds foreign code whose drop panics.
    fn has_broken(&self, conn: &mut RoutedConnection<C>) -> bool {
        // a panic here would cost the pool a place
        let given_back = catch_unwind(AssertUnwindSafe(|| conn.give_back()));
        given_back.is_err() || std::thread::panicking() && conn.holds_test_transaction()
    }
}

impl<C: ReplicatedConnection> fmt::Debug for RoutedConnectionManager<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedConnectionManager")
            .field("cluster", &self.cluster)
            .finish()
    }
}

/// Blocks on a pool, for code that holds no connection.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// use diesel_routed::RoutedPoolExt;
///
/// let pool = pool();
/// pool.primary(|conn| {
///     diesel::insert_into(posts::table).values(posts::title.eq("second")).execute(conn)
/// })?;
/// let titles = pool.distributed(|conn| posts::table.select(posts::title).load::<String>(conn))?;
/// # Ok::<(), diesel::result::Error>(())
/// ```
pub trait RoutedPoolExt<C: ReplicatedConnection> {
    /// Takes a handle and runs a [`distributed`](RoutedConnection::distributed) block on it.
    ///
    /// # Errors
    ///
    /// The error of `f`, or [`RoutedError::PoolTimeout`] if no handle came back in time. Code
    /// that holds a handle of the pool calls `conn.distributed` on it instead: with all handles
    /// in such hands nobody would get another.
    fn distributed<T, E, F>(&self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>;

    /// As [`distributed`](Self::distributed), with a consistency of its own.
    ///
    /// # Errors
    ///
    /// As [`distributed`](Self::distributed).
    fn distributed_with<T, E, F>(&self, consistency: Consistency, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>;

    /// Takes a handle and runs a [`primary`](RoutedConnection::primary) block on it.
    ///
    /// # Errors
    ///
    /// As [`distributed`](Self::distributed).
    fn primary<T, E, F>(&self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>;
}

impl<C: ReplicatedConnection> RoutedPoolExt<C> for RoutedPool<C> {
    fn distributed<T, E, F>(&self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>,
    {
        self.get().map_err(no_handle)?.distributed(f)
    }

    fn distributed_with<T, E, F>(&self, consistency: Consistency, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>,
    {
        self.get()
            .map_err(no_handle)?
            .distributed_with(consistency, f)
    }

    fn primary<T, E, F>(&self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut RoutedConnection<C>) -> Result<T, E>,
        E: From<diesel::result::Error>,
    {
        self.get().map_err(no_handle)?.primary(f)
    }
}

pub(crate) fn no_handle(_: diesel::r2d2::PoolError) -> diesel::result::Error {
    let node = "the pool of handles".to_owned();
    RoutedError::PoolTimeout { node }.into()
}

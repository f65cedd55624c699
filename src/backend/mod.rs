//! What the router has to know about a database server: the SQL that differs.

use std::time::Duration;

use diesel::backend::Backend;
use diesel::connection::{Connection, LoadConnection};
use diesel::r2d2::R2D2Connection;
use diesel::result::{ConnectionError, ConnectionResult, Error, QueryResult};

use crate::cluster::Role;
use crate::position::Position;
use crate::report::{ErrorClass, Identity, Report};
use crate::statement::Dialect;

#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
mod class;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod prepared;
#[cfg(feature = "sqlite")]
mod sqlite;

/// A Diesel connection whose database can be replicated.
///
/// Implemented for `PgConnection`, `MysqlConnection` (MySQL and MariaDB) and `SqliteConnection`.
/// Implement it for a wrapper of one of these by forwarding to it. The bounds are what the router
/// needs to build the SQL of a query without a server: a backend and a query builder with a default.
///
/// Code that serves several databases takes it as its bound:
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let mut conn = pool().get()?;
/// fn down<C: ReplicatedConnection>(cluster: &Cluster<C>) -> Vec<String> {
///     let nodes = cluster.status().nodes;
///     let down = nodes.into_iter().filter(|node| matches!(node.state, NodeState::Down { .. }));
///     down.map(|node| node.name).collect()
/// }
///
/// assert!(down(conn.cluster()).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ReplicatedConnection:
    Connection<Backend: Default + Backend<QueryBuilder: Default>>
    + R2D2Connection
    + LoadConnection
    + 'static
{
    /// The SQL dialect that decides how statements are scanned.
    const DIALECT: Dialect;

    /// What the handle remembers of looked-up types; `()` where the backend looks up none.
    type MetadataCache: Default + Send + 'static;

    /// Opens a connection to a node.
    ///
    /// Runs on a background thread, bounded by `connect_timeout`. `url` is the node's own;
    /// a replica's session may be made read-only here if that can be said at start-up.
    ///
    /// # Errors
    ///
    /// Whatever [`Connection::establish`] returns; the router removes secrets from the text.
    fn open(url: &str, role: Role) -> ConnectionResult<Self> {
        let _ = role;
        Self::establish(url)
    }

    /// Makes a replica's session read-only: the second net under the scanner.
    ///
    /// Called once for each connection, after the user's customizer, which may have to be the
    /// first to speak to the server (an encryption key).
    ///
    /// # Errors
    ///
    /// An error closes the connection and counts as a failed dial.
    fn prepare_session(&mut self, role: Role) -> QueryResult<()>;

    /// Opens a connection for the node's monitor: as for a primary, because a probe asks how the
    /// server itself is set. Statements that take longer than `timeout` are cut short where the
    /// server can do that.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn open_probe(url: &str, role: Role, timeout: Duration) -> ConnectionResult<Self> {
        let _ = timeout;
        Self::open(url, role)
    }

    /// Makes the session of a probe ready, after the user's customizer; as
    /// [`open_probe`](Self::open_probe) where that can't be said at start-up.
    ///
    /// # Errors
    ///
    /// An error closes the connection and counts as a failed dial.
    fn prepare_probe(&mut self, timeout: Duration) -> QueryResult<()> {
        let _ = timeout;
        Ok(())
    }

    /// Asks which server answers on this connection; once for each connection, and for each probe.
    ///
    /// # Errors
    ///
    /// An error counts as a failed dial.
    fn identify(&mut self) -> QueryResult<Identity> {
        Ok(Identity::new("", "", ""))
    }

    /// Asks the server for its role and position, in as few round trips as possible.
    ///
    /// What the user of the connection may not see is left out, and the report names the
    /// statement that would grant it.
    ///
    /// # Errors
    ///
    /// An error counts as a failed probe.
    fn probe(&mut self) -> QueryResult<Report> {
        self.ping()?;
        Ok(Report::new(self.identify()?))
    }

    /// Asks the primary how far it has come: whoever has applied that misses nothing that was
    /// committed before.
    ///
    /// In one round trip; after a unit of work that wrote, if somebody wants to write that down.
    ///
    /// # Errors
    ///
    /// An error leaves the position unknown.
    fn committed_position(&mut self) -> QueryResult<Option<Position>> {
        Ok(self.probe()?.position)
    }

    /// Asks a replica how much it had at most when it answered the statements before: whoever has
    /// applied that shows nothing older.
    ///
    /// Only under [`MonotonicReads::AcrossRequests`](crate::MonotonicReads::AcrossRequests), and more
    /// than it says of itself when it is probed: a transaction may be seen before it counts as
    /// applied.
    ///
    /// # Errors
    ///
    /// An error leaves it unknown.
    fn received_position(&mut self) -> QueryResult<Option<Position>> {
        Ok(None)
    }

    /// Asks the server how many statements it works on; only under
    /// [`Strategy::LeastLoaded`](crate::Strategy::LeastLoaded).
    ///
    /// # Errors
    ///
    /// An error leaves the load unknown.
    fn server_load(&mut self) -> QueryResult<Option<u32>> {
        Ok(None)
    }

    /// Opens a transaction in the server's read-only mode.
    ///
    /// # Errors
    ///
    /// As [`TransactionManager::begin_transaction`](diesel::connection::TransactionManager::begin_transaction).
    fn begin_read_only(&mut self) -> QueryResult<()>;

    /// Undoes on the primary what [`begin_read_only`](Self::begin_read_only) changed in the session.
    ///
    /// # Errors
    ///
    /// An error closes the connection.
    fn end_read_only(&mut self) -> QueryResult<()> {
        Ok(())
    }

    /// Tells what an error of a statement says of the server.
    ///
    /// Never [`Load`](ErrorClass::Load) or [`Authentication`](ErrorClass::Authentication), which
    /// only a dial meets.
    fn class_of(error: &Error) -> ErrorClass;

    /// Tells what a failed dial says of the server: `Death`, `Load`, `Authentication`, or `Query` for a
    /// mistake that no waiting mends, such as a database that does not exist.
    fn class_of_dial(error: &ConnectionError) -> ErrorClass {
        let _ = error;
        ErrorClass::Death
    }

    /// Tells whether a failed single `INSERT`, `UPDATE`, `DELETE` or `MERGE` is known to have
    /// changed nothing.
    ///
    /// The default believes nothing.
    fn failed_without_trace(error: &Error) -> bool {
        let _ = error;
        false
    }

    /// What the server says of this session's last committed write; empty if there was none.
    ///
    /// Asked only after a failure, and compared with the answer of the time before. `None`: the
    /// server can't tell, and a mark stays.
    fn write_evidence(&mut self) -> Option<String> {
        None
    }

    /// Tells whether a rolled back transaction is known to have left nothing behind.
    ///
    /// `false` where tables without transactions exist; then
    /// [`write_evidence`](Self::write_evidence) decides.
    const ROLLBACK_IS_PROOF: bool;

    /// Tells whether this error ended the whole transaction at the server, although the client
    /// has not: what follows would run in autocommit.
    fn ended_transaction(error: &Error) -> bool {
        let _ = error;
        false
    }
}

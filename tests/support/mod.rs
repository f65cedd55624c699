//! Real replicated databases for tests.
//!
//! A [`Cluster`] is one primary (node 0) and its replicas (nodes 1, 2, ..): PostgreSQL with streaming
//! replication, MariaDB or MySQL with GTID replication, or SQLite files with a copier thread.
//! Everything lives in one temporary directory and ends with the [`Cluster`], or with the process
//! however that ends.
//!
//! Every node answers `SELECT name FROM node_name` with its own name (`n0`, `n1`, ..), so a test knows
//! which node served a query from the data alone.
//!
//! The servers come from the system (`apt-get install postgresql mariadb-server`), MySQL's from a folder
//! that `scripts/fetch-mysql.sh` fills. A missing one is a panic, never a skipped test; where no MySQL
//! can be had, nextest's profile `without-mysql` leaves its tests out. Linux only.

// Every test binary compiles its own copy of this module and uses only a part of it.
#![allow(dead_code, unused_imports)]

mod clock;
mod faults;
mod forwarder;
mod home;
mod mariadb;
mod mysql;
mod own;
mod port;
mod postgres;
mod process;
mod shared;
mod sqlite;
mod template;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use faults::Faults;
pub use forwarder::{Forwarder, Manners};
use mariadb::Mariadb;
use mysql::Mysql;
pub use own::{sockets, sockets_to, threads};
pub use port::Port;
use postgres::{Postgres, Topology};
pub use process::{Server, as_user, find_program};
use sqlite::Sqlite;

/// How long a node may take to start, to catch up or to change its state before the test fails.
const DEADLINE: Duration = Duration::from_secs(20);

/// Calls `condition` until it holds; panics with `what` after `deadline`.
#[track_caller]
pub fn wait_until(what: &str, deadline: Duration, condition: impl FnMut() -> bool) {
    assert!(
        holds_within(deadline, condition),
        "not within {deadline:?}: {what}"
    );
}

/// Calls `condition` until it holds (`true`) or until `deadline` has passed (`false`).
pub fn holds_within(deadline: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    true
}

/// A running replicated database; stopped and removed when dropped.
pub struct Cluster {
    backend: Box<dyn Backend>,
    nodes: Mutex<Vec<Node>>,
}

/// What the harness has done to a node so far.
#[derive(Clone)]
struct Node {
    running: bool,
    paused: bool,
    /// Cut off from its upstream, and so paused.
    receiving: bool,
    /// The node that this one replicates from.
    upstream: Option<usize>,
}

/// Who runs a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Login {
    /// The superuser, over the unix socket.
    Admin,
    /// The application's role, over TCP as the code under test.
    App,
}

/// What differs between the databases. Errors are texts for the panic message.
trait Backend: Faults + Send + Sync {
    fn dir(&self) -> &Path;
    fn port(&self, node: usize) -> u16;
    fn url(&self, node: usize, login: Login) -> String;
    fn sql(&self, node: usize, login: Login, sql: &str) -> Result<String, String>;
    /// Where `primary` is now, in a form that `has_applied` understands.
    fn position(&self, primary: usize) -> Result<String, String>;
    fn has_applied(&self, replica: usize, position: &str) -> Result<bool, String>;
    fn pause(&self, replica: usize) -> Result<(), String>;
    fn resume(&self, replica: usize) -> Result<(), String>;
    fn kill(&self, node: usize);
    fn start(&self, node: usize) -> Result<(), String>;
    fn freeze(&self, node: usize);
    fn thaw(&self, node: usize);
    fn promote(&self, replica: usize) -> Result<(), String>;
    fn follow(&self, replica: usize, primary: usize) -> Result<(), String>;
    fn set_writable(&self, replica: usize) -> Result<(), String>;

    fn admin(&self, node: usize, sql: &str) -> Result<String, String> {
        self.sql(node, Login::Admin, sql)
    }

    /// Asks until the answer is `expected`.
    fn admin_until(&self, node: usize, sql: &str, expected: &str) -> Result<(), String> {
        let mut last = Ok(String::new());
        let reached = holds_within(DEADLINE, || {
            last = self.admin(node, sql);
            last.as_deref() == Ok(expected)
        });
        if reached {
            Ok(())
        } else {
            Err(format!("{sql} said {last:?}, not {expected}"))
        }
    }
}

impl Cluster {
    /// Starts a PostgreSQL primary with streaming physical standbys.
    pub fn postgres(replicas: usize) -> Cluster {
        Cluster::start(replicas, Some(0), || {
            Postgres::start(replicas, Topology::Streaming)
        })
    }

    /// Starts `replicas + 1` PostgreSQL servers, all writable, that share a schema and a system
    /// identifier but replicate nothing.
    pub fn postgres_writable(replicas: usize) -> Cluster {
        Cluster::start(replicas, None, || {
            Postgres::start(replicas, Topology::Independent)
        })
    }

    /// Starts a MariaDB primary with GTID replicas, which are `read_only`.
    pub fn mariadb(replicas: usize) -> Cluster {
        Cluster::start(replicas, Some(0), || Mariadb::start(replicas))
    }

    /// Starts a MySQL primary with GTID replicas, which are `read_only`.
    pub fn mysql(replicas: usize) -> Cluster {
        Cluster::start(replicas, Some(0), || Mysql::start(replicas))
    }

    /// Creates a SQLite file with copies that follow it within some milliseconds.
    pub fn sqlite(replicas: usize) -> Cluster {
        Cluster::start(replicas, Some(0), || Sqlite::start(replicas))
    }

    /// [`Cluster::postgres`], started once for all tests of this process. Leave it as you found it.
    pub fn shared_postgres(replicas: usize) -> &'static Cluster {
        shared::get("postgres", replicas, Cluster::postgres)
    }

    /// [`Cluster::mariadb`], started once for all tests of this process. Leave it as you found it.
    pub fn shared_mariadb(replicas: usize) -> &'static Cluster {
        shared::get("mariadb", replicas, Cluster::mariadb)
    }

    /// [`Cluster::mysql`], started once for all tests of this process. Leave it as you found it.
    pub fn shared_mysql(replicas: usize) -> &'static Cluster {
        shared::get("mysql", replicas, Cluster::mysql)
    }

    /// [`Cluster::sqlite`], made once for all tests of this process. Leave it as you found it.
    pub fn shared_sqlite(replicas: usize) -> &'static Cluster {
        shared::get("sqlite", replicas, Cluster::sqlite)
    }

    fn start<B: Backend + 'static>(
        replicas: usize,
        upstream: Option<usize>,
        start: impl Fn() -> Result<B, String>,
    ) -> Cluster {
        let mut result = start();
        for _ in 0..3 {
            // A port can be taken by another program between the look and the start.
            match &result {
                Err(reason) if reason.contains("ddress already in use") => result = start(),
                _ => break,
            }
        }
        let backend = result.unwrap_or_else(|reason| panic!("the cluster did not start: {reason}"));
        let primary = Node {
            running: true,
            paused: false,
            receiving: true,
            upstream: None,
        };
        let mut nodes = vec![
            Node {
                upstream,
                ..primary.clone()
            };
            replicas + 1
        ];
        nodes[0] = primary;
        let cluster = Cluster {
            backend: Box::new(backend),
            nodes: Mutex::new(nodes),
        };
        cluster.wait_replicated();
        cluster
    }

    /// The number of nodes, the primary included.
    pub fn len(&self) -> usize {
        self.nodes().len()
    }

    /// The URL of a node for Diesel, as the application's role.
    pub fn url(&self, node: usize) -> String {
        self.backend.url(node, Login::App)
    }

    /// The URLs of nodes 1, 2, ..
    pub fn replica_urls(&self) -> Vec<String> {
        (1..self.len()).map(|node| self.url(node)).collect()
    }

    /// The URL of a node for Diesel, as a superuser where the database has one.
    pub fn admin_url(&self, node: usize) -> String {
        self.backend.url(node, Login::Admin)
    }

    /// The TCP port of a node on 127.0.0.1. Panics for SQLite.
    pub fn port(&self, node: usize) -> u16 {
        self.backend.port(node)
    }

    /// The directory that holds everything: node `i` is in `n<i>`, a server's log is `n<i>/log`.
    pub fn dir(&self) -> &Path {
        self.backend.dir()
    }

    /// Runs statements on a node as superuser: rows as lines, columns separated by tabs, trimmed.
    #[track_caller]
    pub fn sql(&self, node: usize, sql: &str) -> String {
        self.try_sql(node, sql)
            .unwrap_or_else(|reason| panic!("n{node}: {sql}: {reason}"))
    }

    /// [`Cluster::sql`] that returns what the server says when it fails.
    pub fn try_sql(&self, node: usize, sql: &str) -> Result<String, String> {
        self.backend.admin(node, sql)
    }

    /// [`Cluster::try_sql`] as the application's role, over TCP like the code under test.
    pub fn try_app_sql(&self, node: usize, sql: &str) -> Result<String, String> {
        self.backend.sql(node, Login::App, sql)
    }

    /// Stops applying changes on a replica (they still arrive); returns when it has really stopped.
    #[track_caller]
    pub fn pause_replication(&self, replica: usize) {
        self.done(replica, "pause", self.backend.pause(replica));
        self.nodes()[replica].paused = true;
    }

    /// Applies changes on a paused replica again; [`Cluster::wait_replicated`] tells when it has caught up.
    #[track_caller]
    pub fn resume_replication(&self, replica: usize) {
        self.done(replica, "resume", self.backend.resume(replica));
        self.nodes()[replica].paused = false;
    }

    /// Returns when each replica has applied the present position of the node it follows.
    ///
    /// A replica that is paused, killed or frozen, or whose upstream is killed or frozen, is left out.
    #[track_caller]
    pub fn wait_replicated(&self) {
        let nodes = self.nodes().clone();
        for (replica, node) in nodes.iter().enumerate() {
            let Some(upstream) = node.upstream.filter(|&upstream| nodes[upstream].running) else {
                continue;
            };
            if !node.running || node.paused {
                continue;
            }
            let position = self.backend.position(upstream);
            let position =
                position.unwrap_or_else(|reason| panic!("n{upstream}: no position: {reason}"));
            let mut last = Ok(false);
            let caught_up = holds_within(DEADLINE, || {
                last = self.backend.has_applied(replica, &position);
                last == Ok(true)
            });
            assert!(
                caught_up,
                "n{replica} has not applied {position:?} of n{upstream}: {last:?}"
            );
        }
    }

    /// Kills a node's processes (SIGKILL), as a power cut would. SQLite: moves the file away, which
    /// fails new connections; open ones keep the file they have.
    pub fn kill(&self, node: usize) {
        self.backend.kill(node);
        self.nodes()[node].running = false;
    }

    /// Starts a node on its old data, port and role; kills it first if it runs. Replication runs again
    /// afterwards, also if it was paused, but not after [`Cluster::stop_receiving`].
    #[track_caller]
    pub fn restart(&self, node: usize) {
        self.kill(node);
        self.done(node, "start", self.backend.start(node));
        let state = &mut self.nodes()[node];
        (state.running, state.paused) = (true, !state.receiving);
    }

    /// Stops a node's processes in their tracks (SIGSTOP): connections stay open and nothing answers.
    pub fn freeze(&self, node: usize) {
        self.backend.freeze(node);
        self.nodes()[node].running = false;
    }

    /// Lets a frozen node go on.
    pub fn thaw(&self, node: usize) {
        self.backend.thaw(node);
        self.nodes()[node].running = true;
    }

    /// Makes a replica a primary of its own. The old primary and the other replicas are not told: kill
    /// the one, and point the others with [`Cluster::follow`].
    #[track_caller]
    pub fn promote(&self, replica: usize) {
        self.done(replica, "promote", self.backend.promote(replica));
        let node = &mut self.nodes()[replica];
        (node.upstream, node.paused) = (None, false);
    }

    /// Points a replica at another running primary, whose history must continue its own.
    #[track_caller]
    pub fn follow(&self, replica: usize, primary: usize) {
        self.done(replica, "follow", self.backend.follow(replica, primary));
        self.nodes()[replica].upstream = Some(primary);
    }

    /// Makes a replica's server accept writes while it goes on replicating: MariaDB and MySQL (a SQLite
    /// file always does; for PostgreSQL, whose standbys cannot, see [`Cluster::postgres_writable`]).
    #[track_caller]
    pub fn set_writable(&self, replica: usize) {
        self.done(replica, "set writable", self.backend.set_writable(replica));
    }

    #[track_caller]
    fn done(&self, node: usize, what: &str, result: Result<(), String>) {
        result.unwrap_or_else(|reason| panic!("n{node}: could not {what}: {reason}"));
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

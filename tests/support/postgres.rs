//! PostgreSQL: a primary with streaming physical standbys, or servers side by side.

mod faults;
mod install;

use std::path::Path;

use super::home::Home;
use super::process::{Server, copy_dir, in_parallel};
use super::{Backend, Login};
use install::{Install, socket_target};

/// How the servers of a cluster relate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Node 0 is the primary, the others are its standbys.
    Streaming,
    /// Each is a primary.
    Independent,
}

/// The end of the WAL as a standby will report it. At the start of an empty page the insert position
/// already counts the page header (24 or 40 bytes), which no standby replays before the next record.
const POSITION: &str = "
SELECT CASE WHEN insert - flush <= 40 AND (flush - '0/0') % 8192 = 0 THEN flush ELSE insert END
FROM (SELECT pg_current_wal_insert_lsn() AS insert, pg_current_wal_flush_lsn() AS flush) AS wal;
";

pub struct Postgres {
    // Dropped first: it kills everything, then the servers reap their children.
    home: Home,
    install: Install,
    servers: Vec<Server>,
}

impl Postgres {
    pub fn start(replicas: usize, topology: Topology) -> Result<Postgres, String> {
        let home = Home::new();
        let install = Install::find();
        let template = install.template(&home)?;
        let dirs = (0..=replicas).map(|node| home.dir().join(format!("n{node}")));
        let servers = dirs.map(Server::new).collect();
        let postgres = Postgres {
            home,
            install,
            servers,
        };
        postgres.lay_out(&template, topology)?;
        // A standby that comes up before its primary loses time until it tries again.
        postgres.start(0)?;
        postgres.each_other(|node| postgres.start(node))?;
        if topology == Topology::Streaming {
            let streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
            postgres.admin_until(0, streaming, &replicas.to_string())?;
        }
        Ok(postgres)
    }

    /// Gives each node a copy of one stopped server that knows all of them.
    fn lay_out(&self, template: &Path, topology: Topology) -> Result<(), String> {
        let first = &self.servers[0].dir;
        copy_dir(template, first)?;
        self.install.renew_identity(first)?;
        let slots: String = match topology {
            Topology::Streaming => (1..self.servers.len()).map(create_slot).collect(),
            Topology::Independent => String::new(),
        };
        self.install
            .single_user(first, &(self.name_nodes() + &slots))?;
        self.each_other(|node| {
            let dir = &self.servers[node].dir;
            copy_dir(first, dir)?;
            match topology {
                Topology::Streaming => {
                    self.install
                        .make_standby(dir, &self.conninfo(node, 0), &format!("n{node}"))
                }
                Topology::Independent => Ok(()),
            }
        })
    }

    fn name_nodes(&self) -> String {
        let row = |(node, server): (usize, &Server)| format!("({}, 'n{node}')", server.port());
        let rows: Vec<String> = self.servers.iter().enumerate().map(row).collect();
        format!("INSERT INTO node_port VALUES {};\n", rows.join(", "))
    }

    fn conninfo(&self, standby: usize, primary: usize) -> String {
        format!(
            "host=127.0.0.1 port={} user=postgres application_name=n{standby}",
            self.port(primary)
        )
    }

    /// Does `work` for all nodes but the first, at the same time.
    fn each_other(&self, work: impl Fn(usize) -> Result<(), String> + Sync) -> Result<(), String> {
        in_parallel(1..self.servers.len(), work)
    }
}

impl Backend for Postgres {
    fn dir(&self) -> &Path {
        self.home.dir()
    }

    fn port(&self, node: usize) -> u16 {
        self.servers[node].port()
    }

    fn url(&self, node: usize, login: Login) -> String {
        let user = match login {
            Login::Admin => "postgres",
            Login::App => "app:app",
        };
        format!("postgres://{user}@127.0.0.1:{}/app", self.port(node))
    }

    fn sql(&self, node: usize, login: Login, sql: &str) -> Result<String, String> {
        let target = match login {
            Login::Admin => socket_target(&self.servers[node], "app"),
            Login::App => self.url(node, login),
        };
        self.install.psql(&target, sql)
    }

    fn position(&self, primary: usize) -> Result<String, String> {
        self.admin(primary, POSITION)
    }

    fn has_applied(&self, replica: usize, position: &str) -> Result<bool, String> {
        let applied = self.admin(
            replica,
            &format!("SELECT pg_last_wal_replay_lsn() >= '{position}'"),
        )?;
        Ok(applied == "t")
    }

    fn pause(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "SELECT pg_wal_replay_pause()")?;
        self.admin_until(replica, "SELECT pg_get_wal_replay_pause_state()", "paused")
    }

    fn resume(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "SELECT pg_wal_replay_resume()")
            .map(drop)
    }

    fn kill(&self, node: usize) {
        self.servers[node].kill();
    }

    fn start(&self, node: usize) -> Result<(), String> {
        self.install.launch(&self.servers[node], &[])
    }

    fn freeze(&self, node: usize) {
        self.servers[node].freeze();
    }

    fn thaw(&self, node: usize) {
        self.servers[node].thaw();
    }

    fn promote(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "SELECT pg_promote()")?;
        self.admin_until(replica, "SELECT pg_is_in_recovery()", "f")
    }

    fn follow(&self, replica: usize, primary: usize) -> Result<(), String> {
        self.admin(primary, &create_slot(replica))?;
        let conninfo = self.conninfo(replica, primary);
        self.admin(
            replica,
            &format!("ALTER SYSTEM SET primary_conninfo = '{conninfo}';\nSELECT pg_reload_conf();"),
        )?;
        let streaming =
            format!("SELECT state FROM pg_stat_replication WHERE application_name = 'n{replica}'");
        self.admin_until(primary, &streaming, "streaming")
    }

    fn set_writable(&self, _replica: usize) -> Result<(), String> {
        Err("a standby cannot be; use Cluster::postgres_writable".into())
    }
}

/// Creates the slot of a standby unless it is there already.
fn create_slot(standby: usize) -> String {
    format!(
        "SELECT pg_create_physical_replication_slot('n{standby}') \
         WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'n{standby}');\n"
    )
}

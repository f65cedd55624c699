//! The PostgreSQL that is installed here, and what it makes on disk.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::super::home::Home;
use super::super::port::random;
use super::super::process::{Server, as_user, find_program, run};
use super::super::template::template;

/// Fast rather than safe: the data outlives killed processes, but not the machine.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
fsync = off
synchronous_commit = on
# in the data directory, so that a killed server leaves nothing in /dev/shm
dynamic_shared_memory_type = mmap
shared_buffers = 32MB
max_connections = 200
wal_level = replica
max_wal_senders = 16
max_replication_slots = 16
min_wal_size = 2MB
max_wal_size = 256MB
hot_standby = on
hot_standby_feedback = off
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 200ms
wal_receiver_timeout = 5s
wal_sender_timeout = 5s
max_standby_streaming_delay = 30s
log_min_messages = warning
log_line_prefix = '%m [%p] %u@%d %e '
jit = off
";

const ACCESS: &str = "
local all all trust
host all all 127.0.0.1/32 trust
local replication all trust
host replication all 127.0.0.1/32 trust
";

/// Standbys share every row with their primary, so a node's name comes from its port.
const SCHEMA: &str = "
CREATE ROLE app LOGIN PASSWORD 'app';
CREATE DATABASE app OWNER app;
\\connect app
ALTER SCHEMA public OWNER TO app;
CREATE TABLE node_port (port integer PRIMARY KEY, name text NOT NULL);
CREATE VIEW node_name AS SELECT name FROM node_port WHERE port = current_setting('port')::integer;
GRANT SELECT ON node_port, node_name TO app;
";

/// The server's programs.
pub struct Install {
    bin: PathBuf,
}

impl Install {
    /// In `$PGBIN`, else Debian's newest version, else on the search path.
    pub fn find() -> Install {
        let chosen = std::env::var_os("PGBIN").map(PathBuf::from);
        let on_path = || Some(find_program("postgres")?.parent()?.to_owned());
        let bin = chosen.or_else(newest_version).or_else(on_path);
        let bin = bin.filter(|bin| bin.join("postgres").is_file());
        let bin = bin.expect("no PostgreSQL server: apt-get install postgresql, or set PGBIN");
        Install { bin }
    }

    fn command(&self, program: &str) -> Command {
        as_user("postgres", &self.bin.join(program))
    }

    /// The directory to copy for a node: a stopped server with the schema in it.
    pub fn template(&self, home: &Home) -> Result<PathBuf, String> {
        let recipe = [SETTINGS, ACCESS, SCHEMA];
        let server = self.bin.join("postgres");
        template(home, "postgres", &server, &recipe, |dir| self.build(dir))
    }

    fn build(&self, dir: &Path) -> Result<(), String> {
        let data = dir.join("data");
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(&data);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"]);
        // Small WAL segments are quick to make and to copy.
        initdb.args(["--wal-segsize=1", "--no-sync", "--no-instructions"]);
        run(initdb.current_dir(dir), "")?;
        append(&data.join("postgresql.conf"), SETTINGS)?;
        fs::write(data.join("pg_hba.conf"), ACCESS).map_err(|error| error.to_string())?;

        let server = Server::new(dir.to_owned());
        self.launch(&server, &["-c", "listen_addresses="])?;
        self.psql(&socket_target(&server, "postgres"), SCHEMA)?;
        server.stop(Signal::INT);
        fs::remove_file(dir.join("log")).map_err(|error| error.to_string())
    }

    /// Runs SQL on a running server; `target` is a connection string.
    pub fn psql(&self, target: &str, sql: &str) -> Result<String, String> {
        let mut psql = self.command("psql");
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-F",
            "\t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            target,
        ]);
        run(psql.current_dir("/"), sql)
    }

    /// Makes a stopped server another system than the one it was copied from.
    ///
    /// pg_resetwal accepts a control file with a wrong checksum and writes it anew, so a system
    /// identifier, its first field, can simply be put in: much faster than initdb. What it writes
    /// claims `wal_level=minimal`, which no standby accepts, until a server has run on it.
    pub fn renew_identity(&self, dir: &Path) -> Result<(), String> {
        let data = dir.join("data");
        let identifier = (random() >> 1).to_ne_bytes();
        let control = fs::OpenOptions::new()
            .write(true)
            .open(data.join("global/pg_control"));
        let written = control.and_then(|file| file.write_all_at(&identifier, 0));
        written.map_err(|error| format!("pg_control: {error}"))?;
        let mut reset = self.command("pg_resetwal");
        run(reset.arg("-f").arg("-D").arg(data).current_dir(dir), "").map(drop)
    }

    /// Runs SQL, one statement a line, on a stopped server.
    pub fn single_user(&self, dir: &Path, sql: &str) -> Result<(), String> {
        let mut postgres = self.command("postgres");
        postgres
            .args(["--single", "-c", "exit_on_error=on", "-D"])
            .arg(dir.join("data"))
            .arg("app");
        run(postgres.current_dir(dir), sql).map(drop)
    }

    /// Makes a copy of a stopped primary a standby.
    pub fn make_standby(&self, dir: &Path, conninfo: &str, slot: &str) -> Result<(), String> {
        let data = dir.join("data");
        // The copied slots are the primary's.
        let slots = fs::read_dir(data.join("pg_replslot"));
        for entry in slots.into_iter().flatten().flatten() {
            fs::remove_dir_all(entry.path()).map_err(|error| error.to_string())?;
        }
        let settings = format!("primary_conninfo = '{conninfo}'\nprimary_slot_name = '{slot}'\n");
        append(&data.join("postgresql.auto.conf"), &settings)?;
        append(&data.join("standby.signal"), "")
    }

    /// Starts a server on its port; returns when it accepts connections.
    pub fn launch(&self, server: &Server, options: &[&str]) -> Result<(), String> {
        let (data, port) = (server.dir.join("data"), server.port().to_string());
        let state = data.join("postmaster.pid");
        // Left by a killed server, whose number another process may have by now.
        let lock = server.dir.join(format!(".s.PGSQL.{port}.lock"));
        for stale in [&state, &lock] {
            let _ = fs::remove_file(stale);
        }
        let mut command = server.command("postgres", &self.bin.join("postgres"));
        command
            .arg("-D")
            .arg(&data)
            .args(["-p", &port, "-k"])
            .arg(&server.dir)
            .args(options);
        // The eighth line says when connections are accepted.
        server.launch(command, || {
            let text = fs::read_to_string(&state).unwrap_or_default();
            text.lines()
                .nth(7)
                .is_some_and(|line| line.starts_with("ready"))
        })
    }
}

/// The connection string for a server's superuser.
pub fn socket_target(server: &Server, database: &str) -> String {
    let (dir, port) = (server.dir.display(), server.port());
    format!("host={dir} port={port} user=postgres dbname={database}")
}

fn newest_version() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let servers = versions.filter(|version| version.path().join("bin/postgres").is_file());
    let number = |version: &fs::DirEntry| version.file_name().to_str()?.parse::<u32>().ok();
    Some(servers.max_by_key(number)?.path().join("bin"))
}

/// Appends to a file, which gets the owner of its directory.
fn append(path: &Path, text: &str) -> Result<(), String> {
    let append = || {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?
            .write_all(text.as_bytes())?;
        let dir = fs::metadata(path.parent().expect("a file has a directory"))?;
        chown(path, Some(dir.uid()), Some(dir.gid()))
    };
    append().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}

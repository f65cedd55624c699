//! MariaDB: a primary with GTID replicas.

mod faults;

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;

use super::home::Home;
use super::process::{Server, as_user, copy_dir, find_program, in_parallel, run};
use super::template::template;
use super::{Backend, Login};

/// Fast rather than safe: the data outlives killed processes, but not the machine.
const SETTINGS: &str = "
[mariadbd]
skip-name-resolve
bind-address=127.0.0.1
character-set-server=utf8mb4
max-connections=500
performance-schema=0
log-bin-trust-function-creators=1
innodb-buffer-pool-size=32M
innodb-log-file-size=16M
innodb-flush-log-at-trx-commit=2
innodb-flush-method=nosync
innodb-use-native-aio=0
innodb-buffer-pool-dump-at-shutdown=0
innodb-buffer-pool-load-at-startup=0
sync-binlog=0
key-buffer-size=1M
aria-pagecache-buffer-size=8M
";

const REPLICATION: &str = "
log-bin=bin
log-slave-updates=1
binlog-format=ROW
gtid-domain-id=0
gtid-strict-mode=1
skip-slave-start=0
slave-net-timeout=10
";

const SCHEMA: &str = "
DELETE FROM mysql.global_priv WHERE User = '';
FLUSH PRIVILEGES;
CREATE DATABASE app;
CREATE USER app@'%' IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON app.* TO app@'%';
GRANT BINLOG MONITOR, SLAVE MONITOR ON *.* TO app@'%';
CREATE USER admin@'%' IDENTIFIED BY 'admin';
GRANT ALL PRIVILEGES ON *.* TO admin@'%' WITH GRANT OPTION;
CREATE USER repl@'%' IDENTIFIED BY 'repl';
GRANT REPLICATION SLAVE ON *.* TO repl@'%';
CREATE TABLE app.node_name (name VARCHAR(16) PRIMARY KEY);
";

pub struct Mariadb {
    // Dropped first: it kills everything, then the servers reap their children.
    home: Home,
    programs: Programs,
    servers: Vec<Server>,
    /// What each node is started with beyond the settings that all share.
    roles: Mutex<Vec<Vec<String>>>,
}

struct Programs {
    server: PathBuf,
    client: PathBuf,
}

impl Mariadb {
    pub fn start(replicas: usize) -> Result<Mariadb, String> {
        let home = Home::new();
        let programs = Programs {
            server: program("mariadbd"),
            client: program("mariadb"),
        };
        let recipe = [SETTINGS, SCHEMA];
        let build = |dir: &Path| build(&programs, dir);
        let template = template(&home, "mysql", &programs.server, &recipe, build)?;
        let servers: Vec<Server> = (0..=replicas)
            .map(|node| Server::new(home.dir().join(format!("n{node}"))))
            .collect();
        let role = |node| vec![format!("--read-only={}", u8::from(node != 0))];
        let roles = Mutex::new((0..=replicas).map(role).collect());
        let mariadb = Mariadb {
            home,
            programs,
            servers,
            roles,
        };
        in_parallel(0..replicas + 1, |node| mariadb.create(node, &template))?;
        // A replica that finds no primary would wait for a second before it tries again.
        in_parallel(1..replicas + 1, |node| mariadb.follow(node, 0))?;
        Ok(mariadb)
    }

    fn create(&self, node: usize, template: &Path) -> Result<(), String> {
        let dir = &self.servers[node].dir;
        copy_dir(template, dir)?;
        configure(dir, REPLICATION)?;
        self.start(node)?;
        // Each node's own: the row is not replicated.
        let name = format!("SET sql_log_bin = 0; INSERT INTO node_name VALUES ('n{node}')");
        self.admin(node, &name).map(drop)
    }

    fn set_role(&self, node: usize, options: &[&str]) {
        let mut roles = self.roles.lock().expect("no panic while it is held");
        roles[node] = options.iter().map(ToString::to_string).collect();
    }
}

impl Backend for Mariadb {
    fn dir(&self) -> &Path {
        self.home.dir()
    }

    fn port(&self, node: usize) -> u16 {
        self.servers[node].port()
    }

    fn url(&self, node: usize, login: Login) -> String {
        let user = match login {
            Login::Admin => "admin",
            Login::App => "app",
        };
        format!("mysql://{user}:{user}@127.0.0.1:{}/app", self.port(node))
    }

    fn sql(&self, node: usize, login: Login, sql: &str) -> Result<String, String> {
        let server = &self.servers[node];
        let mut client = client(&self.programs.client);
        match login {
            Login::Admin => client.arg("-uroot").arg("-S").arg(server.dir.join("sock")),
            Login::App => client
                .args(["--protocol=tcp", "-h127.0.0.1", "-uapp", "-papp"])
                .arg(format!("-P{}", server.port())),
        };
        run(client.arg("app").current_dir("/"), sql)
    }

    fn position(&self, primary: usize) -> Result<String, String> {
        self.admin(primary, "SELECT @@gtid_binlog_pos")
    }

    fn has_applied(&self, replica: usize, position: &str) -> Result<bool, String> {
        let waited = self.admin(
            replica,
            &format!("SELECT MASTER_GTID_WAIT('{position}', 1)"),
        )?;
        Ok(waited == "0")
    }

    fn pause(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "STOP SLAVE SQL_THREAD").map(drop)
    }

    fn resume(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "START SLAVE SQL_THREAD").map(drop)
    }

    fn kill(&self, node: usize) {
        self.servers[node].kill();
    }

    fn start(&self, node: usize) -> Result<(), String> {
        let server = &self.servers[node];
        // The port is also the server's id: no two of this machine are the same.
        let port = server.port();
        let mut options = vec![format!("--port={port}"), format!("--server-id={port}")];
        options.extend_from_slice(&self.roles.lock().expect("no panic while it is held")[node]);
        launch(&self.programs.server, server, &options)
    }

    fn freeze(&self, node: usize) {
        self.servers[node].freeze();
    }

    fn thaw(&self, node: usize) {
        self.servers[node].thaw();
    }

    fn promote(&self, replica: usize) -> Result<(), String> {
        self.set_role(replica, &["--read-only=0"]);
        let sql = "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0";
        self.admin(replica, sql).map(drop)
    }

    fn follow(&self, replica: usize, primary: usize) -> Result<(), String> {
        let port = self.port(primary);
        let follow = format!(
            "STOP SLAVE;
             CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl',
                 MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1,
                 MASTER_HEARTBEAT_PERIOD=1;
             START SLAVE;"
        );
        self.admin(replica, &follow)?;
        let running = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS
             WHERE VARIABLE_NAME = 'SLAVE_RUNNING'";
        self.admin_until(replica, running, "ON")
    }

    fn set_writable(&self, replica: usize) -> Result<(), String> {
        // Numbered apart from the primary's writes, which would otherwise collide with its own.
        let domain = 100 + replica;
        let option = format!("--gtid-domain-id={domain}");
        self.set_role(replica, &["--read-only=0", &option]);
        let sql = format!("SET GLOBAL gtid_domain_id = {domain}; SET GLOBAL read_only = 0");
        self.admin(replica, &sql).map(drop)
    }
}

/// Initialises a server with the schema and stops it. It writes no binary log, so the copies start
/// without history.
fn build(programs: &Programs, dir: &Path) -> Result<(), String> {
    configure(dir, "")?;
    let mut install = as_user("mysql", &program("mariadb-install-db"));
    install.arg(defaults_file(dir));
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    run(install.current_dir(dir), "")?;

    let server = Server::new(dir.to_owned());
    launch(&programs.server, &server, &["--skip-networking".into()])?;
    let mut client = client(&programs.client);
    client.arg("-uroot").arg("-S").arg(dir.join("sock"));
    run(client.current_dir("/"), SCHEMA)?;
    server.stop(Signal::TERM);
    fs::remove_file(dir.join("log")).map_err(|error| error.to_string())
}

/// Writes a node's configuration file.
fn configure(dir: &Path, extra: &str) -> Result<(), String> {
    let path = dir.display();
    // A server that starts empties its directory for temporary tables, which would be all servers'.
    let paths =
        format!("datadir={path}/data\ntmpdir={path}\nsocket={path}/sock\npid-file={path}/pid\n");
    let written = fs::write(dir.join("my.cnf"), format!("{SETTINGS}{extra}{paths}"));
    written.map_err(|error| format!("{path}: {error}"))
}

pub(super) fn defaults_file(dir: &Path) -> String {
    format!("--defaults-file={}/my.cnf", dir.display())
}

fn launch(program: &Path, server: &Server, options: &[String]) -> Result<(), String> {
    let socket = server.dir.join("sock");
    let _ = fs::remove_file(&socket);
    let mut command = server.command("mysql", program);
    command.arg(defaults_file(&server.dir)).args(options);
    server.launch(command, || greets(&socket))
}

/// Whether a server says hello; it listens some time before it does.
pub(super) fn greets(socket: &Path) -> bool {
    let greeting = UnixStream::connect(socket).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.read(&mut [0])
    });
    matches!(greeting, Ok(1))
}

pub(super) fn client(program: &Path) -> Command {
    let mut client = as_user("mysql", program);
    client.args(["--no-defaults", "--batch", "--raw", "--skip-column-names"]);
    client
}

fn program(name: &str) -> PathBuf {
    find_program(name)
        .unwrap_or_else(|| panic!("{name} is not installed: apt-get install mariadb-server"))
}

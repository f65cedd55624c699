//! MySQL: a primary with GTID replicas.

mod faults;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::process::{Signal, getuid};

use super::home::Home;
use super::mariadb::{client, defaults_file, greets};
use super::process::{Server, as_user, copy_dir, find_program, in_parallel, run};
use super::template::template;
use super::{Backend, Login};

/// Fast rather than safe: the data outlives killed processes, but not the machine.
///
/// The performance schema costs 250 MB a server; without it, its tables of the status, the variables
/// and the replication are still there.
const SETTINGS: &str = "
[mysqld]
skip-name-resolve
bind-address=127.0.0.1
mysqlx=0
secure-file-priv=NULL
max-connections=500
performance-schema=0
log-bin-trust-function-creators=1
innodb-buffer-pool-size=32M
innodb-redo-log-capacity=16M
innodb-log-buffer-size=1M
innodb-doublewrite=0
innodb-flush-log-at-trx-commit=2
innodb-flush-method=nosync
innodb-use-native-aio=0
innodb-buffer-pool-dump-at-shutdown=0
innodb-buffer-pool-load-at-startup=0
sync-binlog=0
table-open-cache=400
";

const REPLICATION: &str = "
log-bin=bin
gtid-mode=ON
enforce-gtid-consistency=ON
relay-log=relay
relay-log-recovery=1
replica-net-timeout=10
";

const SCHEMA: &str = "
CREATE DATABASE app;
CREATE USER app@'%' IDENTIFIED BY 'app';
GRANT ALL PRIVILEGES ON app.* TO app@'%';
GRANT SELECT ON performance_schema.* TO app@'%';
CREATE USER admin@'%' IDENTIFIED BY 'admin';
GRANT ALL PRIVILEGES ON *.* TO admin@'%' WITH GRANT OPTION;
CREATE USER repl@'%' IDENTIFIED BY 'repl';
GRANT REPLICATION SLAVE ON *.* TO repl@'%';
CREATE TABLE app.node_name (name VARCHAR(16) PRIMARY KEY);
";

pub struct Mysql {
    // Dropped first: it kills everything, then the servers reap their children.
    home: Home,
    programs: Programs,
    servers: Vec<Server>,
    /// What each node is started with beyond the settings that all share.
    roles: Mutex<Vec<Vec<&'static str>>>,
}

const WRITABLE: &str = "--read-only=0";
// "super" would refuse the tests' own statements, too.
const READ_ONLY: &str = "--read-only=1";

struct Programs {
    server: PathBuf,
    client: PathBuf,
}

impl Mysql {
    pub fn start(replicas: usize) -> Result<Mysql, String> {
        let home = Home::new();
        let programs = Programs::find();
        let build = |dir: &Path| build(&programs, dir);
        let recipe = [SETTINGS, SCHEMA];
        let template = template(&home, "mysql", &programs.server, &recipe, build)?;
        let dirs = (0..=replicas).map(|node| home.dir().join(format!("n{node}")));
        let servers = dirs.map(Server::new).collect();
        let mut roles = vec![vec![READ_ONLY]; replicas + 1];
        roles[0] = vec![WRITABLE];
        let mysql = Mysql {
            home,
            programs,
            servers,
            roles: Mutex::new(roles),
        };
        in_parallel(0..replicas + 1, |node| mysql.create(node, &template))?;
        // A replica that finds no primary would wait for a second before it tries again.
        in_parallel(1..replicas + 1, |node| mysql.follow(node, 0))?;
        Ok(mysql)
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

    fn set_role(&self, node: usize, options: &[&'static str]) {
        self.roles.lock().expect("no panic while it is held")[node] = options.to_vec();
    }
}

impl Backend for Mysql {
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
        // A long set is printed on several lines.
        let executed = "SELECT REPLACE(@@GLOBAL.gtid_executed, CHAR(10), '')";
        self.admin(primary, executed)
    }

    fn has_applied(&self, replica: usize, position: &str) -> Result<bool, String> {
        let wait = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', 1)");
        Ok(self.admin(replica, &wait)? == "0")
    }

    fn pause(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "STOP REPLICA SQL_THREAD").map(drop)
    }

    fn resume(&self, replica: usize) -> Result<(), String> {
        self.admin(replica, "START REPLICA SQL_THREAD").map(drop)
    }

    fn kill(&self, node: usize) {
        self.servers[node].kill();
    }

    fn start(&self, node: usize) -> Result<(), String> {
        let server = &self.servers[node];
        // The port is also the server's id: no two of this machine are the same.
        let port = server.port();
        let mut options = vec![format!("--port={port}"), format!("--server-id={port}")];
        let roles = self.roles.lock().expect("no panic while it is held");
        options.extend(roles[node].iter().map(ToString::to_string));
        drop(roles);
        launch(&self.programs.server, server, &options)
    }

    fn freeze(&self, node: usize) {
        self.servers[node].freeze();
    }

    fn thaw(&self, node: usize) {
        self.servers[node].thaw();
    }

    fn promote(&self, replica: usize) -> Result<(), String> {
        self.set_role(replica, &[WRITABLE]);
        let sql = "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL read_only = 0";
        self.admin(replica, sql).map(drop)
    }

    fn follow(&self, replica: usize, primary: usize) -> Result<(), String> {
        let port = self.port(primary);
        let follow = format!(
            "STOP REPLICA;
             CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port},
                 SOURCE_USER='repl', SOURCE_PASSWORD='repl', GET_SOURCE_PUBLIC_KEY=1,
                 SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1;
             START REPLICA;"
        );
        self.admin(replica, &follow)?;
        let receiving =
            "SELECT SERVICE_STATE FROM performance_schema.replication_connection_status";
        self.admin_until(replica, receiving, "ON")
    }

    fn set_writable(&self, replica: usize) -> Result<(), String> {
        // Its own writes are numbered under its own UUID and collide with nobody's.
        self.set_role(replica, &[WRITABLE]);
        self.admin(replica, "SET GLOBAL read_only = 0").map(drop)
    }
}

impl Programs {
    fn find() -> Programs {
        let server = server().filter(|server| server.is_file());
        Programs {
            server: server.expect(
                "no MySQL server: ./test setup gets one where it can, or set MYSQLD; \
                 without it: cargo nextest run --profile without-mysql",
            ),
            client: find_program("mariadb")
                .expect("mariadb is not installed: apt-get install mariadb-server"),
        }
    }
}

/// `$MYSQLD`, else where `./test setup` puts it.
fn server() -> Option<PathBuf> {
    let path = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = || {
        if getuid().is_root() {
            return Some(PathBuf::from("/var/cache"));
        }
        path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))
    };
    path("MYSQLD").or_else(|| Some(cache()?.join("diesel-routed/mysql/bin/mysqld")))
}

/// Initialises a server with the schema and stops it. It writes no binary log, so the copies start
/// without history.
fn build(programs: &Programs, dir: &Path) -> Result<(), String> {
    configure(dir, "skip-log-bin\n")?;
    let mut initialize = as_user("mysql", &programs.server);
    initialize
        .arg(defaults_file(dir))
        .arg("--initialize-insecure");
    run(initialize.current_dir(dir), "")?;

    let server = Server::new(dir.to_owned());
    launch(&programs.server, &server, &["--skip-networking".into()])?;
    let mut client = client(&programs.client);
    client.arg("-uroot").arg("-S").arg(dir.join("sock"));
    run(client.current_dir("/"), SCHEMA)?;
    server.stop(Signal::TERM);
    // The server's UUID: each copy makes one of its own.
    for file in ["data/auto.cnf", "log"] {
        fs::remove_file(dir.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// Writes a node's configuration file.
fn configure(dir: &Path, extra: &str) -> Result<(), String> {
    let path = dir.display();
    let paths =
        format!("datadir={path}/data\ntmpdir={path}\nsocket={path}/sock\npid-file={path}/pid\n");
    let written = fs::write(dir.join("my.cnf"), format!("{SETTINGS}{extra}{paths}"));
    written.map_err(|error| format!("{path}: {error}"))
}

fn launch(program: &Path, server: &Server, options: &[String]) -> Result<(), String> {
    let socket = server.dir.join("sock");
    for stale in [&socket, &server.dir.join("sock.lock")] {
        let _ = fs::remove_file(stale);
    }
    let mut command = as_user("mysql", program);
    command.arg(defaults_file(&server.dir)).args(options);
    server.launch(command, || greets(&socket))
}

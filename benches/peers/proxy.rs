//! PgBouncer and pgpool-II in front of a cluster.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::{Cluster, Port, Server, as_user, find_program};

/// Neither runs as root; the servers' user can enter the cluster's directory.
const USER: &str = "postgres";

pub struct Proxy {
    server: Server,
    /// pgpool-II wants a second port, for its own commands.
    commands: Port,
}

impl Proxy {
    fn new(cluster: &Cluster, name: &str) -> Self {
        let dir = cluster.dir().join(name);
        fs::create_dir(&dir).expect("the cluster's directory is ours");
        // the user that node 0 runs as
        let owner = fs::metadata(cluster.dir().join("n0")).expect("node 0 has a directory");
        chown(&dir, Some(owner.uid()), Some(owner.gid())).expect("ours, or we are root");
        Proxy {
            server: Server::new(dir),
            commands: Port::claim(),
        }
    }

    pub fn url(&self, database: &str) -> String {
        format!(
            "postgres://app:app@127.0.0.1:{}/{database}",
            self.server.port()
        )
    }

    fn dir(&self) -> &Path {
        &self.server.dir
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.dir().join(file);
        fs::write(&path, text).expect("the directory is ours");
        path
    }

    fn launch(&self, command: Command) {
        let port = self.server.port();
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        let launched = self.server.launch(command, listens);
        launched.unwrap_or_else(|reason| panic!("{}: {reason}", self.dir().display()));
    }
}

/// PgBouncer, in session mode, as statements stay prepared; each standby is a database of its own.
pub fn pgbouncer(cluster: &Cluster) -> Proxy {
    let proxy = Proxy::new(cluster, "pgbouncer");
    let standby = |node| {
        let port = cluster.port(node);
        format!("n{node} = host=127.0.0.1 port={port} dbname=app user=app password=app\n")
    };
    let standbys: String = (1..cluster.len()).map(standby).collect();
    let settings = format!(
        "[databases]\n{standbys}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = session\n",
        proxy.server.port()
    );
    let settings = proxy.write("pgbouncer.ini", &settings);
    let mut command = as_user(USER, &program("pgbouncer"));
    command.arg(settings);
    proxy.launch(command);
    proxy
}

/// pgpool-II, which balances over the standbys.
pub fn pgpool(cluster: &Cluster) -> Proxy {
    let proxy = Proxy::new(cluster, "pgpool");
    let backend = |node| {
        let (port, weight) = (cluster.port(node), node.min(1));
        let role = if node == 0 { "ALWAYS_PRIMARY|" } else { "" };
        format!(
            "backend_hostname{node} = '127.0.0.1'\nbackend_port{node} = {port}\n\
             backend_weight{node} = {weight}\nbackend_flag{node} = '{role}DISALLOW_TO_FAILOVER'\n"
        )
    };
    let backends: String = (0..cluster.len()).map(backend).collect();
    let (dir, port) = (proxy.dir().display(), proxy.server.port());
    let settings = format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{dir}'\n\
         pcp_port = {}\npcp_socket_dir = '{dir}'\npid_file_name = '{dir}/pid'\nlogdir = '{dir}'\n\
         backend_clustering_mode = 'streaming_replication'\nload_balance_mode = on\n\
         num_init_children = 16\nsr_check_period = 0\nlog_min_messages = error\n{backends}",
        proxy.commands.number()
    );
    let settings = proxy.write("pgpool.conf", &settings);
    let (commands, access) = (
        proxy.write("pcp.conf", ""),
        proxy.write("pool_hba.conf", ""),
    );
    let mut command = as_user(USER, &program("pgpool"));
    command.arg("-n").arg("-f").arg(settings);
    command.arg("-F").arg(commands).arg("-a").arg(access);
    proxy.launch(command);
    proxy
}

fn program(name: &str) -> PathBuf {
    find_program(name).unwrap_or_else(|| panic!("{name} is not installed: scripts/peers.sh"))
}

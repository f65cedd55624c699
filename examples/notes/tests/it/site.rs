//! Two processes of one application, on a cluster with one replica.

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::process::Process;
use crate::support::{Cluster, wait_until};

pub const SOON: Duration = Duration::from_secs(30);

pub struct Site {
    pub cluster: Cluster,
    pub processes: Vec<Served>,
}

/// A process of the application.
pub struct Served {
    _process: Process,
    pub address: String,
}

impl Site {
    /// Starts so many processes of the program, and returns when each reads from the replica.
    pub fn start(program: &str, processes: usize) -> Self {
        let mut site = Self {
            cluster: Cluster::postgres(1),
            processes: vec![],
        };
        for _ in 0..processes {
            let mut process = Process::start(command(program, &site.cluster), &dir(&site.cluster));
            let address = process.address();
            let served = Served {
                _process: process,
                address,
            };
            let stranger = Client::default();
            wait_until("it reads from the replica", SOON, || {
                site.reads_replica(&stranger, &served.url("/"))
            });
            site.processes.push(served);
        }
        site
    }

    /// Stops replication: from now on only the primary has what is written.
    pub fn pause(&self) {
        self.cluster.wait_replicated();
        self.cluster.pause_replication(1);
    }

    pub fn resume(&self) {
        self.cluster.resume_replication(1);
        self.cluster.wait_replicated();
    }

    /// Tells whether this client's page is from the replica: it has nothing that only the primary
    /// has. Replication must be running.
    pub fn reads_replica(&self, client: &Client, url: &str) -> bool {
        self.pause();
        let mark = self.write_elsewhere();
        let page = client.ask(url).body;
        self.resume();
        !page.contains(&mark)
    }

    /// Writes a note that no client of the application knows of.
    pub fn write_elsewhere(&self) -> String {
        self.cluster.sql(
            0,
            "INSERT INTO notes SELECT count(*), 'mark ' || count(*) || '.' FROM notes RETURNING body",
        )
    }
}

impl Served {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// The program on this cluster. A paused replica is fresh enough, however long it takes.
pub fn command(program: &str, cluster: &Cluster) -> Command {
    let mut command = Command::new(program);
    command
        .env("DATABASE_URL", cluster.url(0))
        .env("DATABASE_REPLICA_URLS", cluster.replica_urls().join(" "))
        .env("ROUTED_MAX_LAG", "600s")
        .env("ROUTED_STICKY_FOR", "700s")
        .env("TOKEN_KEY", "the same in all processes of a site")
        .env("PORT", "0");
    command
}

/// Where the programs of a test run.
pub fn dir(cluster: &Cluster) -> std::path::PathBuf {
    cluster.dir().join("programs")
}

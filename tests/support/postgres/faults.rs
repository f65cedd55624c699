//! What can go wrong with PostgreSQL.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use super::super::faults::Faults;
use super::super::{Backend, Cluster, DEADLINE, Login, holds_within};
use super::Postgres;

/// As the template has it.
const MAX_CONNECTIONS: usize = 200;

impl Postgres {
    fn set(&self, node: usize, setting: &str) -> Result<(), String> {
        let sql = format!("ALTER SYSTEM SET {setting};\nSELECT pg_reload_conf();");
        self.admin(node, &sql).map(drop)
    }

    fn set_read_only(&self, node: usize, value: &str) -> Result<(), String> {
        self.set(node, &format!("default_transaction_read_only = {value}"))?;
        self.admin_until(node, "SHOW default_transaction_read_only", value)
    }
}

impl Faults for Postgres {
    fn stop_receiving(&self, replica: usize) -> Result<(), String> {
        // nobody listens on port 1
        let nowhere = "primary_conninfo = 'host=127.0.0.1 port=1 user=postgres'";
        self.set(replica, nowhere)?;
        // it may be about to dial, but it receives nothing
        let receivers = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'";
        self.admin_until(replica, receivers, "0")
    }

    fn receive(&self, replica: usize, upstream: usize) -> Result<(), String> {
        self.follow(replica, upstream)
    }

    fn delay(&self, replica: usize, by: Duration) -> Result<(), String> {
        let setting = format!("recovery_min_apply_delay = {}", by.as_millis());
        self.set(replica, &setting)
    }

    fn refuse_writes(&self, node: usize) -> Result<(), String> {
        self.set_read_only(node, "on")
    }

    fn accept_writes(&self, node: usize) -> Result<(), String> {
        self.set_read_only(node, "off")
    }

    fn switch_over(&self, primary: usize, replica: usize) -> Result<(), String> {
        // a clean stop sends all there is to the replicas that are connected
        self.servers[primary].stop(Signal::INT);
        self.promote(replica)?;
        let conninfo = self.conninfo(primary, replica);
        let dir = &self.servers[primary].dir;
        self.install
            .make_standby(dir, &conninfo, &format!("n{primary}"))?;
        self.start(primary)?;
        self.follow(primary, replica)
    }

    fn limit_connections(&self, node: usize) -> Result<(), String> {
        // max_connections itself must not be lower on a standby than on its primary
        let reserved = MAX_CONNECTIONS - Cluster::LIMIT;
        self.set(
            node,
            &format!("superuser_reserved_connections = {reserved}"),
        )?;
        self.kill(node);
        self.start(node)
    }

    fn ask_for_passwords(&self, node: usize) -> Result<(), String> {
        const RULE: &str = "host app app 127.0.0.1/32 scram-sha-256\n";
        let file = self.servers[node].dir.join("data/pg_hba.conf");
        let rules = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        if rules.starts_with(RULE) {
            return Ok(());
        }
        fs::write(&file, format!("{RULE}{rules}")).map_err(|error| error.to_string())?;
        self.admin(node, "SELECT pg_reload_conf()")?;
        let wrong = self.url(node, Login::App).replace("app:app@", "app:@");
        let asks = || self.install.psql(&wrong, "SELECT 1").is_err();
        match holds_within(DEADLINE, asks) {
            true => Ok(()),
            false => Err("it lets everybody in".into()),
        }
    }

    fn change_password(&self, primary: usize, password: &str) -> Result<(), String> {
        let sql = format!("ALTER ROLE app PASSWORD '{password}'");
        self.admin(primary, &sql).map(drop)
    }

    fn never_wait_for_reads(&self, replica: usize) -> Result<(), String> {
        self.set(replica, "max_standby_streaming_delay = 0")?;
        self.admin_until(replica, "SHOW max_standby_streaming_delay", "0")
    }

    fn set_clock(&self, node: usize, seconds: i32) -> Result<(), String> {
        self.servers[node].set_clock(seconds)
    }
}

//! What can go wrong with MariaDB.

use std::time::Duration;

use super::super::faults::Faults;
use super::super::{Backend, Cluster};
use super::Mariadb;

impl Faults for Mariadb {
    fn stop_receiving(&self, replica: usize) -> Result<(), String> {
        self.set_role(replica, &["--read-only=1", "--skip-slave-start=1"]);
        self.admin(replica, "STOP SLAVE IO_THREAD").map(drop)
    }

    fn receive(&self, replica: usize, _upstream: usize) -> Result<(), String> {
        self.set_role(replica, &["--read-only=1"]);
        self.admin(replica, "START SLAVE").map(drop)
    }

    fn delay(&self, replica: usize, by: Duration) -> Result<(), String> {
        let seconds = by.as_secs_f32().ceil();
        let sql = format!("STOP SLAVE; CHANGE MASTER TO MASTER_DELAY = {seconds}; START SLAVE");
        self.admin(replica, &sql).map(drop)
    }

    fn refuse_writes(&self, node: usize) -> Result<(), String> {
        self.set_role(node, &["--read-only=1"]);
        self.admin(node, "SET GLOBAL read_only = 1").map(drop)
    }

    fn accept_writes(&self, node: usize) -> Result<(), String> {
        self.set_role(node, &["--read-only=0"]);
        self.admin(node, "SET GLOBAL read_only = 0").map(drop)
    }

    fn switch_over(&self, primary: usize, replica: usize) -> Result<(), String> {
        self.refuse_writes(primary)?;
        let position = self.position(primary)?;
        if !self.has_applied(replica, &position)? {
            return Err(format!("it has not applied {position}"));
        }
        self.promote(replica)?;
        // what it has written itself is where it goes on
        let own = format!("SET GLOBAL gtid_slave_pos = '{position}'");
        self.admin(primary, &own)?;
        self.follow(primary, replica)
    }

    fn limit_connections(&self, node: usize) -> Result<(), String> {
        let limit = Cluster::LIMIT;
        self.admin(node, &format!("SET GLOBAL max_connections = {limit}"))
            .map(drop)
    }

    fn ask_for_passwords(&self, _node: usize) -> Result<(), String> {
        // it always does
        Ok(())
    }

    fn change_password(&self, primary: usize, password: &str) -> Result<(), String> {
        let sql = format!("ALTER USER app@'%' IDENTIFIED BY '{password}'");
        self.admin(primary, &sql).map(drop)
    }

    fn set_clock(&self, node: usize, seconds: i32) -> Result<(), String> {
        self.servers[node].set_clock(seconds)
    }
}

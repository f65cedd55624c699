//! What can go wrong with MySQL.

use super::super::faults::Faults;
use super::super::{Backend, Cluster};
use super::{Mysql, READ_ONLY, WRITABLE};

impl Faults for Mysql {
    fn stop_receiving(&self, replica: usize) -> Result<(), String> {
        self.set_role(replica, &[READ_ONLY, "--skip-replica-start=1"]);
        self.admin(replica, "STOP REPLICA IO_THREAD").map(drop)
    }

    fn receive(&self, replica: usize, _upstream: usize) -> Result<(), String> {
        self.set_role(replica, &[READ_ONLY]);
        self.admin(replica, "START REPLICA").map(drop)
    }

    fn refuse_writes(&self, node: usize) -> Result<(), String> {
        self.set_role(node, &[READ_ONLY]);
        self.admin(node, "SET GLOBAL read_only = 1").map(drop)
    }

    fn accept_writes(&self, node: usize) -> Result<(), String> {
        self.set_role(node, &[WRITABLE]);
        self.admin(node, "SET GLOBAL read_only = 0").map(drop)
    }

    fn switch_over(&self, primary: usize, replica: usize) -> Result<(), String> {
        self.refuse_writes(primary)?;
        let position = self.position(primary)?;
        if !self.has_applied(replica, &position)? {
            return Err(format!("it has not applied {position}"));
        }
        self.promote(replica)?;
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
}

//! What MariaDB says of the statements that it has run.

use crate::support::Cluster;

/// What the statements of Makara's tests need.
pub(super) const MAKARA: &[&str] = &[
    "CREATE TABLE users (id INTEGER PRIMARY KEY AUTO_INCREMENT, name TEXT)",
    "CREATE PROCEDURE p() SELECT 1",
];

pub(super) fn log_statements(cluster: &Cluster, node: usize) {
    cluster.sql(node, "SET GLOBAL log_output = 'TABLE'");
    cluster.sql(node, "SET GLOBAL general_log = 1");
}

pub(super) fn has_logged(cluster: &Cluster, node: usize, text: &str) -> bool {
    let count = format!(
        "SELECT count(*) FROM mysql.general_log WHERE user_host LIKE 'app[%' AND argument LIKE '%{text}%'"
    );
    cluster.sql(node, &count) != "0"
}

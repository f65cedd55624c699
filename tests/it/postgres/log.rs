//! What PostgreSQL says of the statements that it has run.

use super::settings::set;
use crate::support::Cluster;

/// What the statements of Makara's tests need.
pub(super) const MAKARA: &[&str] = &[
    "CREATE TABLE users (id SERIAL PRIMARY KEY, name TEXT)",
    "CREATE SEQUENCE s",
    "CREATE PROCEDURE p() LANGUAGE sql AS ''",
];

pub(super) fn log_statements(cluster: &Cluster, node: usize) {
    set(cluster, node, "log_statement = 'all'");
}

pub(super) fn has_logged(cluster: &Cluster, node: usize, text: &str) -> bool {
    let log = std::fs::read_to_string(cluster.dir().join(format!("n{node}/log")));
    log.expect("every server has a log").contains(text)
}

//! Settings of a running server.

use std::time::Duration;

use crate::support::{Cluster, wait_until};

/// Changes a setting, and waits until all sessions have it, or will have it at their next statement.
pub(super) fn set(cluster: &Cluster, node: usize, setting: &str) {
    // as a new session has inherited it; the others were told before that
    let loaded = || cluster.sql(node, "SELECT pg_conf_load_time()");
    cluster.sql(node, &format!("ALTER SYSTEM SET {setting}"));
    let before = loaded();
    cluster.sql(node, "SELECT pg_reload_conf()");
    wait_until("the setting is in force", Duration::from_secs(20), || {
        loaded() != before
    });
}

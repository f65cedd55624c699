//! What happened, told in one place.

use std::time::Duration;

/// The cluster exists: one line with the configuration that is in force, without secrets.
pub(crate) fn started(summary: &str) {
    log::info!("{summary}");
}

/// A node did not answer when the cluster was started.
pub(crate) fn unreachable_at_start(node: &str, cause: &str) {
    log::warn!("{node}: not reachable at start, {cause}");
}

/// A node stopped answering.
pub(crate) fn node_down(node: &str, cause: &str, quarantine: Duration) {
    log::warn!("{node}: up -> down, {cause}; not asked again for {quarantine:?}");
}

/// A node answers again.
pub(crate) fn node_up(node: &str) {
    log::info!("{node}: down -> up");
}

/// A replica refused a statement that was taken for a read; told once for each statement, by
/// name or shape and never with its values.
pub(crate) fn refused(statement: &str) {
    log::warn!(
        "a replica refused a statement that writes; it runs on the primary from now on: {statement}"
    );
}

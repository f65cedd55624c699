//! Clusters that all tests of one process share.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Cluster;

type Key = (&'static str, usize);
static SHARED: Mutex<BTreeMap<Key, &'static Cluster>> = Mutex::new(BTreeMap::new());

/// The shared cluster of that kind and size, started by the first caller.
///
/// It is never dropped: the home's watchdog removes it when the process ends.
pub fn get(kind: &'static str, replicas: usize, start: fn(usize) -> Cluster) -> &'static Cluster {
    // A start that panicked put nothing in; the next test shall see the real reason again.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared
        .entry((kind, replicas))
        .or_insert_with(|| Box::leak(Box::new(start(replicas))))
}

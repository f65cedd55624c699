//! What many idle handles cost. A binary of its own: the counter sees every allocation of the process.
#![cfg(feature = "sqlite")]

mod counting;

use counting::bytes;
use diesel::sqlite::SqliteConnection;
use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

/// Sockets and files that are open.
#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[cfg(not(target_os = "linux"))]
fn descriptors() -> usize {
    0
}

#[test]
fn a_thousand_idle_handles_cost_less_than_a_megabyte_and_no_socket() {
    let (bytes_before, open_before) = (bytes(), descriptors());
    let config = ClusterConfig::new("nowhere.sqlite").replica("nowhere-either.sqlite");
    let manager =
        RoutedConnectionManager::<SqliteConnection>::new(config).expect("a right configuration");
    let pool = RoutedPool::builder()
        .max_size(1_000)
        .build(manager)
        .expect("handles are made without I/O");
    assert_eq!(pool.state().idle_connections, 1_000, "all are there");
    let cost = bytes() - bytes_before;
    println!("{cost} bytes for 1,000 handles and their cluster");
    assert!(cost < 1_000_000, "{cost} bytes for 1,000 handles");
    assert_eq!(descriptors(), open_before, "no socket, and no file");
}

//! A replica's file that is not there.

use super::backend::*;
use diesel_routed::{ClusterConfig, NodeConfig};

#[test]
fn a_missing_file_is_an_unreachable_replica_and_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let primary = folder.path().join("primary.db");
    let missing = folder.path().join("missing.db");
    let node = |path: &std::path::Path| NodeConfig::new(path.to_str().unwrap());
    let pool = pool(ClusterConfig::new(node(&primary)).replica(node(&missing)));
    let mut conn = pool.get().unwrap();
    sql(
        &mut conn,
        "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    )
    .unwrap();
    conn.unstick();
    assert_eq!(conn.distributed(bodies), Vec::<String>::new());
    assert_eq!(reason(&conn), diesel_routed::Reason::NoReplica);
    assert!(!missing.exists(), "an empty replica would lack the tables");
}

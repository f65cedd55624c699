//! A primary and a replica without a server: two SQLite files, and a thread that replicates.

use std::path::Path;
use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use diesel_routed::{ClusterConfig, NodeConfig, Role, RoutedConnectionManager};

use crate::{Failure, TABLE};

/// How late the replica is at most: late enough to be seen.
const DELAY: Duration = Duration::from_secs(2);

/// Takes the files of `DATABASE_URL` and `DATABASE_REPLICA_URLS`, or else makes its own, which all
/// processes on this machine share.
pub(crate) fn manager() -> Result<RoutedConnectionManager<SqliteConnection>, Failure> {
    let config = match std::env::var_os("DATABASE_URL") {
        Some(_) => ClusterConfig::from_env()?,
        None => own()?,
    };
    Ok(RoutedConnectionManager::new(config)?.with_setup(patient))
}

/// Waits for another writer instead of failing at once.
fn patient(conn: &mut SqliteConnection, _: Role) -> QueryResult<()> {
    conn.batch_execute("PRAGMA busy_timeout = 5000")
}

fn own() -> Result<ClusterConfig, Failure> {
    let dir = std::env::temp_dir().join("diesel-routed-notes");
    std::fs::create_dir_all(&dir)?;
    let (primary, replica) = (dir.join("primary.db"), dir.join("replica.db"));
    make(&primary)?;
    let mut copy = make(&replica)?;
    copy.batch_execute(&format!("ATTACH '{}' AS origin", primary.display()))?;
    thread::spawn(move || {
        loop {
            // one that finds the file locked has the next round do it
            let _ = copy.batch_execute("INSERT OR IGNORE INTO notes SELECT * FROM origin.notes");
            thread::sleep(DELAY);
        }
    });
    let node = |path: &Path, name| NodeConfig::new(path.display().to_string()).name(name);
    Ok(ClusterConfig::new(node(&primary, "primary")).replica(node(&replica, "replica")))
}

fn make(path: &Path) -> Result<SqliteConnection, Failure> {
    let mut file = SqliteConnection::establish(&path.display().to_string())?;
    patient(&mut file, Role::Primary)?;
    file.batch_execute(&format!("PRAGMA journal_mode = WAL; {TABLE}"))?;
    Ok(file)
}

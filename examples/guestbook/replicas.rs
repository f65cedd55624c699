//! Replication for files: copies of a SQLite database that stay behind by as much as one likes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use diesel_routed::NodeConfig;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tempfile::TempDir;

use crate::Outcome;

/// How often the primary is looked at for changes.
const INTERVAL: Duration = Duration::from_millis(25);

/// A primary file and its replicas; gone when dropped.
pub struct Replicas {
    lag: Arc<Mutex<Duration>>,
    /// Dropped to stop the thread.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    files: Vec<PathBuf>,
    /// Dropped last, when nothing is written into it any more.
    dir: TempDir,
}

impl Replicas {
    pub fn start(count: usize) -> Outcome<Replicas> {
        let dir = tempfile::Builder::new().prefix("guestbook-").tempdir()?;
        let primary = open(&dir.path().join("primary.db"))?;
        let files: Vec<PathBuf> = (1..=count)
            .map(|replica| dir.path().join(format!("replica-{replica}.db")))
            .collect();
        let copies: Vec<Connection> = files
            .iter()
            .map(|file| open(file))
            .collect::<Result<_, _>>()?;
        let lag = Arc::new(Mutex::new(Duration::ZERO));
        let (running, stop) = mpsc::channel();
        let mut copier = Copier {
            primary,
            copies,
            seen: None,
            waiting: VecDeque::new(),
        };
        let thread = thread::spawn({
            let lag = Arc::clone(&lag);
            move || {
                while stop.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let lag = *lag.lock().unwrap_or_else(PoisonError::into_inner);
                    // a busy file is no failure: the next round tries again
                    let _ = copier.work(lag);
                }
            }
        });
        Ok(Replicas {
            lag,
            running: Some(running),
            thread: Some(thread),
            files,
            dir,
        })
    }

    pub fn primary(&self) -> NodeConfig {
        node(&self.dir.path().join("primary.db"))
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeConfig> {
        self.files.iter().map(|file| node(file))
    }

    /// How far the replicas are behind.
    pub fn lag(&self) -> Duration {
        *self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_lag(&self, lag: Duration) {
        *self.lag.lock().unwrap_or_else(PoisonError::into_inner) = lag;
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // a copier that panicked has nothing left to stop
            let _ = thread.join();
        }
    }
}

struct Copier {
    primary: Connection,
    copies: Vec<Connection>,
    /// SQLite's number for the state of the primary that was looked at last.
    seen: Option<i64>,
    /// What the primary was when, oldest first.
    waiting: VecDeque<(Instant, Connection)>,
}

impl Copier {
    /// Makes each replica what the primary was `lag` ago.
    fn work(&mut self, lag: Duration) -> rusqlite::Result<()> {
        let now = Instant::now();
        let version = self
            .primary
            .pragma_query_value(None, "data_version", |row| row.get(0))?;
        if self.seen != Some(version) {
            let mut snapshot = Connection::open_in_memory()?;
            copy(&self.primary, &mut snapshot)?;
            self.waiting.push_back((now, snapshot));
            self.seen = Some(version);
        }
        let due = self.waiting.partition_point(|(when, _)| *when + lag <= now);
        if let Some((_, snapshot)) = due.checked_sub(1).map(|newest| &self.waiting[newest]) {
            for replica in &mut self.copies {
                copy(snapshot, replica)?;
            }
            self.waiting.drain(..due);
        }
        Ok(())
    }
}

/// In WAL mode nobody who reads is in the way of who writes.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(file)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "off")?;
    Ok(conn)
}

fn copy(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    match Backup::new(from, to)?.step(-1)? {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
            None,
        )),
    }
}

/// A node called like its file.
fn node(file: &Path) -> NodeConfig {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    NodeConfig::new(file.to_string_lossy()).name(&name)
}

//! SQLite: a file, and copies that threads keep up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, OpenFlags};

use super::faults::Faults;
use super::home::Home;
use super::{Backend, Login};

/// How often a copier looks for changes.
const INTERVAL: Duration = Duration::from_millis(5);

pub struct Sqlite {
    // Dropped before the home, so that no thread writes into it as it goes.
    copiers: Vec<Copier>,
    home: Home,
}

impl Sqlite {
    pub fn start(replicas: usize) -> Result<Sqlite, String> {
        let home = Home::new();
        let dirs: Vec<PathBuf> = (0..=replicas)
            .map(|node| home.dir().join(format!("n{node}")))
            .collect();
        for dir in &dirs {
            fs::create_dir(dir).map_err(|error| error.to_string())?;
            let journal = Connection::open(file(dir))
                .and_then(|file| file.pragma_update(None, "journal_mode", "wal"));
            journal.map_err(|error| error.to_string())?;
        }
        let named = open(&dirs[0]).and_then(|file| {
            file.execute_batch("CREATE TABLE node_name (name TEXT PRIMARY KEY NOT NULL); INSERT INTO node_name VALUES ('n0')")
        });
        named.map_err(|error| error.to_string())?;
        let copiers = (1..=replicas)
            .map(|node| Copier::new(node, &dirs[0], &dirs[node]))
            .collect();
        Ok(Sqlite { copiers, home })
    }

    fn node_dir(&self, node: usize) -> PathBuf {
        self.home.dir().join(format!("n{node}"))
    }

    fn copying(&self, replica: usize) -> MutexGuard<'_, Copying> {
        self.copiers[replica - 1].shared.lock()
    }

    /// Makes all copiers open their files again, as one has come or gone. Holds them back meanwhile.
    fn move_dir(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        let mut all: Vec<_> = self
            .copiers
            .iter()
            .map(|copier| copier.shared.lock())
            .collect();
        all.iter_mut().for_each(|copying| copying.open = None);
        fs::rename(from, to)
    }

    fn gone(&self, node: usize) -> PathBuf {
        self.home.dir().join(format!("n{node}.gone"))
    }
}

impl Backend for Sqlite {
    fn dir(&self) -> &Path {
        self.home.dir()
    }

    fn port(&self, _node: usize) -> u16 {
        panic!("a SQLite file has no port")
    }

    fn url(&self, node: usize, _login: Login) -> String {
        format!("file:{}?mode=rw", file(&self.node_dir(node)).display())
    }

    fn sql(&self, node: usize, _login: Login, sql: &str) -> Result<String, String> {
        let file = open(&self.node_dir(node)).map_err(|error| error.to_string())?;
        query(&file, sql).map_err(|error| error.to_string())
    }

    fn position(&self, _primary: usize) -> Result<String, String> {
        // A copy made from now on holds all that is there now.
        Ok(String::new())
    }

    fn has_applied(&self, replica: usize, _position: &str) -> Result<bool, String> {
        self.copying(replica)
            .copy_changes()
            .map(|()| true)
            .map_err(|error| error.to_string())
    }

    fn pause(&self, replica: usize) -> Result<(), String> {
        self.copying(replica).state = State::Paused;
        Ok(())
    }

    fn resume(&self, replica: usize) -> Result<(), String> {
        self.copying(replica).state = State::Running;
        Ok(())
    }

    fn kill(&self, node: usize) {
        if self.node_dir(node).exists() {
            self.move_dir(&self.node_dir(node), &self.gone(node))
                .expect("own directory");
        }
    }

    fn start(&self, node: usize) -> Result<(), String> {
        self.move_dir(&self.gone(node), &self.node_dir(node))
            .map_err(|error| error.to_string())?;
        if let Some(copier) = node.checked_sub(1).map(|index| &self.copiers[index]) {
            let mut copying = copier.shared.lock();
            if copying.state == State::Paused {
                copying.state = State::Running;
            }
        }
        Ok(())
    }

    fn freeze(&self, _node: usize) {
        panic!("a SQLite file has no process to freeze")
    }

    fn thaw(&self, _node: usize) {
        panic!("a SQLite file has no process to thaw")
    }

    fn promote(&self, replica: usize) -> Result<(), String> {
        self.copying(replica).state = State::Promoted;
        Ok(())
    }

    fn follow(&self, replica: usize, primary: usize) -> Result<(), String> {
        let mut copying = self.copying(replica);
        copying.from = self.node_dir(primary);
        (copying.open, copying.state) = (None, State::Running);
        Ok(())
    }

    fn set_writable(&self, _replica: usize) -> Result<(), String> {
        Ok(())
    }
}

impl Faults for Sqlite {
    fn stop_receiving(&self, replica: usize) -> Result<(), String> {
        self.pause(replica)
    }

    fn receive(&self, replica: usize, _upstream: usize) -> Result<(), String> {
        self.resume(replica)
    }
}

/// The thread that keeps one copy up to date.
struct Copier {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    copying: Mutex<Copying>,
    stop: Condvar,
}

struct Copying {
    name: String,
    from: PathBuf,
    to: PathBuf,
    state: State,
    open: Option<Open>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Promoted,
    Stopped,
}

struct Open {
    from: Connection,
    to: Connection,
    /// SQLite's number for the state of `from` that was copied last.
    copied: Option<i64>,
}

impl Copier {
    fn new(node: usize, from: &Path, to: &Path) -> Copier {
        let copying = Copying {
            name: format!("n{node}"),
            from: from.into(),
            to: to.into(),
            state: State::Running,
            open: None,
        };
        let shared = Arc::new(Shared {
            copying: Mutex::new(copying),
            stop: Condvar::new(),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.run()
        });
        Copier {
            shared,
            thread: Some(thread),
        }
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.shared.lock().state = State::Stopped;
        self.shared.stop.notify_all();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Copying> {
        self.copying.lock().expect("no panic while it is held")
    }

    fn run(&self) {
        let mut copying = self.lock();
        while copying.state != State::Stopped {
            if copying.state == State::Running {
                // Busy or moved away: the next round tries again, and wait_replicated tells.
                let _ = copying.copy_changes();
            }
            copying = self
                .stop
                .wait_timeout(copying, INTERVAL)
                .expect("no panic while it is held")
                .0;
        }
    }
}

impl Copying {
    /// Copies all, if anything has changed.
    fn copy_changes(&mut self) -> rusqlite::Result<()> {
        if self.open.is_none() {
            self.open = Some(Open {
                from: open(&self.from)?,
                to: open(&self.to)?,
                copied: None,
            });
        }
        let open = self.open.as_mut().expect("just opened");
        let now = open
            .from
            .pragma_query_value(None, "data_version", |row| row.get(0))?;
        if open.copied != Some(now) {
            // Named in memory first: the copy appears in one transaction, never with another's name.
            let mut whole = Connection::open_in_memory()?;
            copy(&open.from, &mut whole)?;
            whole.execute("UPDATE node_name SET name = ?1", [&self.name])?;
            copy(&whole, &mut open.to)?;
            open.copied = Some(now);
        }
        Ok(())
    }
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

fn file(dir: &Path) -> PathBuf {
    dir.join("app.db")
}

fn open(dir: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        file(dir),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

/// Runs statements; rows as lines, columns separated by tabs.
fn query(file: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut lines = Vec::new();
    let mut batch = Batch::new(file, sql);
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values: rusqlite::Result<Vec<String>> = (0..columns)
                .map(|column| row.get_ref(column).map(text))
                .collect();
            lines.push(values?.join("\t"));
        }
    }
    Ok(lines.join("\n").trim().to_owned())
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

//! Programs and server processes.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, getuid, kill_process};

use super::clock::Clock;
use super::port::Port;
use super::{DEADLINE, holds_within, wait_until};

/// `program` with a clean environment, as `user` when the tests run as root (servers refuse to).
pub fn as_user(user: &str, program: &Path) -> Command {
    let mut command = if getuid().is_root() {
        // setpriv becomes the program, so the child's pid is the program's own.
        let mut setpriv = Command::new("setpriv");
        setpriv
            .args(["--reuid", user, "--regid", user, "--init-groups", "--"])
            .arg(program);
        setpriv
    } else {
        Command::new(program)
    };
    command
        .env_clear()
        .env("PATH", search_path())
        .env("LC_ALL", "C.UTF-8");
    command
}

/// Runs `command` with `input`: its trimmed output, or what it printed as it failed.
pub fn run(command: &mut Command, input: &str) -> Result<String, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let output = std::thread::scope(|scope| {
        // A program that fails early closes its end; its own message says why.
        scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
        child.wait_with_output()
    });
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(text.trim().to_owned());
    }
    Err(
        format!("{}\n{text}", String::from_utf8_lossy(&output.stderr))
            .trim()
            .to_owned(),
    )
}

/// Finds a program on the search path, including the directories for administrators.
pub fn find_program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path())
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin")
}

/// Copies a directory with its owners and modes.
pub fn copy_dir(from: &Path, to: &Path) -> Result<(), String> {
    run(
        Command::new("cp").args([OsStr::new("-a"), from.as_ref(), to.as_ref()]),
        "",
    )
    .map(drop)
}

/// Does `work` for each node at the same time; the first error, if any.
pub fn in_parallel(
    nodes: Range<usize>,
    work: impl Fn(usize) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = nodes.map(|node| scope.spawn(move || work(node))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic in a node's thread"))
    })
}

/// One server: its directory, its port, and its main process while it runs.
pub struct Server {
    pub dir: PathBuf,
    port: Port,
    child: Mutex<Option<Child>>,
    clock: Mutex<Option<Clock>>,
}

impl Server {
    pub fn new(dir: PathBuf) -> Server {
        Server {
            dir,
            port: Port::claim(),
            child: Mutex::new(None),
            clock: Mutex::new(None),
        }
    }

    /// Makes the clock of what is launched from now on wrong by so many seconds.
    pub fn set_clock(&self, seconds: i32) -> Result<(), String> {
        let clock = Clock::new(seconds)?;
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
        Ok(())
    }

    /// [`as_user`], with this server's clock.
    pub fn command(&self, user: &str, program: &Path) -> Command {
        match &*self.clock.lock().unwrap_or_else(PoisonError::into_inner) {
            None => as_user(user, program),
            Some(clock) => clock.command(user, program),
        }
    }

    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Starts the main process, with its output in `log`, and waits until `ready`.
    pub fn launch(&self, mut command: Command, ready: impl Fn() -> bool) -> Result<(), String> {
        let path = self.dir.join("log");
        let log = fs::OpenOptions::new().create(true).append(true).open(&path);
        let log = log.map_err(|error| format!("{}: {error}", path.display()))?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        // The watchdog knows its processes by their working directory.
        command.current_dir(&self.dir).process_group(0);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut ended = None;
        let up = holds_within(DEADLINE, || {
            ended = child.try_wait().ok().flatten();
            ended.is_some() || ready()
        });
        Clock::forget(child.id());
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        match ended {
            None if up => Ok(()),
            None => Err(format!(
                "not ready within {DEADLINE:?}; its log ends:\n{}",
                tail(&path)
            )),
            Some(status) => Err(format!(
                "the server ended at start ({status}); its log ends:\n{}",
                tail(&path)
            )),
        }
    }

    /// Asks the main process to end and waits for it.
    pub fn stop(&self, signal: Signal) {
        if let Some(mut child) = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ = kill_process(Pid::from_child(&child), signal);
            child.wait().expect("a child can be waited for");
        }
    }

    /// Kills the main process and all of its children.
    pub fn kill(&self) {
        wait_until("the killed processes are gone", DEADLINE, || {
            let running = processes_in(&self.dir);
            send(&running, Signal::KILL);
            running.is_empty()
        });
        // A zombie would look like a running server to the next one on the same data.
        self.stop(Signal::KILL);
    }

    /// Stops all processes in their tracks.
    pub fn freeze(&self) {
        wait_until("the processes are stopped", DEADLINE, || {
            let running: Vec<Pid> = processes_in(&self.dir)
                .into_iter()
                .filter(|pid| !is_stopped(*pid))
                .collect();
            send(&running, Signal::STOP);
            running.is_empty()
        });
    }

    pub fn thaw(&self) {
        send(&processes_in(&self.dir), Signal::CONT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes whose working directory is `dir` or below it.
fn processes_in(dir: &Path) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = pids.filter(|pid| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
    });
    inside.filter_map(Pid::from_raw).collect()
}

/// One that has ended meanwhile is not an error.
fn send(pids: &[Pid], signal: Signal) {
    for pid in pids {
        let _ = kill_process(*pid, signal);
    }
}

fn is_stopped(pid: Pid) -> bool {
    // "pid (name) state ..": the name may hold spaces and parentheses.
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// The last lines of a log.
fn tail(path: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

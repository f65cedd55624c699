//! Nothing of a cluster outlives it, nor the process that started it.

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Cluster, wait_until};

#[test]
fn nothing_is_left_after_a_drop_or_a_panic() {
    for start in [Cluster::postgres, Cluster::mariadb, Cluster::sqlite] {
        is_gone_after_a_drop(start, |cluster| cluster.kill(1));
    }
    let (send, receive) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let cluster = Cluster::postgres(0);
        send.send(Traces::of(&cluster)).expect("the receiver waits");
        panic!("on purpose");
    });
    let traces = receive.recv().expect("the thread sends");
    assert!(test.join().is_err(), "the thread panicked");
    traces.assert_gone();
}

#[test]
fn nothing_is_left_of_a_frozen_server() {
    for start in [Cluster::postgres, Cluster::mariadb] {
        is_gone_after_a_drop(start, |cluster| cluster.freeze(0));
    }
}

fn is_gone_after_a_drop(start: fn(usize) -> Cluster, before: fn(&Cluster)) {
    let cluster = start(1);
    before(&cluster);
    let traces = Traces::of(&cluster);
    drop(cluster);
    traces.assert_gone();
}

/// In the child that it starts, the test is the process that gets killed.
#[test]
fn nothing_is_left_of_a_process_that_was_killed() {
    if let Ok(kind) = std::env::var("HARNESS_CHILD") {
        wait_to_be_killed(&kind);
    }
    for kind in ["postgres", "mariadb", "sqlite"] {
        is_gone_after_a_kill(kind);
    }
}

fn is_gone_after_a_kill(kind: &str) {
    let mut child = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "--nocapture"])
        .arg("nothing_is_left_of_a_process_that_was_killed")
        .env("HARNESS_CHILD", kind)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this very program runs");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("traces: ")?.1.to_owned()));
    child.kill().expect("it waits to be killed");
    child.wait().expect("it is killed");
    Traces::parse(&line.expect("the child tells what it started")).assert_gone();
}

/// MySQL, which cannot be had everywhere.
mod mysql {
    use super::*;

    #[test]
    fn nothing_is_left() {
        is_gone_after_a_drop(Cluster::mysql, |cluster| cluster.kill(1));
        is_gone_after_a_drop(Cluster::mysql, |cluster| cluster.freeze(0));
        is_gone_after_a_kill("mysql");
    }
}

fn wait_to_be_killed(kind: &str) -> ! {
    let cluster = match kind {
        "postgres" => Cluster::shared_postgres(1),
        "mariadb" => Cluster::shared_mariadb(1),
        "mysql" => Cluster::shared_mysql(1),
        _ => Cluster::shared_sqlite(1),
    };
    println!("traces: {}", Traces::of(cluster).print());
    loop {
        std::thread::park();
    }
}

/// What a cluster has on this machine.
struct Traces {
    dir: PathBuf,
    segments: Vec<String>,
}

impl Traces {
    fn of(cluster: &Cluster) -> Traces {
        let states = (0..cluster.len())
            .map(|node| cluster.dir().join(format!("n{node}/data/postmaster.pid")));
        let segments = states.filter_map(|state| segment(&state)).collect();
        Traces {
            dir: cluster.dir().to_owned(),
            segments,
        }
    }

    fn print(&self) -> String {
        format!("{} {}", self.dir.display(), self.segments.join(" "))
    }

    fn parse(line: &str) -> Traces {
        let mut fields = line.split_whitespace().map(str::to_owned);
        let dir = fields.next().expect("a directory").into();
        Traces {
            dir,
            segments: fields.collect(),
        }
    }

    fn assert_gone(&self) {
        wait_until("the directory is removed", Duration::from_secs(20), || {
            !self.dir.exists()
        });
        let proc = fs::read_dir("/proc").expect("Linux");
        let cwds = proc
            .flatten()
            .filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
        let left: Vec<PathBuf> = cwds.filter(|cwd| cwd.starts_with(&self.dir)).collect();
        assert!(left.is_empty(), "processes are left in {left:?}");
        let segments = fs::read_to_string("/proc/sysvipc/shm").expect("Linux");
        let used: Vec<&str> = segments
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        let left: Vec<&String> = self
            .segments
            .iter()
            .filter(|segment| used.contains(&segment.as_str()))
            .collect();
        assert!(left.is_empty(), "shared memory segments are left: {left:?}");
    }
}

/// The SysV segment of a PostgreSQL server: the seventh line of its state file has key and id.
fn segment(state: &Path) -> Option<String> {
    let text = fs::read_to_string(state).ok()?;
    text.lines()
        .nth(6)?
        .split_whitespace()
        .nth(1)
        .map(str::to_owned)
}

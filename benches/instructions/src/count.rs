//! Counting by callgrind, which comes with valgrind.

use std::env;
use std::fmt;
use std::process::Command;

use crate::work::{On, Work};

/// How often the work is done, fewer and more times: the difference is free of what every process does.
const TIMES: [u64; 2] = [500, 5_500];

/// Instructions of one call.
pub struct Counted {
    pub plain: u64,
    pub routed: u64,
}

impl Counted {
    /// What routing adds. It does not depend on the version of SQLite, as the counts themselves do.
    pub fn added(&self) -> u64 {
        self.routed.saturating_sub(self.plain)
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plain, routed } = self;
        write!(f, "{plain:>8} {routed:>8} {:>7}", self.added())
    }
}

pub fn per_call(work: Work, on: On) -> u64 {
    let [fewer, more] = TIMES.map(|times| of_process(work, on, times));
    more.saturating_sub(fewer) / (TIMES[1] - TIMES[0])
}

fn of_process(work: Work, on: On, times: u64) -> u64 {
    let this = env::current_exe().expect("a path to this program");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args([work.name(), on.name(), &times.to_string()])
        .output()
        .expect("valgrind is installed: see ./test setup");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the work was not done:\n{said}");
    said.lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
        .expect("callgrind tells what it has collected")
}

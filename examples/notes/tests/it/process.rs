//! An example that runs in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running program; killed with this value.
pub struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a program in a directory, which is also its place for temporary files.
    pub fn start(mut command: Command, dir: &Path) -> Self {
        std::fs::create_dir_all(dir).expect("the directory of the test can be written");
        let name = command.get_program().to_string_lossy().into_owned();
        // the harness ends whatever runs below its directory, however this test ends
        command.current_dir(dir).env("TMPDIR", dir);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, output }
    }

    /// The next line of its output that tells something.
    pub fn line(&mut self, told: impl Fn(&str) -> Option<String>) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("text");
            assert_ne!(read, 0, "it has ended: {:?}", self.child.wait());
            if let Some(told) = told(line.trim()) {
                return told;
            }
        }
    }

    #[cfg(feature = "postgres")]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// How it ends, by itself.
    pub fn ended(&mut self) -> ExitStatus {
        self.child.wait().expect("a child can be waited for")
    }

    /// The address that it says it serves.
    pub fn address(&mut self) -> String {
        self.line(|line| {
            let (_, rest) = line.split_once("http://")?;
            let address = rest.split_whitespace().next()?;
            Some(address.to_owned())
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Servers whose clock is wrong, by libfaketime.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::{as_user, find_program};

/// A clock that is wrong by a constant. Only the time of day: what measures waiting is right.
pub struct Clock {
    library: PathBuf,
    seconds: i32,
}

impl Clock {
    pub fn new(seconds: i32) -> Result<Clock, String> {
        let library = library().ok_or("libfaketime is not installed: apt-get install faketime")?;
        Ok(Clock { library, seconds })
    }

    /// [`as_user`] on this clock.
    pub fn command(&self, user: &str, program: &Path) -> Command {
        // Not around the change of user as well: what the library shares is its first user's.
        let env = find_program("env").expect("every system has it");
        let mut command = as_user(user, &env);
        command
            .arg(format!("LD_PRELOAD={}", self.library.display()))
            .arg(format!("FAKETIME={:+}s", self.seconds))
            .arg("FAKETIME_DONT_FAKE_MONOTONIC=1")
            .arg(program);
        command
    }

    /// Removes what the library shares by name, once the process and its children have it open: a
    /// killed one would leave it behind.
    pub fn forget(pid: u32) {
        for name in ["faketime_shm", "sem.faketime_sem"] {
            let _ = fs::remove_file(format!("/dev/shm/{name}_{pid}"));
        }
    }
}

/// The library is not on any search path.
fn library() -> Option<PathBuf> {
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten();
    let dirs = libraries
        .map(|entry| entry.path())
        .chain(["/usr/lib".into(), "/usr/lib64".into()]);
    dirs.map(|dir| dir.join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.is_file())
}

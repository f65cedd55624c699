//! The directory of a cluster, and the watchdog that removes it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tmpfs is worth it only where a few nodes of about 90 MB fit in; containers often have 64 MB.
const ENOUGH: u64 = 1 << 30;

/// Makes the directory, waits until the test process closes the pipe or ends, kills every process
/// whose working directory is inside, and removes the directory and what PostgreSQL leaves in SysV
/// shared memory when it is killed.
///
/// A server being spawned at that very moment is no gap: it keeps the pipe open until it has become
/// the server, and by then its working directory is set.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
for base; do dir=$(mktemp -d "$base/routed.XXXXXX") && break; done
[ -n "$dir" ] || exit 1
echo "$dir"
exec > /dev/null
cat
processes() { find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' -lname "$dir/*" | cut -d/ -f3; }
while pids=$(processes) && [ -n "$pids" ]; do kill -KILL $pids; sleep 0.01; done
for file in "$dir"/n*/data/postmaster.pid; do
    segment=$(sed -n '7s/.* //p' "$file")
    [ -z "$segment" ] || ipcrm -m "$segment"
done
rm -rf "$dir"
"#;

/// A temporary directory for the nodes and their processes; both are gone when it has been dropped,
/// and soon after the process has ended in any other way, SIGKILL included.
pub struct Home {
    dir: PathBuf,
    watchdog: Child,
}

impl Home {
    pub fn new() -> Home {
        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", WATCHDOG, "watchdog"]);
        let shm = Path::new("/dev/shm");
        if rustix::fs::statvfs(shm).is_ok_and(|stat| stat.f_bavail * stat.f_frsize > ENOUGH) {
            watchdog.arg(shm);
        }
        watchdog.arg(std::env::temp_dir()).current_dir("/");
        // A group of its own keeps it from signals meant for the test, like a Ctrl-C.
        watchdog.process_group(0);
        watchdog
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut watchdog = watchdog.spawn().expect("sh runs");
        let mut dir = String::new();
        let output = watchdog.stdout.take().expect("stdout is piped");
        BufReader::new(output)
            .read_line(&mut dir)
            .expect("the watchdog speaks UTF-8");
        let dir = PathBuf::from(dir.trim_end());
        assert!(dir.is_absolute(), "no temporary directory could be made");
        assert!(
            dir.as_os_str().len() < 85,
            "too long for unix sockets: {}",
            dir.display()
        );
        // The servers may run as another user.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("own directory");
        Home { dir, watchdog }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // wait() closes the pipe first.
        let _ = self.watchdog.wait();
    }
}

//! Initialised data directories, made once and copied from then on.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;

use super::home::Home;
use super::process::run;

/// A directory to copy for each node: made by `build` for the first process that needs it and kept in
/// Cargo's target directory for the others.
///
/// `server` is the server's program and `recipe` all the settings that go in: a change of either makes
/// another template. `build` fills an empty directory in `home`, owned by `user`.
pub fn template(
    home: &Home,
    user: &str,
    server: &Path,
    recipe: &[&str],
    build: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let cache = cache_dir();
    let text = |error: std::io::Error| format!("{}: {error}", cache.display());
    let key =
        fingerprint(server, recipe).map_err(|error| format!("{}: {error}", server.display()))?;
    fs::create_dir_all(&cache).map_err(text)?;
    let ready = cache.join(format!("{user}-{key:x}"));
    if ready.exists() {
        return Ok(ready);
    }
    let lock = File::create(ready.with_extension("lock")).map_err(text)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| text(error.into()))?;
    if !ready.exists() {
        // Built where the server's user may enter, watched by the home's watchdog.
        let fresh = home.dir().join("template");
        fs::create_dir(&fresh).map_err(text)?;
        if getuid().is_root() {
            run(Command::new("chown").arg(user).arg(&fresh), "")?;
        }
        build(&fresh)?;
        // Renamed when complete, so that a killed process leaves no half template behind.
        let partial = ready.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        // Sparse, and so are its copies: much of what a server lays out is empty.
        let mut copy = Command::new("cp");
        run(
            copy.args(["-a", "--sparse=always"])
                .arg(&fresh)
                .arg(&partial),
            "",
        )?;
        fs::rename(&partial, &ready).map_err(text)?;
        fs::remove_dir_all(&fresh).map_err(text)?;
    }
    Ok(ready)
}

fn cache_dir() -> PathBuf {
    let target = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
    // Cargo sets it for tests, but not for examples.
    let target = target.or_else(|| Some(std::env::current_exe().ok()?.parent()?.to_owned()));
    target
        .unwrap_or_else(std::env::temp_dir)
        .join("server-templates")
}

fn fingerprint(server: &Path, recipe: &[&str]) -> std::io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let program = fs::metadata(server)?;
    (
        server,
        program.len(),
        program.mtime(),
        recipe,
        getuid().as_raw(),
    )
        .hash(&mut hasher);
    Ok(hasher.finish())
}

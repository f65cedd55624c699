//! What this process itself has open, for tests that look for leaks.

use std::fs;

/// The names of the threads of this process, sorted.
pub fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc is mounted");
    // one that ends meanwhile has no name
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.flatten().filter_map(name);
    let mut names: Vec<String> = names.map(|name| name.trim_end().to_owned()).collect();
    names.sort();
    names
}

/// How many sockets this process has open, of any kind.
pub fn sockets() -> usize {
    inodes().len()
}

/// How many TCP connections this process has to a port of 127.0.0.1, those included that the other
/// side has closed.
pub fn sockets_to(port: u16) -> usize {
    let own = inodes();
    let table = fs::read_to_string("/proc/self/net/tcp").expect("/proc is mounted");
    let remote = format!("0100007F:{port:04X}");
    let is_own = |line: &&str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns[2] == remote && own.iter().any(|inode| inode == columns[9])
    };
    table.lines().skip(1).filter(is_own).count()
}

fn inodes() -> Vec<String> {
    let open = fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    let inode = |file: fs::DirEntry| {
        let target = fs::read_link(file.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        Some(inode.strip_suffix(']')?.to_owned())
    };
    open.flatten().filter_map(inode).collect()
}

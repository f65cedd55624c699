//! What a bench ran on.

use std::fs;

/// The machine in one line: processors, memory, system.
pub fn line() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = value("/proc/cpuinfo", "model name", ':');
    let system = value("/etc/os-release", "PRETTY_NAME", '=');
    let memory = value("/proc/meminfo", "MemTotal", ':');
    let kilobytes: u64 = memory
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0);
    format!(
        "{cores} cores of {processor}, {} GB, {}",
        (kilobytes + 500_000) / 1_000_000,
        system.trim_matches('"')
    )
}

/// The value of the first line of a file that starts with `key`.
fn value(path: &str, key: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    let value = line.and_then(|line| line.split_once(separator));
    value
        .map_or("unknown", |(_, value)| value.trim())
        .to_owned()
}

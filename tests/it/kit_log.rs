//! What the crate logs.

use std::sync::{LazyLock, Mutex, PoisonError};

static LINES: Mutex<Vec<(log::Level, String)>> = Mutex::new(Vec::new());
static INSTALLED: LazyLock<()> = LazyLock::new(|| {
    log::set_boxed_logger(Box::new(Lines)).expect("the tests install no other logger");
    log::set_max_level(log::LevelFilter::Info);
});

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("diesel_routed")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push((record.level(), record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// Begins to listen.
pub fn listen() {
    LazyLock::force(&INSTALLED);
}

/// The lines so far that contain `part`.
pub fn lines_with(part: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = lines.iter().map(|(_, line)| line);
    lines.filter(|line| line.contains(part)).cloned().collect()
}

/// The lines so far of the level ERROR.
pub fn errors() -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let errors = lines
        .iter()
        .filter(|(level, _)| *level == log::Level::Error);
    errors.map(|(_, line)| line.clone()).collect()
}

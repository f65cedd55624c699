//! What the benches share: rounds in turns, tables in Markdown, and pictures.
//!
//! Times of different runs, and even of different minutes of one run, say little on a machine that
//! others use too. So what is compared is measured in turns, many times, and the ratios are those
//! within a round.

// Every bench compiles its own copy of this module and uses only a part of it.
#![allow(dead_code, unused_imports)]

pub mod account;
pub mod machine;
mod rounds;
pub mod svg;
mod table;

pub use rounds::{Rounds, median, throughput};
pub use table::Table;

use std::path::PathBuf;

/// Where a picture goes: into `docs/` if `CHARTS` is set, else nowhere.
pub fn chart(name: &str) -> Option<PathBuf> {
    std::env::var_os("CHARTS")?;
    Some(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(name),
    )
}

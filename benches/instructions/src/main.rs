//! Counts the instructions that routing adds to a statement, and compares them with those that are
//! stored beside this file: unlike times they hardly depend on the machine.
//!
//! ```sh
//! cargo run --release -p instructions             # compare
//! cargo run --release -p instructions -- --store  # after a change that is worth it
//! ```

mod count;
#[path = "../../overhead/reads.rs"]
mod reads;
mod work;

use std::fs;
use std::process::ExitCode;

use self::count::Counted;
use self::work::{On, Work};

const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stored.txt");

/// How many per cent more than stored are a regression. A new compiler moves some.
const MARGIN: u64 = 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => compare(),
        ["--store"] => store(),
        [work, on, times] => run(work, on, times),
        _ => {
            eprintln!("usage: instructions [--store]");
            ExitCode::from(2)
        }
    }
}

/// What is counted, in a process of its own.
fn run(work: &str, on: &str, times: &str) -> ExitCode {
    let work = Work::ALL.into_iter().find(|known| known.name() == work);
    let on = [On::Plain, On::Routed]
        .into_iter()
        .find(|known| known.name() == on);
    match (work, on, times.parse()) {
        (Some(work), Some(on), Ok(times)) => {
            work.run(on, times);
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

fn compare() -> ExitCode {
    let stored = fs::read_to_string(STORED).unwrap_or_default();
    let stored = |work: Work| -> Option<u64> {
        let line = stored.lines().find(|line| line.starts_with(work.name()));
        line?.split_whitespace().nth(1)?.parse().ok()
    };
    println!("instructions     plain   routed   added   stored");
    let mut worse = Vec::new();
    for work in Work::ALL {
        let counted = count(work);
        let (added, stored) = (counted.added(), stored(work).unwrap_or(0));
        let percent = 100.0 * (added as f64 / stored as f64 - 1.0);
        println!(
            "{:<12} {counted} {stored:>8} {percent:>+6.1} %",
            work.name()
        );
        if added * 100 > stored * (100 + MARGIN) {
            worse.push(work.name());
        }
    }
    if worse.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "more instructions than stored, by more than {MARGIN} %: {}\n\
         Find out what they are spent on (valgrind --tool=callgrind, see CONTRIBUTING.md). If they are\n\
         worth it: cargo run --release -p instructions -- --store, and commit {STORED}",
        worse.join(", ")
    );
    ExitCode::FAILURE
}

fn store() -> ExitCode {
    let lines: String = Work::ALL
        .into_iter()
        .map(|work| format!("{} {}\n", work.name(), count(work).added()))
        .collect();
    print!("{lines}");
    match fs::write(STORED, lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{STORED}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn count(work: Work) -> Counted {
    Counted {
        plain: count::per_call(work, On::Plain),
        routed: count::per_call(work, On::Routed),
    }
}

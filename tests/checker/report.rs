//! What is asked of a run, and what came of it.

use std::time::Duration;

use rand::Rng;

use super::client::Outcome;

/// One violation says what is wrong; a few say how often.
const ENOUGH: usize = 5;

/// What is asked of a run.
pub struct Setting {
    pub seed: u64,
    pub operations: u64,
}

impl Setting {
    pub fn from_env() -> Self {
        let seed = variable("CHECKER_SEED");
        let setting = Self {
            seed: seed.unwrap_or_else(|| rand::rng().random_range(0..1_000_000)),
            operations: variable("CHECKER_OPERATIONS").unwrap_or(20_000),
        };
        let Self { seed, operations } = setting;
        println!("CHECKER_SEED={seed} CHECKER_OPERATIONS={operations}");
        setting
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// What came of a run.
#[derive(Debug)]
#[allow(dead_code)] // read by whoever reads the message
pub struct Report {
    seed: u64,
    pub operations: u64,
    pub reads: u64,
    pub reads_on_replicas: u64,
    /// What failed because a server went away, as it had to.
    cut: u64,
    /// After how many operations the first violation was found.
    found_after: Option<u64>,
    pub violations: Vec<String>,
    pub errors: Vec<String>,
}

impl Report {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            operations: 0,
            reads: 0,
            reads_on_replicas: 0,
            cut: 0,
            found_after: None,
            violations: vec![],
            errors: vec![],
        }
    }

    pub fn take(&mut self, outcome: Outcome) {
        self.operations += outcome.operations;
        self.reads += outcome.reads;
        self.reads_on_replicas += outcome.reads_on_replicas;
        self.cut += outcome.cut;
        if !outcome.violations.is_empty() {
            self.found_after.get_or_insert(self.operations);
        }
        self.violations.extend(outcome.violations);
        self.errors.extend(outcome.errors);
    }

    /// Whether enough is wrong.
    pub fn is_enough(&self) -> bool {
        self.violations.len() + self.errors.len() >= ENOUGH
    }

    pub fn in_short(&self, took: Duration) -> String {
        format!(
            "{} operations in {took:.1?}, {:.0} a second; {} reads, {} on replicas; {} cut",
            self.operations,
            self.operations as f64 / took.as_secs_f64(),
            self.reads,
            self.reads_on_replicas,
            self.cut,
        )
    }
}

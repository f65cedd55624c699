//! How the strategies spread reads over replicas that are equal, uneven, slow, shared, or die.
//!
//! `cargo bench --bench balance` prints the tables of docs/performance.md; `CHARTS=1` draws
//! docs/balance.svg, too. A simulation of a minute, with the crate's own strategies, in virtual
//! time: the figures depend on the seeds alone, not on the machine.

#[path = "../common/mod.rs"]
mod common;

mod chart;
mod contender;
mod latency;
mod process;
mod scenario;
mod server;
mod simulation;

use common::{Table, median};
use contender::Contender;
use process::NODES;
use scenario::{SCENARIOS, Scenario};
use simulation::Outcome;

const SEEDS: u64 = 5;

/// The medians over all seeds of one strategy in one scenario.
struct Figures {
    /// Milliseconds.
    p50: f64,
    p99: f64,
    /// Percent of the reads, by replica.
    shares: [f64; NODES],
}

impl Figures {
    fn of(scenario: &Scenario, contender: &Contender) -> Self {
        let runs: Vec<Outcome> = (1..=SEEDS)
            .map(|seed| simulation::run(scenario, contender, seed))
            .collect();
        let milliseconds = |part: f64| median(runs.iter().map(|run| run.quantile(part) * 1_000.0));
        let share = |node: usize| {
            let of_one = |run: &Outcome| {
                let all: u64 = run.reads.iter().sum();
                run.reads[node] as f64 * 100.0 / all as f64
            };
            median(runs.iter().map(of_one))
        };
        Figures {
            p50: milliseconds(0.5),
            p99: milliseconds(0.99),
            shares: std::array::from_fn(share),
        }
    }

    fn shares(&self) -> String {
        let shares = self.shares.map(|share| format!("{share:.0}"));
        shares.join(" ")
    }
}

fn main() {
    let contenders = contender::contenders();
    // by contender, then by scenario
    let figures: Vec<Vec<Figures>> = contenders
        .iter()
        .map(|contender| {
            let scenarios = SCENARIOS.iter();
            scenarios
                .map(|scenario| Figures::of(scenario, contender))
                .collect()
        })
        .collect();

    println!(
        "\np99, milliseconds\n\n{}",
        table(&contenders, &figures, |f| milliseconds(f.p99))
    );
    println!(
        "p50, milliseconds\n\n{}",
        table(&contenders, &figures, |f| milliseconds(f.p50))
    );
    println!(
        "reads of each replica, percent\n\n{}",
        table(&contenders, &figures, Figures::shares)
    );
    println!(
        "p99 beside the default's\n\n{}",
        beside_the_default(&contenders, &figures)
    );
    if let Some(path) = common::chart("balance.svg") {
        chart::draw(&contenders, &figures).save(&path);
    }
}

fn milliseconds(figure: f64) -> String {
    let digits = if figure < 100.0 { 1 } else { 0 };
    format!("{figure:.digits$}")
}

fn head() -> impl Iterator<Item = &'static str> {
    let names = SCENARIOS.iter().map(|scenario| scenario.name);
    std::iter::once("strategy").chain(names)
}

fn table(
    contenders: &[Contender],
    figures: &[Vec<Figures>],
    show: impl Fn(&Figures) -> String,
) -> Table {
    let mut table = Table::new(head());
    for (contender, figures) in contenders.iter().zip(figures) {
        let cells = figures.iter().map(&show);
        table.row(std::iter::once(contender.name.to_owned()).chain(cells));
    }
    table
}

/// The first contender is the default.
fn beside_the_default(contenders: &[Contender], figures: &[Vec<Figures>]) -> Table {
    let mut table = Table::new(head());
    for (contender, others) in contenders.iter().zip(figures).skip(1) {
        let pairs = others.iter().zip(&figures[0]);
        let cells = pairs.map(|(other, default)| format!("{:.2}", other.p99 / default.p99));
        table.row(std::iter::once(contender.name.to_owned()).chain(cells));
    }
    table
}

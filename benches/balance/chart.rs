//! docs/balance.svg: the p99 of every strategy, a panel for each scenario.

use super::Figures;
use super::common::svg::Svg;
use super::contender::Contender;
use super::scenario::SCENARIOS;

const WIDTH: f64 = 860.0;
const COLUMNS: usize = 2;
const LEFT: f64 = 20.0;
const TOP: f64 = 78.0;
const ROW: f64 = 19.0;
/// Where bars begin in a panel, and how long the longest may be.
const LABELS: f64 = 168.0;
const LONGEST: f64 = 190.0;

pub fn draw(contenders: &[Contender], figures: &[Vec<Figures>]) -> Svg {
    let panel = panel_height(contenders);
    let rows = SCENARIOS.len().div_ceil(COLUMNS);
    let height = TOP + panel * rows as f64;
    let mut svg = Svg::new(
        WIDTH as u32,
        height as u32,
        "How long a read takes: p99 by strategy, milliseconds",
        "In most scenarios the default strategy, two choices, has the lowest 99th percentile or one \
         close to it; taking the least loaded of a cached status has by far the highest.",
    );
    svg.text(
        "note",
        (LEFT, 50.0),
        "A simulated minute, 4 replicas. Each panel has its own scale, which begins at 0. Green: the default.",
    );
    for (i, scenario) in SCENARIOS.iter().enumerate() {
        let x = LEFT + (i % COLUMNS) as f64 * WIDTH / COLUMNS as f64;
        let y = TOP + (i / COLUMNS) as f64 * panel;
        svg.text("strong", (x, y + 6.0), scenario.name);
        let bars = contenders
            .iter()
            .zip(figures.iter().map(|figures| figures[i].p99));
        bars_of(
            &mut svg,
            (x, y + 16.0),
            &bars.map(|(c, p99)| (c.name, p99)).collect::<Vec<_>>(),
        );
    }
    svg
}

fn panel_height(contenders: &[Contender]) -> f64 {
    contenders.len() as f64 * ROW + 46.0
}

fn bars_of(svg: &mut Svg, (x, y): (f64, f64), bars: &[(&str, f64)]) {
    let most = bars.iter().map(|(_, figure)| *figure).fold(0.0, f64::max);
    let zero = x + LABELS;
    for (i, (name, figure)) in bars.iter().enumerate() {
        let top = y + i as f64 * ROW;
        let (label, bar) = match i {
            0 => ("end strong", "ours"),
            _ => ("end", "plain"),
        };
        let length = figure / most * LONGEST;
        svg.text(label, (zero - 8.0, top + 13.0), name);
        svg.bar(bar, (zero, top + 3.0), (length.max(1.0), ROW - 6.0));
        svg.text(
            "note",
            (zero + length + 6.0, top + 13.0),
            super::milliseconds(*figure),
        );
    }
    svg.line("axis", &[(zero, y), (zero, y + bars.len() as f64 * ROW)]);
}

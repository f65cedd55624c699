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
/// Where the scale begins in a panel.
const LABELS: f64 = 168.0;

/// The scale is logarithmic: the milliseconds at its ends, and the pixels of a power of ten.
const LEAST: f64 = 10.0;
const MOST: f64 = 20_000.0;
const DECADE: f64 = 52.0;

pub fn draw(contenders: &[Contender], figures: &[Vec<Figures>]) -> Svg {
    let panel = panel_height(contenders);
    let rows = SCENARIOS.len().div_ceil(COLUMNS);
    let height = TOP + panel * rows as f64;
    let mut svg = Svg::new(
        WIDTH as u32,
        height as u32,
        "How long a read takes: the 99th percentile, by strategy",
        "The default strategy, two choices, is the lowest or close to it in all scenarios but those in \
         which a replica is slower than its weight says; there, least_loaded is lower. Whoever goes by \
         a load that all processes share is higher by a factor of ten to several hundred.",
    );
    svg.text(
        "note",
        (LEFT, 50.0),
        "Milliseconds in a simulated minute on 4 replicas; the scale is logarithmic. Green: the default.",
    );
    for (i, scenario) in SCENARIOS.iter().enumerate() {
        let x = LEFT + (i % COLUMNS) as f64 * WIDTH / COLUMNS as f64;
        let y = TOP + (i / COLUMNS) as f64 * panel;
        svg.text("strong", (x, y + 6.0), scenario.name);
        let dots = contenders.iter().zip(figures);
        let dots: Vec<_> = dots
            .map(|(contender, figures)| (contender.name, figures[i].p99))
            .collect();
        dots_of(&mut svg, (x + LABELS, y + 16.0), &dots);
    }
    svg
}

fn panel_height(contenders: &[Contender]) -> f64 {
    contenders.len() as f64 * ROW + 64.0
}

/// One row for each strategy, on a scale with a line at each power of ten.
fn dots_of(svg: &mut Svg, (left, top): (f64, f64), dots: &[(&str, f64)]) {
    let place = |figure: f64| left + (figure / LEAST).log10() * DECADE;
    let bottom = top + dots.len() as f64 * ROW + 2.0;
    let mut mark = LEAST;
    while mark < MOST {
        let class = if mark == LEAST { "axis" } else { "grid" };
        svg.line(class, &[(place(mark), top), (place(mark), bottom)]);
        svg.text("note middle", (place(mark), bottom + 15.0), mark);
        mark *= 10.0;
    }
    for (i, (name, figure)) in dots.iter().enumerate() {
        let (label, dot) = match i {
            0 => ("end strong", "ours"),
            _ => ("end", "plain"),
        };
        let middle = top + (i as f64 + 0.5) * ROW;
        svg.text(label, (left - 8.0, middle + 4.0), name);
        svg.dot(dot, (place(*figure), middle));
        let shown = super::milliseconds(*figure);
        svg.text("note", (place(*figure) + 9.0, middle + 4.0), shown);
    }
}

//! Two things measured in turns, so that whatever else the machine does meets both.

use std::fmt;
use std::time::{Duration, Instant};

const ROUNDS: usize = 301;
/// How long one side of a round takes.
const BATCH: Duration = Duration::from_millis(1);

/// The medians over all rounds of one run.
pub struct Ratio {
    pub bare: f64,
    pub routed: f64,
    /// The median of the ratios, which is not the ratio of the medians: both sides of a round have
    /// met the same disturbance.
    pub ratio: f64,
}

/// Measures both in turns, and tells nanoseconds per call.
pub fn compare(mut bare: impl FnMut(i32), mut routed: impl FnMut(i32)) -> Ratio {
    let calls = calls_in_batch(&mut bare);
    calls_in_batch(&mut routed);
    let mut rounds = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let (first, second) = match round % 2 {
            0 => {
                let first = time(calls, &mut bare);
                (first, time(calls, &mut routed))
            }
            _ => {
                let second = time(calls, &mut routed);
                (time(calls, &mut bare), second)
            }
        };
        for (samples, sample) in rounds.iter_mut().zip([first, second, second / first]) {
            samples.push(sample);
        }
    }
    let [bare, routed, ratio] = rounds.map(median);
    Ratio {
        bare,
        routed,
        ratio,
    }
}

/// Measures one thing alone, in nanoseconds per call.
pub fn alone(mut call: impl FnMut(i32)) -> f64 {
    let calls = calls_in_batch(&mut call);
    median((0..ROUNDS).map(|_| time(calls, &mut call)).collect())
}

fn calls_in_batch(call: &mut impl FnMut(i32)) -> u32 {
    const PROBE: u32 = 2_000;
    time(PROBE, call);
    let each = time(PROBE, call);
    (BATCH.as_nanos() as f64 / each).max(1.0) as u32
}

fn time(calls: u32, call: &mut impl FnMut(i32)) -> f64 {
    let began = Instant::now();
    for i in 0..calls {
        call((i % 1_000 + 1) as i32);
    }
    began.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.0} ns {:>9.0} ns {:>8.3} x",
            self.bare, self.routed, self.ratio
        )
    }
}

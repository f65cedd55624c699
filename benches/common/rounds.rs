//! Measuring several things in turns.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What was measured: for each round one figure of each contender.
pub struct Rounds {
    names: Vec<&'static str>,
    figures: Vec<Vec<f64>>,
}

impl Rounds {
    /// Measures each contender once a round, in an order that turns around from round to round, so
    /// that none always comes first. `ROUNDS` in the environment replaces `count`.
    ///
    /// A first round, which fills caches and dials, does not count.
    pub fn measure(
        count: usize,
        contenders: &mut [(&'static str, &mut dyn FnMut() -> f64)],
    ) -> Self {
        let wanted = std::env::var("ROUNDS").ok();
        let count = wanted.map_or(count, |text| text.parse().expect("ROUNDS is a number"));
        let mut figures = vec![Vec::new(); contenders.len()];
        for round in 0..=count {
            let mut order: Vec<usize> = (0..contenders.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for i in order {
                let figure = (contenders[i].1)();
                if round > 0 {
                    figures[i].push(figure);
                }
            }
        }
        let names = contenders.iter().map(|(name, _)| *name).collect();
        Rounds { names, figures }
    }

    /// The median of a contender.
    pub fn median(&self, name: &str) -> f64 {
        median(self.figures[self.position(name)].iter().copied())
    }

    /// The median over the rounds of what `name` reached for one of `base`.
    pub fn ratio(&self, name: &str, base: &str) -> f64 {
        let pairs = self.figures[self.position(name)]
            .iter()
            .zip(&self.figures[self.position(base)]);
        median(pairs.map(|(figure, base)| figure / base))
    }

    fn position(&self, name: &str) -> usize {
        let position = self.names.iter().position(|known| *known == name);
        position.expect("it was measured")
    }
}

/// The middle one; of an even number the mean of the middle two.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        1 => figures[middle],
        _ => (figures[middle - 1] + figures[middle]) / 2.0,
    }
}

/// How many units of work per second all workers do together, each on a thread of its own, one unit
/// after the other.
pub fn throughput<W: Send>(workers: &mut [W], time: Duration, unit: impl Fn(&mut W) + Sync) -> f64 {
    let (unit, start) = (&unit, &Barrier::new(workers.len()));
    let run = move |worker: &mut W| {
        start.wait();
        let began = Instant::now();
        let mut done = 0.0;
        while began.elapsed() < time {
            unit(worker);
            done += 1.0;
        }
        done / began.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(move || run(worker)))
            .collect();
        let rates = threads.into_iter().map(|thread| thread.join());
        rates.map(|rate| rate.expect("no unit fails")).sum()
    })
}

//! How long a server's connections were in use lately; pure.

use std::time::{Duration, Instant};

/// After so long a third is left of what was before. From 0.2 to 5 s the simulation of `benches/balance` shows
/// little difference.
const MEMORY: Duration = Duration::from_secs(1);

/// An average of how long something took, which forgets by time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    /// In seconds.
    average: f64,
    at: Instant,
    count: u32,
}

impl Latency {
    /// The average after one more that ended at `now`.
    ///
    /// The first ones count alike, so that one slow beginning does not stand for all.
    pub(super) fn after(before: Option<Self>, took: Duration, now: Instant) -> Self {
        let took = took.as_secs_f64();
        let Some(before) = before else {
            return Self {
                average: took,
                at: now,
                count: 1,
            };
        };
        let age = now.saturating_duration_since(before.at);
        let count = before.count.saturating_add(1);
        let forgotten = 1.0 - (-age.div_duration_f64(MEMORY)).exp();
        let share = forgotten.max(1.0 / f64::from(count));
        Self {
            average: before.average * (1.0 - share) + took * share,
            at: now,
            count,
        }
    }

    /// In seconds.
    pub(crate) fn average(self) -> f64 {
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_is_new_and_is_not_startled_by_the_first() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        // (when, took, average), in milliseconds
        let table = [
            (0, 50, 50.0),
            (1, 10, 30.0),
            (2, 9, 23.0),
            (1_002, 23, 23.0),
            (11_002, 100, 99.997),
            (11_003, 0, 83.330),
        ];
        let mut latency = None;
        for (at, took, expected) in table {
            let after = Latency::after(latency, ms(took), start + ms(at));
            let off = (after.average() * 1e3 - expected).abs();
            assert!(off < 0.001, "at {at} ms: {after:?}");
            latency = Some(after);
        }
    }
}

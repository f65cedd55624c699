//! The strategies that are compared: the crate's own, and two that it has not.

use std::sync::Arc;

use diesel_routed::{Candidate, Select, Strategy};

use super::latency::{Averages, ByLatency};

/// What a process learns of the load of servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its own probes ask every 5 seconds, as the crate does.
    Own,
    /// All processes have one status, renewed every second.
    Cached,
}

pub struct Contender {
    pub name: &'static str,
    pub status: Status,
    make: Make,
}

enum Make {
    Built(Strategy),
    /// Everyone takes the least loaded of the cached status.
    Herd,
    Latency,
}

/// How one process chooses.
pub struct Chooser {
    pub select: Arc<dyn Select>,
    /// Is told how long each read took, if it wants to know.
    pub averages: Option<Arc<Averages>>,
}

pub fn contenders() -> Vec<Contender> {
    let built = |name, strategy| Contender {
        name,
        status: Status::Own,
        make: Make::Built(strategy),
    };
    vec![
        built("two_choices", Strategy::TwoChoices),
        Contender {
            name: "two_choices by latency",
            status: Status::Own,
            make: Make::Latency,
        },
        built("least_loaded", Strategy::LeastLoaded),
        built("round_robin", Strategy::RoundRobin),
        built("weighted_random", Strategy::WeightedRandom),
        built("random", Strategy::Random),
        built("failover", Strategy::Failover),
        Contender {
            name: "least of a cached status",
            status: Status::Cached,
            make: Make::Herd,
        },
    ]
}

impl Contender {
    pub fn chooser(&self, seed: u64) -> Chooser {
        match &self.make {
            Make::Built(strategy) => Chooser {
                select: strategy.selector_from_seed(seed),
                averages: None,
            },
            Make::Herd => Chooser {
                select: Arc::new(least_of_status),
                averages: None,
            },
            Make::Latency => {
                let averages = Arc::new(Averages::default());
                Chooser {
                    select: Arc::new(ByLatency::new(Arc::clone(&averages), seed)),
                    averages: Some(averages),
                }
            }
        }
    }
}

/// The candidate with the least load per weight; of equals the first.
fn least_of_status(candidates: &[Candidate<'_>]) -> Option<usize> {
    let load = |i: &usize| {
        let candidate = &candidates[*i];
        f64::from(candidate.load.unwrap_or(0)) / f64::from(candidate.weight)
    };
    (0..candidates.len()).min_by(|a, b| load(a).total_cmp(&load(b)))
}

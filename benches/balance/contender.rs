//! The strategies that are compared: the crate's own, and some that it has not.

use std::sync::Arc;

use diesel_routed::{Candidate, Select, Strategy};

use super::latency::{Averages, ByLatency, LessIfSlow};

/// What a process learns of the load of servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its own probes ask every 5 seconds, as the crate does.
    Own,
    /// The same, but a look by one process within the last 5 seconds is good for all others, as with
    /// the crate's `SharedStatus`.
    Shared,
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
    Slowness,
    Softly,
}

/// How one process chooses.
pub struct Chooser {
    pub select: Arc<dyn Select>,
    /// Is told how long each read took, if it wants to know.
    pub averages: Option<Arc<Averages>>,
}

pub fn contenders() -> Vec<Contender> {
    let with = |status, name, make| Contender { name, status, make };
    let own = |name, make| with(Status::Own, name, make);
    vec![
        own("two_choices", Make::Slowness),
        own("two_choices, blind", Make::Built(Strategy::TwoChoices)),
        own("least_loaded", Make::Built(Strategy::LeastLoaded)),
        with(
            Status::Shared,
            "least_loaded, shared",
            Make::Built(Strategy::LeastLoaded),
        ),
        own("round_robin", Make::Built(Strategy::RoundRobin)),
        own("weighted_random", Make::Built(Strategy::WeightedRandom)),
        own("random", Make::Built(Strategy::Random)),
        own("failover", Make::Built(Strategy::Failover)),
        with(Status::Cached, "least of a cached status", Make::Herd),
        own("not built: by latency", Make::Latency),
        with(Status::Shared, "not built: soft, shared", Make::Softly),
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
            Make::Softly => Chooser {
                select: Arc::new(softly_by_load(seed)),
                averages: None,
            },
            Make::Latency => Chooser::learning(|averages| Arc::new(ByLatency::new(averages, seed))),
            Make::Slowness => {
                Chooser::learning(|averages| Arc::new(LessIfSlow::new(averages, seed)))
            }
        }
    }
}

impl Chooser {
    fn learning(make: impl FnOnce(Arc<Averages>) -> Arc<dyn Select>) -> Self {
        let averages = Arc::new(Averages::default());
        Chooser {
            select: make(Arc::clone(&averages)),
            averages: Some(averages),
        }
    }
}

/// Two choices, with less weight where the server said that it has more to do than the idlest.
///
/// By the root: what all processes know is acted on by all, and old when it is.
fn softly_by_load(seed: u64) -> impl Select {
    let two_choices = Strategy::TwoChoices.selector_from_seed(seed);
    let per_weight = |candidate: &Candidate<'_>| {
        f64::from(candidate.load.unwrap_or(0) + 1) / f64::from(candidate.weight)
    };
    move |candidates: &[Candidate<'_>]| {
        let least = candidates
            .iter()
            .map(per_weight)
            .fold(f64::INFINITY, f64::min);
        let mut weighed = candidates.to_vec();
        for candidate in &mut weighed {
            let share = (least / per_weight(candidate)).sqrt();
            candidate.weight = (f64::from(candidate.weight) * share).ceil() as u32;
        }
        two_choices.select(&weighed)
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

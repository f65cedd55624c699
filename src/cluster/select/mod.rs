//! How one of several usable replicas is chosen.

mod dice;
mod failover;
mod least_loaded;
mod random;
mod round_robin;
#[cfg(test)]
mod tests;
mod two_choices;
mod weight;
mod weighted_random;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::dice::Dice;
pub(crate) use self::weight::{effective_weight, share_of_slow};

/// A replica that may serve the read at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate<'a> {
    /// The node's name, unique in its cluster.
    pub name: &'a str,
    /// Its share beside the others: what was configured, and less while it is new or falls
    /// behind. Only its ratio to the others means something; 0 is to get nothing.
    pub weight: u32,
    /// How many of its connections this process has in use.
    pub in_flight: u32,
    /// How many statements the server said it was working on, up to 5 seconds ago. Asked for
    /// only under [`Strategy::LeastLoaded`]; `None` if it was not, or could not be told.
    pub load: Option<u32>,
    /// How far it is behind its primary; `None` if that is not known.
    pub lag: Option<Duration>,
}

impl<'a> Candidate<'a> {
    /// Describes a candidate, as a test of a [`Select`] needs it; its load and lag are unknown.
    pub fn new(name: &'a str, weight: u32, in_flight: u32) -> Self {
        Candidate {
            name,
            weight,
            in_flight,
            load: None,
            lag: None,
        }
    }

    /// Sets [`load`](Self::load).
    pub fn with_load(mut self, load: impl Into<Option<u32>>) -> Self {
        self.load = load.into();
        self
    }

    /// Sets [`lag`](Self::lag).
    pub fn with_lag(mut self, lag: impl Into<Option<Duration>>) -> Self {
        self.lag = lag.into();
        self
    }
}

/// Chooses the replica that serves a read.
///
/// Closures of the same signature implement it.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use diesel_routed::{Candidate, Select, Strategy};
///
/// // The least used, whatever the weights.
/// let least_used = |candidates: &[Candidate<'_>]| {
///     (0..candidates.len()).min_by_key(|&i| candidates[i].in_flight)
/// };
/// let replicas = [Candidate::new("a", 1, 4), Candidate::new("b", 1, 2)];
/// assert_eq!(least_used.select(&replicas), Some(1));
///
/// let strategy = Strategy::Custom(Arc::new(least_used));
/// # let _ = strategy;
/// ```
pub trait Select: Send + Sync + 'static {
    /// The index of the chosen candidate, or `None` to use no replica.
    ///
    /// `candidates` are the replicas that are healthy and fresh enough for this one read, in the
    /// order of the configuration, and may be none; they differ from call to call. An index out of
    /// range counts as `None`, after which the read goes where the cluster's fallback says.
    ///
    /// Called on the thread that runs the statement, whenever a handle needs a replica: once a
    /// block, and again with the remaining candidates when the chosen one is full or fails.
    /// Called by many threads at a time, holding no lock. It should return at once: the statement
    /// waits for it. A panic unwinds into the code that ran the statement and loses no
    /// connection.
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize>;
}

impl<F> Select for F
where
    F: Fn(&[Candidate<'_>]) -> Option<usize> + Send + Sync + 'static,
{
    fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
        self(candidates)
    }
}

/// How one of several usable replicas is chosen.
///
/// None of them ever chooses a replica of weight 0. A replica's weight is less than was
/// configured while it warms up after an outage, and when it falls behind; whatever goes by
/// weight then sends it less.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Of two replicas drawn by weight, the one with fewer connections in use per weight. One whose
    /// connections are in use for longer than those of the fastest by more than a half counts as less.
    ///
    /// The default: it evades a slow replica without the herd that follows when every process
    /// runs to the least loaded one.
    #[default]
    TwoChoices,
    /// The one whose server has the least to do per weight; of equals any, by weight.
    ///
    /// Each server is asked every 5 seconds: MySQL and MariaDB for `Threads_running`, PostgreSQL
    /// for its active sessions. To that come the connections which this process has in use. One
    /// whose load is not known is taken to have as much to do as the others.
    ///
    /// For few processes, and servers that others use, too. Many processes all learn the same
    /// numbers, up to 5 seconds old, and run to the same server until they learn that it is
    /// the busiest one now; prefer [`TwoChoices`](Self::TwoChoices) there.
    LeastLoaded,
    /// In turns, a weight of 2 twice as often, evenly spread.
    RoundRobin,
    /// Any, all alike whatever their weights.
    Random,
    /// Any, a weight of 2 twice as often.
    WeightedRandom,
    /// The first in the order of the configuration; the others only while it cannot serve.
    Failover,
    /// The application's own choice.
    Custom(Arc<dyn Select>),
}

impl Strategy {
    /// Returns what chooses by this strategy; its state, if any, is new.
    ///
    /// For a [`Select`] that narrows the candidates and leaves the choice to one of these.
    ///
    /// ```
    /// use diesel_routed::{Candidate, Select, Strategy};
    ///
    /// let near = Strategy::TwoChoices.selector();
    /// let near_first = move |candidates: &[Candidate<'_>]| {
    ///     let is_near = |candidate: &&Candidate<'_>| candidate.name.starts_with("near-");
    ///     let few: Vec<_> = candidates.iter().filter(is_near).copied().collect();
    ///     let chosen = few[near.select(&few)?].name;
    ///     candidates.iter().position(|candidate| candidate.name == chosen)
    /// };
    /// let replicas = [Candidate::new("far-a", 1, 0), Candidate::new("near-b", 1, 9)];
    /// assert_eq!(near_first.select(&replicas), Some(1));
    /// ```
    pub fn selector(&self) -> Arc<dyn Select> {
        self.selector_with(Dice::thread)
    }

    /// [`selector`](Self::selector) whose draws follow from `seed`, for simulations that can be
    /// repeated.
    #[doc(hidden)]
    pub fn selector_from_seed(&self, seed: u64) -> Arc<dyn Select> {
        self.selector_with(|| Dice::from_seed(seed))
    }

    fn selector_with(&self, dice: impl FnOnce() -> Dice) -> Arc<dyn Select> {
        match self {
            Strategy::TwoChoices => Arc::new(two_choices::TwoChoices::new(dice())),
            Strategy::LeastLoaded => Arc::new(least_loaded::LeastLoaded::new(dice())),
            Strategy::RoundRobin => Arc::new(round_robin::RoundRobin::default()),
            Strategy::Random => Arc::new(random::Random::new(dice())),
            Strategy::WeightedRandom => Arc::new(weighted_random::WeightedRandom::new(dice())),
            Strategy::Failover => Arc::new(failover::Failover),
            Strategy::Custom(select) => Arc::clone(select),
        }
    }
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::TwoChoices => "TwoChoices",
            Strategy::LeastLoaded => "LeastLoaded",
            Strategy::RoundRobin => "RoundRobin",
            Strategy::Random => "Random",
            Strategy::WeightedRandom => "WeightedRandom",
            Strategy::Failover => "Failover",
            Strategy::Custom(_) => "Custom",
        })
    }
}

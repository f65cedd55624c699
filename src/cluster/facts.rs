//! What is known of the replicas, as far as a read is concerned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lend::{Terms, Wanted};
use super::members::Members;
use super::select::{effective_weight, share_of_slow};
use super::{Candidate, Cluster};
use crate::backend::ReplicatedConnection;
use crate::context::{Has, Need};
use crate::decision::ReplicaFacts;
use crate::node::{Era, Known, Latency, News, Node, NodeState};

impl<C: ReplicatedConnection> Cluster<C> {
    /// Tells whether replicas may be asked, and meet these terms.
    pub(crate) fn replica_facts(&self, terms: &Terms) -> ReplicaFacts {
        self.0.attend_read();
        self.0.hear_primary();
        let (now, era) = (Instant::now(), self.0.era());
        let members = self.0.members.read();
        let any =
            |test: &dyn Fn(&Known) -> bool| members.replicas.iter().any(|node| test(&node.known()));
        let has = |known: &Known| known.has(&terms.need, era, now) != Has::NotAll;
        let admits = |known: &Known| known.health.admits(terms.limit, now);
        if any(&|known| admits(known) && has(known)) {
            ReplicaFacts::Fit
        } else if any(&|known| known.health.admits(None, now)) {
            match any(&|known| known.health.admits(None, now) && has(known)) {
                true => ReplicaFacts::Late,
                false => ReplicaFacts::Behind,
            }
        } else if any(&|known| is_late(known, now)) {
            ReplicaFacts::Late
        } else {
            ReplicaFacts::None
        }
    }

    /// Tells whether a replica answers that is late, but misses nothing that is needed.
    pub(crate) fn any_late(&self, need: &Need) -> bool {
        let (now, era) = (Instant::now(), self.0.era());
        self.members().replicas.iter().any(|node| {
            let known = node.known();
            is_late(&known, now) && known.has(need, era, now) == Has::All
        })
    }

    /// Tells whether a replica misses nothing that is needed.
    pub(crate) fn has(&self, place: usize, need: &Need) -> bool {
        let (now, era) = (Instant::now(), self.0.era());
        let members = self.members();
        members
            .find(place)
            .is_some_and(|node| node.known().has(need, era, now) == Has::All)
    }

    /// Has the nodes asked now, because a read waits for a replica.
    pub(crate) fn ask_anew(&self, until: Instant) {
        self.0.ask_anew(until);
    }

    /// Tells whether another server takes the writes in place of this one, which has just refused
    /// one.
    ///
    /// A refusal proves nothing: it makes the nodes be probed, and is believed if the server says
    /// so itself. Waits for a server that takes writes, until `deadline`.
    pub(crate) fn is_deposed(&self, node: &Node<C>, deadline: Instant) -> bool {
        self.0.wake();
        let asked = Instant::now();
        // the monitor makes one probe of many such questions
        let _ = self.0.common.news.send(News::Check);
        let verdict = || match self.0.members().primary() {
            Some(primary) if primary.place() != node.place() => Some(true),
            primary => {
                let known = node.known();
                let answered = known.was_asked_since(asked);
                let well = known.health.last_state() == NodeState::Up;
                (primary.is_some() && answered && well).then_some(false)
            }
        };
        let bell = &self.0.common.bell;
        bell.wait_for(deadline, verdict).unwrap_or(false)
    }
}

/// A replica that may be asked, with what a strategy goes by, as it was known at one moment.
pub(super) struct Open<'a, C: ReplicatedConnection> {
    pub(super) node: &'a Arc<Node<C>>,
    /// How long its connections were in use lately, in seconds.
    pub(super) latency: Option<f64>,
    lag: Option<Duration>,
    load: Option<u32>,
    /// The part of its weight that it gets as it warms up.
    factor: f64,
}

impl<'a, C: ReplicatedConnection> Open<'a, C> {
    fn new(node: &'a Arc<Node<C>>, known: &Known, now: Instant) -> Self {
        let numbers = known.numbers.map(|(numbers, _)| numbers);
        let told = || numbers.and_then(|numbers| numbers.lag);
        Self {
            node,
            latency: known.latency.map(Latency::average),
            lag: known.health.shown_lag(now).or_else(told),
            load: numbers.and_then(|numbers| numbers.load),
            factor: known.health.weight_factor(now),
        }
    }

    /// What a strategy is told of it; `fastest` is what the connections to the fastest take, where the
    /// strategy goes by that.
    pub(super) fn candidate(
        &self,
        fastest: Option<f64>,
        max_lag: Option<Duration>,
    ) -> Candidate<'a> {
        let speeds = self.latency.zip(fastest);
        let share = speeds.map_or(1.0, |(own, fastest)| share_of_slow(own, fastest));
        let configured = self.node.settings().weight;
        let weight = effective_weight(configured, self.factor * share, self.lag, max_lag);
        Candidate::new(self.node.name(), weight, self.node.in_flight())
            .with_load(self.load)
            .with_lag(self.lag)
    }
}

/// The replicas that may be asked.
pub(super) fn open_replicas<'a, C: ReplicatedConnection>(
    members: &'a Members<C>,
    wanted: Wanted<'_>,
    era: Era,
    now: Instant,
) -> Vec<Open<'a, C>> {
    let has = |known: &Known| match wanted {
        Wanted::Fit(terms) => match known.has(&terms.need, era, now) {
            Has::All => true,
            Has::NotKnownToHave => known.is_worth_asking(now),
            Has::NotAll => false,
        },
        Wanted::Only(_) => true,
        Wanted::Stale(terms) => known.has(&terms.need, era, now) == Has::All,
    };
    let open = members.replicas.iter().filter_map(|node| {
        let known = node.known();
        let may = is_open(&known, wanted, now) && has(&known);
        may.then(|| Open::new(node, &known, now))
    });
    match wanted {
        Wanted::Fit(_) => open.collect(),
        Wanted::Only(place) => open.filter(|open| open.node.place() == place).collect(),
        Wanted::Stale(_) => {
            let least_late = open.min_by_key(|open| open.lag.unwrap_or(Duration::MAX));
            least_late.into_iter().collect()
        }
    }
}

/// Tells whether a replica may be asked, whatever it has.
pub(super) fn is_open(known: &Known, wanted: Wanted<'_>, now: Instant) -> bool {
    match wanted {
        Wanted::Fit(terms) => known.health.admits(terms.limit, now),
        Wanted::Only(_) => known.health.admits(None, now),
        Wanted::Stale(_) => is_late(known, now),
    }
}

/// Tells whether a replica answers, but is not known to be fresh enough.
fn is_late(known: &Known, now: Instant) -> bool {
    let state = known.health.state(now);
    matches!(state, NodeState::Lagging | NodeState::Up)
}

//! Which node lends a connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::facts::{Open, is_open, open_replicas};
use super::members::Members;
use super::select::Strategy;
use super::{Cluster, Inner, Role};
use crate::backend::ReplicatedConnection;
use crate::context::{Has, Need};
use crate::error::RoutedError;
use crate::node::{Acquaintance, Denial, DialError, Lease, Node, NodeState, Permit};
use crate::report::ErrorClass;

/// Whether a caller waits for a connection that another one holds, or for a node that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    UntilCheckoutTimeout,
}

/// What a replica must be to serve a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Its data is no older than this, besides `max_lag`.
    pub(crate) limit: Option<Duration>,
    /// It misses nothing of this.
    pub(crate) need: Need,
}

/// Which replica a caller wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// One that meets these.
    Fit(&'a Terms),
    /// The place of the one that a block has read from.
    Only(usize),
    /// The least late of those that answer and miss nothing that is needed.
    Stale(&'a Terms),
}

impl Wanted<'_> {
    /// The place of the node that serves if it can.
    fn preferred(self) -> Option<usize> {
        match self {
            Wanted::Fit(terms) => terms.need.preferred(),
            Wanted::Only(_) | Wanted::Stale(_) => None,
        }
    }
}

/// Why a connection is of no use although it is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfit {
    Behind,
    Other,
}

/// What came of choosing a replica.
enum Pick<'a, C: ReplicatedConnection> {
    Taken(&'a Arc<Node<C>>, Permit),
    /// All that may be asked lend as much as they have.
    Full(Vec<&'a Arc<Node<C>>>),
    /// The strategy wants none of them.
    Refused,
}

/// Why no replica lent a connection.
#[derive(Debug)]
pub(crate) enum NoReplica {
    /// None is able to: each with its reason.
    Unable(String),
    /// None is known to have what is needed.
    Behind,
}

impl<C: ReplicatedConnection> Cluster<C> {
    /// Lends a connection to the primary.
    ///
    /// One that is busy, gone or about to be replaced is waited for until `deadline`, so that a
    /// short failover is no error.
    pub(crate) fn lend_primary(
        &self,
        wait: Wait,
        deadline: Instant,
    ) -> Result<Lease<C>, RoutedError> {
        self.0.attend_write(deadline);
        let mut first = None;
        loop {
            let members = self.0.members();
            let refusal = match members.primary() {
                Some(node) => match lend_by(node, wait, deadline) {
                    Ok(lease) => return Ok(lease),
                    Err(refusal) => refusal,
                },
                None => Refused::Passing(members.no_primary()),
            };
            let error = match refusal {
                Refused::Passing(error) if wait == Wait::UntilCheckoutTimeout => error,
                Refused::Passing(error) => return Err(error),
                // that there was too little time left in the end is not what was wrong
                Refused::Lasting(error) => return Err(first.unwrap_or(error)),
            };
            if !self.0.may_try_again(&members, deadline) {
                return Err(error);
            }
            first = Some(error);
        }
    }

    /// Admits one more read to the primary in place of a replica.
    pub(crate) fn admit_fallback(&self, deadline: Instant) -> Result<Option<Permit>, RoutedError> {
        if !self.has_replicas() {
            return Ok(None);
        }
        match self.0.fallback.acquire(deadline) {
            Some(permit) => Ok(Some(permit)),
            None => Err(RoutedError::FallbackLimit {
                node: self.primary_name(),
            }),
        }
    }

    /// Lends a connection to a replica, other than one that has just failed.
    ///
    /// One that can't be reached is passed over, as is a full one; when all are full the first free
    /// connection is waited for.
    pub(crate) fn lend_replica(
        &self,
        wanted: Wanted<'_>,
        except: Option<usize>,
        wait: Wait,
        mut now: Instant,
        deadline: Instant,
    ) -> Result<Lease<C>, NoReplica> {
        let members = self.0.members();
        let mut failed: Vec<usize> = except.into_iter().collect();
        let mut behind = false;
        loop {
            let mut open = open_replicas(&members, wanted, self.0.era(), now);
            open.retain(|open| !failed.contains(&open.node.place()));
            if open.is_empty() {
                return Err(match behind {
                    true => NoReplica::Behind,
                    false => no_replica(&members),
                });
            }
            let preferred = wanted.preferred();
            let (node, permit) = match self.pick(open, preferred) {
                Pick::Taken(node, permit) => (node, permit),
                Pick::Refused => {
                    return Err(NoReplica::Unable("the strategy chose none".to_owned()));
                }
                Pick::Full(nodes)
                    if wait == Wait::UntilCheckoutTimeout && self.one_frees(&nodes, deadline) =>
                {
                    now = Instant::now();
                    continue;
                }
                Pick::Full(_) => {
                    let in_use = "all connections to replicas are in use".to_owned();
                    return Err(NoReplica::Unable(in_use));
                }
            };
            match node
                .lend(permit, now, deadline)
                .map(|lease| self.checked(lease, wanted))
            {
                Ok(Ok(lease)) => return Ok(lease),
                Ok(Err(unfit)) => behind |= unfit == Unfit::Behind,
                Err(_) => {}
            }
            failed.push(node.place());
            now = Instant::now();
        }
    }

    /// Asks the server itself where what is known of the node does not tell: it is not the one that
    /// the probes have met, or may have what is needed by now.
    fn checked(&self, mut lease: Lease<C>, wanted: Wanted<'_>) -> Result<Lease<C>, Unfit> {
        // of one that was promoted while this was dialled it would refuse no write
        if lease.role() == Role::Primary {
            return Err(Unfit::Other);
        }
        let terms = match wanted {
            Wanted::Fit(terms) => Some(terms),
            Wanted::Only(_) | Wanted::Stale(_) => None,
        };
        let has = match lease.acquaintance {
            Acquaintance::Known => {
                let now = lease.inner().used;
                let known = lease.node().known();
                // while it was dialled it may have come back
                if !is_open(&known, wanted, now) {
                    return Err(Unfit::Other);
                }
                let era = self.0.era();
                terms.map_or(Has::All, |terms| known.has(&terms.need, era, now))
            }
            // probes tell when it is not in its own past any more
            Acquaintance::Reborn => {
                lease.node().alarm();
                return Err(Unfit::Other);
            }
            Acquaintance::Stranger => Has::NotKnownToHave,
        };
        let Some(terms) = terms.filter(|_| has != Has::All) else {
            return Ok(lease);
        };
        let known = lease.acquaintance == Acquaintance::Known;
        let sent = Instant::now();
        let Ok(report) = lease.run(C::probe) else {
            lease.lose();
            return Err(Unfit::Other);
        };
        if !known && !self.0.may_serve(&report, terms) {
            return Err(Unfit::Other);
        }
        let node = known.then_some(lease.node().place());
        let has = self.0.has(&report, node, &terms.need);
        if known {
            // the next one need not ask
            lease.node().has_come(report, sent);
        }
        match has {
            true => Ok(lease),
            false => Err(Unfit::Behind),
        }
    }

    /// Takes a permit of the node that is preferred, or else that the strategy chooses, among those
    /// with a free one.
    fn pick<'a>(&self, mut open: Vec<Open<'a, C>>, preferred: Option<usize>) -> Pick<'a, C> {
        let is_preferred = |open: &&Open<'a, C>| Some(open.node.place()) == preferred;
        let taken = |open: &Open<'a, C>| Some((open.node, open.node.permits().try_acquire()?));
        if let Some((node, permit)) = open.iter().find(is_preferred).and_then(taken) {
            return Pick::Taken(node, permit);
        }
        let mut full = Vec::new();
        while !open.is_empty() {
            let (fastest, max_lag) = (self.fastest(&open), self.settings().max_lag);
            let candidate = |open: &Open<'a, C>| open.candidate(fastest, max_lag);
            let candidates: Vec<_> = open.iter().map(candidate).collect();
            let chosen = self.0.selector.select(&candidates);
            let Some(at) = chosen.filter(|at| *at < open.len()) else {
                return Pick::Refused;
            };
            match taken(&open[at]) {
                Some((node, permit)) => return Pick::Taken(node, permit),
                None => full.push(open.remove(at).node),
            }
        }
        Pick::Full(full)
    }

    /// What the connections to the fastest of these nodes take, where the strategy goes by it.
    fn fastest(&self, open: &[Open<'_, C>]) -> Option<f64> {
        let latencies = open.iter().filter_map(|open| open.latency);
        match self.settings().strategy {
            Strategy::TwoChoices => latencies.reduce(f64::min),
            _ => None,
        }
    }

    /// Waits until one of these nodes has a connection free; which one serves is asked anew then.
    fn one_frees(&self, nodes: &[&Arc<Node<C>>], deadline: Instant) -> bool {
        let free = || nodes.iter().any(|node| node.permits().any_free());
        let bell = &self.0.common.bell;
        bell.wait_for(deadline, || free().then_some(())).is_some()
    }

    /// Says why no replica may be asked.
    pub(crate) fn no_replica(&self) -> NoReplica {
        no_replica(&self.0.members())
    }
}

impl<C: ReplicatedConnection> Inner<C> {
    /// Waits until it may be worth while to ask for the primary again.
    fn may_try_again(&self, members: &Arc<Members<C>>, deadline: Instant) -> bool {
        let changed = || !Arc::ptr_eq(members, &self.members());
        let may_dial = || match members.primary() {
            Some(node) => node.may_dial(Instant::now()),
            None => false,
        };
        let next = members
            .primary()
            .and_then(|node| node.known().health.next_dial());
        let until = next.map_or(deadline, |next| next.min(deadline));
        let bell = &self.common.bell;
        bell.wait_for(until, || (changed() || may_dial()).then_some(()));
        Instant::now() < deadline
    }
}

/// Why the primary lends nothing.
enum Refused {
    /// It may well be there again in a moment, or another one in its place.
    Passing(RoutedError),
    /// No waiting helps.
    Lasting(RoutedError),
}

impl From<Refused> for RoutedError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Passing(error) | Refused::Lasting(error) => error,
        }
    }
}

/// Lends a connection to this node, which takes the writes.
fn lend_by<C: ReplicatedConnection>(
    node: &Arc<Node<C>>,
    wait: Wait,
    deadline: Instant,
) -> Result<Lease<C>, Refused> {
    let name = || node.name().to_string();
    let unreachable = |cause: &str| {
        let (node, cause) = (name(), cause.to_owned());
        RoutedError::NoPrimary { node, cause }
    };
    let no_primary = |cause: &str, class: ErrorClass| match class {
        ErrorClass::Death | ErrorClass::Load => Refused::Passing(unreachable(cause)),
        _ => Refused::Lasting(unreachable(cause)),
    };
    let known = || match &node.known().last_failure {
        Some((cause, class)) => no_primary(cause, *class),
        None => no_primary("it does not answer", ErrorClass::Death),
    };
    let next_dial = || node.known().health.next_dial();
    let busy = || Refused::Lasting(RoutedError::PoolTimeout { node: name() });
    if wait == Wait::No && node.is_gone() {
        return Err(known());
    }
    let permit = node.permits().acquire(deadline).ok_or_else(busy)?;
    let lent = node
        .lend(permit, Instant::now(), deadline)
        .map_err(|denial| match denial {
            Denial::NotAnswering(DialError { cause, class, .. }) => no_primary(&cause, class),
            Denial::NotNow => match next_dial() {
                // after a refused password nobody dials for long
                Some(next) if next > deadline => known(),
                _ => Refused::Passing(known().into()),
            },
            Denial::OutOfTime if node.is_gone() => Refused::Lasting(known().into()),
            Denial::OutOfTime => {
                let cause = "no connection was opened within checkout_timeout";
                Refused::Lasting(unreachable(cause))
            }
        });
    let mut lease = lent?;
    match lease.role() {
        Role::Primary => Ok(lease),
        // it was found to be a replica while this was dialled, and the session is made for that
        Role::Replica => Err(no_primary("it is a replica now", ErrorClass::Death)),
    }
}

/// Says why no replica may be asked: each with its state or last error.
fn no_replica<C: ReplicatedConnection>(members: &Members<C>) -> NoReplica {
    let now = Instant::now();
    let cause = |node: &Arc<Node<C>>| {
        let known = node.known();
        let state = known.health.state(now);
        match (state, known.health.refusal(), known.last_error()) {
            (NodeState::Refused, Some(refusal), _) => format!("{}: {refusal}", node.name()),
            (NodeState::Down { .. }, _, Some(error)) => format!("{}: {error}", node.name()),
            _ => format!("{}: {state}", node.name()),
        }
    };
    let causes: Vec<String> = members.replicas.iter().map(cause).collect();
    NoReplica::Unable(match causes.is_empty() {
        true => "none is configured".to_owned(),
        false => causes.join("; "),
    })
}

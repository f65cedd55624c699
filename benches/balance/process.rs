//! A process of the application: its handles, its pools, and what it believes of the replicas.

use std::collections::VecDeque;

use diesel_routed::Candidate;

use super::contender::Chooser;
use super::scenario::Scenario;

pub const NODES: usize = 4;
const NAMES: [&str; NODES] = ["n1", "n2", "n3", "n4"];

/// The handles of a process by default; one that is alone has more.
const HANDLES: usize = 10;
const HANDLES_ALONE: usize = 40;

/// The crate's defaults: a replica's pool beside that of handles, and how a replica warms up.
const POOL_SHARE: f64 = 2.0 / 3.0;
const SLOW_START: f64 = 20.0;
const FIRST_SHARE: f64 = 0.1;

/// What a weight of 1 is to a strategy, so that parts of it are integers.
const WHOLE: f64 = 1_000.0;

#[derive(Clone, Copy)]
pub struct Request {
    /// Of which process; `None` for one of others.
    pub process: Option<usize>,
    pub arrived: f64,
    /// How long a server works on it, in parts of the usual time.
    pub work: f64,
}

pub struct Process {
    chooser: Chooser,
    weights: [u32; NODES],
    pool: u32,
    in_flight: [u32; NODES],
    pub load: [Option<u32>; NODES],
    /// Since when each is up again; `None` while it is taken for down.
    up: [Option<f64>; NODES],
    handles: usize,
    /// Requests that wait for a handle.
    waiting: VecDeque<Request>,
    /// Requests that have a handle and wait for the first connection that is free.
    starving: VecDeque<Request>,
}

impl Process {
    pub fn new(scenario: &Scenario, chooser: Chooser) -> Self {
        let handles = match scenario.processes {
            1 => HANDLES_ALONE,
            _ => HANDLES,
        };
        Process {
            chooser,
            weights: scenario.replicas.map(|plan| plan.weight),
            pool: (handles as f64 * POOL_SHARE).ceil() as u32,
            in_flight: [0; NODES],
            load: [None; NODES],
            up: [Some(-SLOW_START); NODES],
            handles,
            waiting: VecDeque::new(),
            starving: VecDeque::new(),
        }
    }

    /// Gives a new request a handle, or lets it wait for one.
    pub fn admit(&mut self, request: Request) -> Option<Request> {
        match self.handles.checked_sub(1) {
            Some(left) => {
                self.handles = left;
                Some(request)
            }
            None => {
                self.waiting.push_back(request);
                None
            }
        }
    }

    /// Lends a connection; `None` if the request has to wait for one.
    pub fn lend(&mut self, request: Request, now: f64) -> Option<usize> {
        if let Some(averages) = &self.chooser.averages {
            averages.set_clock(now);
        }
        let mut left: Vec<usize> = (0..NODES).filter(|&node| self.up[node].is_some()).collect();
        assert!(!left.is_empty(), "some replica is up in every scenario");
        while !left.is_empty() {
            let candidates: Vec<_> = left.iter().map(|&node| self.candidate(node, now)).collect();
            let place = self.chooser.select.select(&candidates);
            let node = left.remove(place.expect("every candidate has a weight"));
            if self.in_flight[node] < self.pool {
                self.in_flight[node] += 1;
                return Some(node);
            }
        }
        self.starving.push_back(request);
        None
    }

    fn candidate(&self, node: usize, now: f64) -> Candidate<'static> {
        let since = now - self.up[node].unwrap_or(now);
        let warm = (FIRST_SHARE + (1.0 - FIRST_SHARE) * since / SLOW_START).min(1.0);
        let weight = (f64::from(self.weights[node]) * WHOLE * warm).round() as u32;
        Candidate::new(NAMES[node], weight, self.in_flight[node]).with_load(self.load[node])
    }

    /// Takes back the connection of a read that took so long, and its handle. What goes on now: one
    /// that waited for a connection, and one that waited for a handle.
    pub fn finish(&mut self, node: usize, took: f64, now: f64) -> [Option<Request>; 2] {
        self.in_flight[node] -= 1;
        if let Some(averages) = &self.chooser.averages {
            averages.set_clock(now);
            averages.learn(NAMES[node], took);
        }
        self.handles += 1;
        let next = self.waiting.pop_front();
        let next = next.and_then(|request| self.admit(request));
        [self.starving.pop_front(), next]
    }

    /// Learns that a connection was lost, or refused: the replica is down until a probe passes.
    pub fn lose(&mut self, node: usize) {
        self.in_flight[node] -= 1;
        self.up[node] = None;
    }

    /// Learns by a probe whether a replica answers.
    pub fn probe(&mut self, node: usize, alive: bool, now: f64) {
        match (alive, self.up[node]) {
            (true, None) => self.up[node] = Some(now),
            (true, Some(_)) => {}
            (false, _) => self.up[node] = None,
        }
    }
}

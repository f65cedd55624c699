//! A minute of reads, in virtual time: what follows from a seed is always the same.
//!
//! Requests come at random moments (Poisson) to random processes, and ask for an exponentially
//! distributed amount of work, the same in each run with the same seed whatever the strategy.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::contender::{Contender, Status};
use super::process::{NODES, Process, Request};
use super::scenario::{Scenario, Trouble};
use super::server::{Job, Server};

/// Seconds. The work of a read, on average, and how many times as much a report is; the length of
/// a run, and when trouble comes and goes.
const WORK: f64 = 0.005;
const REPORT: f64 = 60.0;
const END: f64 = 60.0;
const TROUBLE: [f64; 2] = [15.0, 35.0];

/// Seconds between the probes of a process, and between its looks at the load of the servers.
const CHECK_INTERVAL: f64 = 1.0;
const LOAD_INTERVAL: f64 = 5.0;

/// How many times as long a replica takes that has just come back, and how long it stays cold.
const COLD: f64 = 4.0;
const COLD_FOR: f64 = 15.0;

/// Which replica the trouble befalls.
const VICTIM: usize = 0;

enum What {
    Arrival,
    OtherArrival,
    Done {
        node: usize,
        slot: usize,
        deaths: u32,
    },
    Probe(usize),
    Look(usize),
    LookForAll,
    Death,
    Return,
}

struct Event {
    at: f64,
    /// Of events at the same time the one that was made first comes first.
    number: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest, which a heap gives out first.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = other.at.total_cmp(&self.at);
        by_time.then(other.number.cmp(&self.number))
    }
}

/// What came of a run.
pub struct Outcome {
    /// Seconds from the arrival of a request to its answer, sorted.
    latencies: Vec<f64>,
    /// How many reads each replica answered.
    pub reads: [u64; NODES],
}

impl Outcome {
    /// The time, in seconds, in which this part of the requests was answered.
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.latencies.len() - 1;
        self.latencies[(last as f64 * part).round() as usize]
    }
}

/// Runs a scenario under a strategy.
pub fn run(scenario: &Scenario, contender: &Contender, seed: u64) -> Outcome {
    let mut world = World::new(scenario, contender, seed);
    while let Some(Event { at, what, .. }) = world.events.pop() {
        if at > END {
            break;
        }
        world.now = at;
        world.happen(what);
    }
    world.outcome.latencies.sort_by(f64::total_cmp);
    world.outcome
}

struct World<'a> {
    scenario: &'a Scenario,
    status: Status,
    /// What the process saw that asked last, and when.
    seen: Option<(f64, [Option<u32>; NODES])>,
    now: f64,
    events: BinaryHeap<Event>,
    made: u64,
    arrivals: StdRng,
    others: StdRng,
    servers: Vec<Server>,
    processes: Vec<Process>,
    outcome: Outcome,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, contender: &Contender, seed: u64) -> Self {
        let processes = (0..scenario.processes as u64)
            .map(|process| Process::new(scenario, contender.chooser(seed << 16 | process)));
        let mut world = World {
            scenario,
            status: contender.status,
            seen: None,
            now: 0.0,
            events: BinaryHeap::new(),
            made: 0,
            arrivals: StdRng::seed_from_u64(seed),
            others: StdRng::seed_from_u64(!seed),
            servers: scenario.replicas.map(Server::new).into(),
            processes: processes.collect(),
            outcome: Outcome {
                latencies: Vec::new(),
                reads: [0; NODES],
            },
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.at(0.0, What::Arrival);
        match self.scenario.trouble {
            Trouble::Shared(_) => self.at(TROUBLE[0], What::OtherArrival),
            Trouble::Dies => {
                self.at(TROUBLE[0], What::Death);
                self.at(TROUBLE[1], What::Return);
            }
            Trouble::None | Trouble::Slow(_) => {}
        }
        // the probes of different processes know nothing of one another
        for process in 0..self.processes.len() {
            let phase: f64 = self.others.random();
            self.at(phase * CHECK_INTERVAL, What::Probe(process));
            if self.status != Status::Cached {
                self.at(phase * LOAD_INTERVAL, What::Look(process));
            }
        }
        if self.status == Status::Cached {
            self.at(0.0, What::LookForAll);
        }
    }

    fn at(&mut self, at: f64, what: What) {
        self.made += 1;
        self.events.push(Event {
            at,
            number: self.made,
            what,
        });
    }

    fn after(&mut self, wait: f64, what: What) {
        self.at(self.now + wait, what);
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Arrival => self.arrival(),
            What::OtherArrival => self.other_arrival(),
            What::Done { node, slot, deaths } if deaths == self.servers[node].deaths => {
                self.done(node, slot);
            }
            What::Done { .. } => {}
            What::Probe(process) => {
                for (node, server) in self.servers.iter().enumerate() {
                    self.processes[process].probe(node, server.alive, self.now);
                }
                self.after(CHECK_INTERVAL, What::Probe(process));
            }
            What::Look(process) => {
                self.processes[process].load = self.look();
                self.after(LOAD_INTERVAL, What::Look(process));
            }
            What::LookForAll => {
                let loads = self.loads();
                for process in &mut self.processes {
                    process.load = loads;
                }
                self.after(CHECK_INTERVAL, What::LookForAll);
            }
            What::Death => self.death(),
            What::Return => self.servers[VICTIM].alive = true,
        }
    }

    /// What a process learns that asks for the load of the servers.
    fn look(&mut self) -> [Option<u32>; NODES] {
        match self.seen {
            Some((at, loads)) if self.status == Status::Shared && self.now < at + LOAD_INTERVAL => {
                loads
            }
            _ => {
                let loads = self.loads();
                self.seen = Some((self.now, loads));
                loads
            }
        }
    }

    fn loads(&self) -> [Option<u32>; NODES] {
        std::array::from_fn(|node| Some(self.servers[node].load()))
    }

    fn arrival(&mut self) {
        let slots: usize = self.scenario.replicas.iter().map(|plan| plan.slots).sum();
        let reports = self.scenario.reports;
        let mean = WORK * (1.0 + (REPORT - 1.0) * reports);
        let rate = slots as f64 / mean * self.scenario.load;
        let length = match self.arrivals.random_bool(reports) {
            true => REPORT,
            false => 1.0,
        };
        let request = Request {
            process: Some(self.arrivals.random_range(0..self.processes.len())),
            arrived: self.now,
            work: exponential(&mut self.arrivals) * length,
        };
        let pause = exponential(&mut self.arrivals) / rate;
        self.after(pause, What::Arrival);
        let process = request.process.expect("just put in");
        if let Some(request) = self.processes[process].admit(request) {
            self.serve(process, request);
        }
    }

    fn other_arrival(&mut self) {
        let Trouble::Shared(part) = self.scenario.trouble else {
            return;
        };
        if self.now >= TROUBLE[1] {
            return;
        }
        let rate = self.scenario.replicas[VICTIM].slots as f64 / WORK * part;
        let request = Request {
            process: None,
            arrived: self.now,
            work: exponential(&mut self.others),
        };
        let pause = exponential(&mut self.others) / rate;
        self.after(pause, What::OtherArrival);
        self.send(VICTIM, request);
    }

    /// Finds a replica for a request, again if the first one refuses.
    fn serve(&mut self, process: usize, request: Request) {
        while let Some(node) = self.processes[process].lend(request, self.now) {
            if self.servers[node].alive {
                return self.send(node, request);
            }
            self.processes[process].lose(node);
        }
    }

    fn send(&mut self, node: usize, request: Request) {
        let job = Job {
            request,
            sent: self.now,
        };
        if let Some(slot) = self.servers[node].accept(job) {
            self.work(node, slot, request);
        }
    }

    fn work(&mut self, node: usize, slot: usize, request: Request) {
        let deaths = self.servers[node].deaths;
        let takes = WORK * request.work * self.slowness(node);
        self.after(takes, What::Done { node, slot, deaths });
    }

    /// How many times as long as usual a replica takes now.
    fn slowness(&self, node: usize) -> f64 {
        let [from, to] = TROUBLE;
        match self.scenario.trouble {
            Trouble::Slow(factor) if node == VICTIM && (from..to).contains(&self.now) => factor,
            Trouble::Dies if node == VICTIM && self.now >= to => {
                let cold = 1.0 - ((self.now - to) / COLD_FOR).min(1.0);
                1.0 + (COLD - 1.0) * cold
            }
            _ => 1.0,
        }
    }

    fn done(&mut self, node: usize, slot: usize) {
        let (job, next) = self.servers[node].end(slot);
        if let Some(next) = next {
            self.work(node, slot, next.request);
        }
        let Some(process) = job.request.process else {
            return;
        };
        self.outcome.latencies.push(self.now - job.request.arrived);
        self.outcome.reads[node] += 1;
        let took = self.now - job.sent;
        let go_on = self.processes[process].finish(node, took, self.now);
        for request in go_on.into_iter().flatten() {
            self.serve(process, request);
        }
    }

    /// The connections to the victim break; what was under way goes on elsewhere.
    fn death(&mut self) {
        let lost = self.servers[VICTIM].die();
        let mut again = Vec::new();
        for job in lost {
            let Some(process) = job.request.process else {
                continue;
            };
            self.processes[process].lose(VICTIM);
            again.push((process, job.request));
        }
        for (process, request) in again {
            self.serve(process, request);
        }
    }
}

/// Of mean 1.
fn exponential(dice: &mut StdRng) -> f64 {
    let open: f64 = dice.random();
    -(1.0 - open).ln()
}

//! A run of the checker on one database.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{Affinity, ClusterConfig, Consistency, MonotonicReads, NodeConfig};

use super::backend;
use super::backend::*;
use super::pools::*;
use crate::client::{CLIENTS, Client, Order, Outcome, ROWS, Row};
use crate::plan::Monotonic;
use crate::process::{self, OtherProcess};
use crate::report::{Report, Setting};
use crate::support::{Cluster, wait_until};
use crate::trouble::{REPLICAS, Servers, Times};

#[path = "rows.rs"]
mod rows;
#[path = "visit.rs"]
mod visit;

use visit::Site;

const THREADS: usize = 4;

/// No run takes so long, whatever the machine.
const LONGEST: Duration = Duration::from_secs(6 * 3_600);

#[test]
fn every_client_sees_its_own_writes_whatever_happens_to_the_servers() {
    if process::serve(start) {
        return;
    }
    let report = run(Consistency::Session);
    assert!(report.errors.is_empty(), "{report:#?}");
    assert!(report.violations.is_empty(), "{report:#?}");
    assert!(
        report.reads_on_replicas * 10 > report.reads,
        "who always asks the primary proves nothing: {report:#?}"
    );
}

#[test]
fn the_checker_finds_what_is_missed_where_nobody_sticks() {
    if process::serve(start) {
        return;
    }
    let report = run(Consistency::Eventual);
    let missed = |violation: &String| violation.starts_with("an own write is missed");
    assert!(report.violations.iter().any(missed), "{report:#?}");
}

/// What a process needs to serve requests.
fn start(urls: &[String], consistency: Consistency) -> impl Fn(&Order) -> Outcome + use<> {
    let all = [
        Monotonic::Nowhere,
        Monotonic::WithinRequest,
        Monotonic::AcrossRequests,
    ];
    let pools = all.map(|monotonic| (monotonic, pool_on(urls, consistency, monotonic)));
    let site = Site {
        consistency,
        pools: pools.into(),
    };
    move |order| site.serve(order)
}

fn pool_on(urls: &[String], consistency: Consistency, monotonic: Monotonic) -> Pool {
    let node = |place: usize| NodeConfig::new(&*urls[place]).name(&format!("n{place}"));
    let config = (1..urls.len()).fold(ClusterConfig::new(node(0)), |config, place| {
        config.replica(node(place))
    });
    let config = match monotonic {
        Monotonic::Nowhere => config.affinity(Affinity::Query),
        Monotonic::WithinRequest => config,
        Monotonic::AcrossRequests => config.monotonic_reads(MonotonicReads::AcrossRequests),
    };
    let config = config
        .consistency(consistency)
        .check_interval(Duration::from_millis(200))
        .quarantine(Duration::from_millis(100))
        .slow_start(Duration::ZERO)
        .checkout_timeout(Duration::from_secs(10))
        .pool_size(4 * THREADS as u32)
        // a paused replica stays in use: only what a client has written keeps it away
        .max_lag(Duration::from_secs(60))
        .sticky_for(Duration::from_secs(70));
    let pool = pool_of(4 * THREADS as u32, config);
    warm(&pool);
    pool
}

fn run(consistency: Consistency) -> Report {
    let Setting { seed, operations } = Setting::from_env();
    let cluster = cluster_with_rows();
    let urls: Vec<String> = (0..=REPLICAS).map(|node| cluster.url(node)).collect();
    let test = thread::current();
    let test = test.name().expect("a test has a name");
    // two tabs at once for each thread
    let there = OtherProcess::start(test, urls.clone(), consistency, 2 * THREADS);
    let run = Run {
        target: operations,
        here: start(&urls, consistency),
        there,
        servers: Servers::new(&cluster),
        clients: Mutex::new((0..CLIENTS).map(|id| Client::new(id, seed)).collect()),
        report: Mutex::new(Report::new(seed)),
    };
    let begin = Instant::now();
    let times = run.go_on(seed);
    let took = begin.elapsed();
    let takeover = run.servers.took();
    let clients = run.clients.into_inner().expect("no thread panics");
    let mut report = run.report.into_inner().expect("no thread panics");
    println!("{NAME} {consistency:?}: {}", report.in_short(took));
    println!("{NAME}: {times:?}, and a switch-over in {takeover:?}");
    drop(run.there);
    cluster.wait_replicated();
    let rows: Vec<&Row> = clients.iter().flat_map(|client| &client.rows).collect();
    for node in 0..=REPLICAS {
        report.violations.extend(compare(&cluster, node, &rows));
    }
    report
}

fn cluster_with_rows() -> Cluster {
    let cluster = backend::cluster(REPLICAS);
    let mut conn = Plain::establish(&cluster.url(0)).expect("the primary takes connections");
    rows::create(&mut conn, ROWS);
    if NAME == "postgres" {
        // without it a standby does not tell its timeline
        cluster.sql(0, "GRANT pg_read_all_stats TO app");
    }
    cluster.wait_replicated();
    cluster
}

struct Run<'a, S> {
    target: u64,
    here: S,
    there: OtherProcess,
    servers: Servers<'a>,
    clients: Mutex<VecDeque<Client>>,
    report: Mutex<Report>,
}

impl<S: Fn(&Order) -> Outcome + Sync> Run<'_, S> {
    /// Serves the clients while things happen to the servers; returns how often each happened.
    fn go_on(&self, seed: u64) -> Vec<Times> {
        thread::scope(|scope| {
            let (ends, troubles): (Vec<_>, Vec<_>) = (0..REPLICAS)
                .map(|replica| {
                    let (end, ended) = mpsc::channel();
                    let trouble = move || self.servers.trouble(replica, seed, &ended);
                    (end, scope.spawn(trouble))
                })
                .unzip();
            let threads: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(|| self.serve_all()))
                .collect();
            wait_until("half of it is done", LONGEST, || self.done(self.target / 2));
            if !self.is_over() {
                self.servers.take_over();
            }
            let served: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            drop(ends);
            let troubles = troubles.into_iter().map(|trouble| trouble.join());
            let times = troubles.map(|times| times.expect("the cluster obeys"));
            let times = times.collect();
            assert!(served.iter().all(Result::is_ok), "no thread panics");
            times
        })
    }

    fn done(&self, operations: u64) -> bool {
        let report = self.report.lock().expect("no panic here");
        report.is_enough() || report.operations >= operations
    }

    fn is_over(&self) -> bool {
        self.done(u64::MAX) || self.done(self.target) && self.servers.took().is_some()
    }

    /// One thread: whichever client is next.
    fn serve_all(&self) {
        while !self.is_over() {
            let next = self.clients.lock().expect("no panic here").pop_front();
            let mut client = next.expect("there are more clients than threads");
            self.serve(&mut client);
            let mut clients = self.clients.lock().expect("no panic here");
            clients.push_back(client);
        }
    }

    /// The client's next request, or two at once; then it takes the responses, in any order.
    fn serve(&self, client: &mut Client) {
        let orders = client.orders();
        let here: Vec<bool> = orders.iter().map(|_| client.tosses_heads()).collect();
        let mut responses: Vec<_> = thread::scope(|scope| {
            let requests = orders.iter().zip(here);
            let threads: Vec<_> = requests
                .map(|(order, here)| scope.spawn(move || self.send(order, here)))
                .collect();
            let outcomes = threads.into_iter().map(|thread| thread.join());
            let outcomes = outcomes.map(|outcome| outcome.expect("no request panics"));
            orders.iter().zip(outcomes).collect()
        });
        if client.tosses_heads() {
            responses.reverse();
        }
        for (order, outcome) in responses {
            client.take(order, &outcome);
            self.report.lock().expect("no panic here").take(outcome);
        }
    }

    fn send(&self, order: &Order, here: bool) -> Outcome {
        let begin = Instant::now();
        let mut outcome = match here {
            true => (self.here)(order),
            false => self.there.serve(order),
        };
        if self.servers.may_fail(begin) {
            outcome.cut += outcome.errors.len() as u64;
            outcome.errors.clear();
        }
        outcome
    }
}

/// What is wrong with the writes as a node has them in the end.
fn compare(cluster: &Cluster, node: usize, written: &[&Row]) -> Vec<String> {
    let mut conn = Plain::establish(&cluster.url(node)).expect("every node runs");
    let mut times = BTreeMap::<(i32, i64), u32>::new();
    for version in rows::all_of(&mut conn) {
        *times.entry(version).or_default() += 1;
    }
    let mut wrong = vec![];
    let mut check = |row: &Row, version: i64, right: &[u32]| {
        let times = times.remove(&(row.id, version)).unwrap_or_default();
        if !right.contains(&times) {
            wrong.push(format!(
                "version {version} of row {} is {times} times on n{node}",
                row.id
            ));
        }
    };
    for row in written {
        for version in &row.acknowledged {
            check(row, *version, &[1]);
        }
        for version in &row.unknown {
            check(row, *version, &[0, 1]);
        }
    }
    let others = times.keys();
    wrong.extend(others.map(|version| format!("{version:?} on n{node}, which nobody wrote")));
    wrong
}

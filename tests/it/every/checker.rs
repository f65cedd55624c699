//! The checker: clients whose requests are served by several threads of two processes, which share
//! nothing but the token that each request hands to the next, while the replication of two replicas
//! is paused and resumed and the replicas are killed and restarted.
//!
//! Whatever happens, by the data alone: a client sees what it has written, a block never goes back
//! in time, and no acknowledged write is lost or done twice.
//!
//! `CHECKER_SEED` draws the same requests again; when they meet what happens to the replicas is up
//! to the machine. `CHECKER_OPERATIONS` tells how many steps are done.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Consistency, NodeConfig, RoutedConnectionManager};
use rand::Rng;
use rand::rngs::StdRng;

use super::backend;
use super::backend::*;
use super::pools::*;
use crate::support::Cluster;

#[path = "checker/faults.rs"]
mod faults;
#[path = "checker/plan.rs"]
mod plan;
#[path = "checker/process.rs"]
mod process;
#[path = "checker/visit.rs"]
mod visit;

use faults::trouble;
use plan::{Access, dice};
use process::OtherProcess;
use visit::{Order, Outcome, Site, checked_log};

type Handle = diesel::r2d2::PooledConnection<RoutedConnectionManager<Plain>>;

const THREADS: usize = 4;
const CLIENTS: i32 = 12;
const REPLICAS: usize = 2;
/// One violation says what is wrong; a few say how often.
const ENOUGH: usize = 5;

#[test]
fn every_client_sees_its_own_writes_whatever_happens_to_the_replicas() {
    if process::serve(pool_on) {
        return;
    }
    let result = run(Consistency::Session);
    assert!(result.errors.is_empty(), "{result:#?}");
    assert!(result.violations.is_empty(), "{result:#?}");
    assert!(
        result.reads_on_replicas * 10 > result.reads,
        "who always asks the primary proves nothing: {result:#?}"
    );
}

#[test]
fn the_checker_finds_what_is_missed_where_nobody_sticks() {
    if process::serve(pool_on) {
        return;
    }
    let result = run(Consistency::Eventual);
    let missed = |violation: &String| violation.starts_with("an own write is missed");
    assert!(result.violations.iter().any(missed), "{result:#?}");
}

/// What came of a run.
#[derive(Debug, Default)]
#[allow(dead_code)] // read by whoever reads the message
struct Report {
    seed: u64,
    operations: u64,
    reads: u64,
    reads_on_replicas: u64,
    cut: u64,
    violations: Vec<String>,
    errors: Vec<String>,
}

/// A client with what it knows; it comes to any thread of any process.
struct Client {
    id: i32,
    dice: StdRng,
    token: Option<String>,
    floor: i64,
    newest: i64,
    next: i64,
    acknowledged: Vec<i64>,
    unknown: Vec<i64>,
    /// Another tab, which knows less.
    tab: Option<(Option<String>, i64)>,
}

impl Client {
    fn new(id: i32, seed: u64) -> Self {
        Self {
            id,
            dice: dice(seed.wrapping_mul(1_000).wrapping_add(id as u64)),
            token: None,
            floor: 0,
            newest: 0,
            next: 1,
            acknowledged: vec![],
            unknown: vec![],
            tab: None,
        }
    }

    /// Its next request.
    fn order(&mut self) -> Order {
        if self.dice.random_ratio(1, 30) {
            // it comes back another day, without a token, and may expect nothing
            (self.token, self.floor, self.tab) = (None, 0, None);
        }
        let other_tab = self.dice.random_ratio(1, 5).then(|| self.tab.clone());
        let (access, (token, floor)) = match other_tab.flatten() {
            Some(tab) => (Access::ReadOnly, tab),
            None => (Access::ReadWrite, (self.token.clone(), self.floor)),
        };
        Order {
            client: self.id,
            seed: self.dice.random(),
            access,
            token,
            floor,
            newest: self.newest,
            next: self.next,
        }
    }

    fn take(&mut self, order: &Order, outcome: &Outcome) {
        if order.access == Access::ReadOnly {
            return;
        }
        if self.dice.random_ratio(1, 4) {
            self.tab = Some((self.token.take(), self.floor));
        }
        self.token = outcome.token.clone();
        self.next = outcome.next;
        self.acknowledged.extend(&outcome.acknowledged);
        self.unknown.extend(&outcome.unknown);
        self.floor = outcome.acknowledged.last().copied().unwrap_or(self.floor);
        let written = outcome.acknowledged.iter().chain(&outcome.unknown);
        self.newest = written.copied().fold(self.newest, i64::max);
    }
}

/// A pool as each process has one.
fn pool_on(urls: &[String], consistency: Consistency) -> Pool {
    let node = |place: usize| NodeConfig::new(&*urls[place]).name(&format!("n{place}"));
    let config = (1..urls.len()).fold(ClusterConfig::new(node(0)), |config, place| {
        config.replica(node(place))
    });
    let config = config
        .consistency(consistency)
        .check_interval(Duration::from_millis(100))
        .quarantine(Duration::from_millis(100))
        .slow_start(Duration::ZERO)
        .pool_size(4 * THREADS as u32)
        // a paused replica stays in use: only what a client has written keeps it away
        .max_lag(Duration::from_secs(60))
        .sticky_for(Duration::from_secs(70));
    let pool = pool_of(4 * THREADS as u32, config);
    warm(&pool);
    pool
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
    )
}

fn run(consistency: Consistency) -> Report {
    let seed = variable("CHECKER_SEED").unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    let operations = variable("CHECKER_OPERATIONS").unwrap_or(2_000);
    println!("CHECKER_SEED={seed} CHECKER_OPERATIONS={operations}");
    let cluster = checked_cluster();
    let urls: Vec<String> = (0..=REPLICAS).map(|node| cluster.url(node)).collect();
    let here = Site {
        pool: pool_on(&urls, consistency),
        consistency,
    };
    let test = thread::current()
        .name()
        .expect("a test has a name")
        .to_owned();
    let there = OtherProcess::start(&test, urls, consistency, THREADS);
    let run = Run {
        target: operations,
        here,
        there,
        clients: Mutex::new((0..CLIENTS).map(|id| Client::new(id, seed)).collect()),
        report: Mutex::new(Report {
            seed,
            ..Report::default()
        }),
    };
    let start = Instant::now();
    let troubles = run.go_on_in(&cluster, seed);
    let took = start.elapsed();
    let Run {
        clients, report, ..
    } = run;
    let mut report = report.into_inner().expect("no thread panics");
    println!(
        "{NAME} {consistency:?}: {} operations in {took:.1?}, {:.0} a second; {} reads, \
         {} on replicas; pauses and kills: {troubles:?}",
        report.operations,
        report.operations as f64 / took.as_secs_f64(),
        report.reads,
        report.reads_on_replicas,
    );
    cluster.wait_replicated();
    let clients = clients.into_inner().expect("no thread panics");
    for node in 0..=REPLICAS {
        report.violations.extend(compare(&cluster, node, &clients));
    }
    report
}

/// A cluster with a row for each client.
fn checked_cluster() -> Cluster {
    let cluster = cluster(REPLICAS);
    let rows: Vec<String> = (0..CLIENTS)
        .map(|client| format!("({client}, 0)"))
        .collect();
    let mut conn = Plain::establish(&cluster.url(0)).expect("the primary takes connections");
    for sql in [
        "CREATE TABLE checked (client INTEGER PRIMARY KEY, version BIGINT NOT NULL)",
        // a version that was written twice is to be there twice
        "CREATE TABLE checked_log (client INTEGER NOT NULL, version BIGINT NOT NULL)",
        "CREATE INDEX checked_log_of_client ON checked_log (client, version)",
        &format!("INSERT INTO checked VALUES {}", rows.join(", ")),
    ] {
        diesel::sql_query(sql).execute(&mut conn).expect(sql);
    }
    cluster.wait_replicated();
    cluster
}

struct Run {
    target: u64,
    here: Site,
    there: OtherProcess,
    clients: Mutex<VecDeque<Client>>,
    report: Mutex<Report>,
}

impl Run {
    /// Serves the clients while things happen to the replicas; returns how often each happened.
    fn go_on_in(&self, cluster: &Cluster, seed: u64) -> Vec<[u32; 2]> {
        thread::scope(|scope| {
            let (ends, troubles): (Vec<_>, Vec<_>) = (1..=REPLICAS)
                .map(|replica| {
                    let (end, ended) = mpsc::channel();
                    let trouble = move || trouble(cluster, replica, seed, &ended);
                    (end, scope.spawn(trouble))
                })
                .unzip();
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || self.serve(thread)))
                .collect();
            let served: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            drop(ends);
            let troubles = troubles.into_iter().map(|trouble| trouble.join());
            let troubles = troubles
                .map(|times| times.expect("the cluster obeys"))
                .collect();
            assert!(served.iter().all(Result::is_ok), "no thread panics");
            troubles
        })
    }

    /// One thread: whichever client is next, in whichever process.
    fn serve(&self, thread: usize) {
        loop {
            let Some(mut client) = self.clients.lock().expect("no panic here").pop_front() else {
                unreachable!("there are more clients than threads");
            };
            let order = client.order();
            let outcome = match client.dice.random_ratio(1, 2) {
                true => self.here.serve(&order),
                false => self.there.serve(thread, &order),
            };
            client.take(&order, &outcome);
            self.clients
                .lock()
                .expect("no panic here")
                .push_back(client);
            if self.report.lock().expect("no panic here").take(outcome) >= self.target {
                return;
            }
        }
    }
}

impl Report {
    /// Takes in a request; tells how many operations there were, for ever once enough is wrong.
    fn take(&mut self, outcome: Outcome) -> u64 {
        self.operations += outcome.operations;
        self.reads += outcome.reads;
        self.reads_on_replicas += outcome.reads_on_replicas;
        self.cut += outcome.cut;
        self.violations.extend(outcome.violations);
        self.errors.extend(outcome.errors);
        match self.violations.len() + self.errors.len() >= ENOUGH {
            true => u64::MAX,
            false => self.operations,
        }
    }
}

/// What is wrong with the writes as a node has them in the end.
fn compare(cluster: &Cluster, node: usize, clients: &VecDeque<Client>) -> Vec<String> {
    let mut conn = Plain::establish(&cluster.url(node)).expect("every node runs");
    let rows: Vec<(i32, i64)> = checked_log::table
        .select((checked_log::client, checked_log::version))
        .load(&mut conn)
        .expect("the log can be read");
    let mut times = BTreeMap::<(i32, i64), u32>::new();
    for row in rows {
        *times.entry(row).or_default() += 1;
    }
    let mut wrong = vec![];
    for client in clients {
        for version in &client.acknowledged {
            match times.remove(&(client.id, *version)) {
                Some(1) => {}
                times => wrong.push(format!(
                    "version {version} of client {} is {} times on n{node}",
                    client.id,
                    times.unwrap_or_default(),
                )),
            }
        }
        for version in &client.unknown {
            times.remove(&(client.id, *version));
        }
    }
    let others = times
        .keys()
        .map(|row| format!("{row:?} on n{node}, which nobody wrote"));
    wrong.extend(others);
    wrong
}

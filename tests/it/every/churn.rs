//! Ten thousand changes of who is there and who may be asked, and what they leave behind.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use diesel::prelude::*;
use diesel_routed::{Cluster, Context, NodeConfig};

use super::backend::*;
use super::pools::*;
use crate::kit_health::{Known, SOON, Tally, under_load, watched};
use crate::support::{Forwarder, holds_within, threads};

const CHANGES: usize = 10_000;
const THREADS: usize = 6;
const LIVING: [usize; 2] = [1, 2];
/// A replica that is configured, and answers nobody.
const DEAD: usize = 3;

/// A cluster whose living replicas are reached through doors that can be slammed. A file has none.
struct Place {
    cluster: crate::support::Cluster,
    doors: Vec<Forwarder>,
}

impl Place {
    fn new() -> Self {
        let cluster = cluster(DEAD);
        cluster.kill(DEAD);
        let door = |node: &usize| Forwarder::new(&[cluster.port(*node)]);
        let doors = match NAME {
            "sqlite" => vec![],
            _ => LIVING.iter().map(door).collect(),
        };
        Self { cluster, doors }
    }

    fn replica(&self, node: usize) -> NodeConfig {
        let url = match self.doors.get(node - 1) {
            Some(door) => self.cluster.url_through(node, door),
            None => self.cluster.url(node),
        };
        NodeConfig::new(url.as_str())
            .name(&format!("n{node}"))
            .pool_size(THREADS as u32)
    }

    fn replicas(&self, nodes: &[usize]) -> Vec<NodeConfig> {
        nodes.iter().map(|node| self.replica(*node)).collect()
    }

    /// Two more connections than all fallbacks need: the writers' quarter.
    fn pool(&self) -> Pool {
        let primary = NodeConfig::new(self.cluster.url(0))
            .name("n0")
            .pool_size(THREADS as u32 + 2);
        let config = diesel_routed::ClusterConfig::new(primary);
        let config = LIVING
            .iter()
            .fold(config, |config, node| config.replica(self.replica(*node)));
        pool_of(THREADS as u32 + 2, watched(config).checkout_timeout(SOON))
    }

    /// Ends the connections to a replica, and those that come before the next change.
    fn slam(&self, door: usize) {
        self.doors[door].switch(&[]);
        self.doors[door].cut();
    }

    fn open(&self, door: usize) {
        let port = self.cluster.port(LIVING[door]);
        self.doors[door].switch(&[port]);
    }

    /// How many sessions of the application a node has.
    fn sessions(&self, node: usize) -> usize {
        let sql = match NAME {
            "sqlite" => return self.own_sessions(node),
            "postgres" => "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'",
            _ => "SELECT count(*) FROM information_schema.PROCESSLIST WHERE user = 'app'",
        };
        self.cluster.sql(node, sql).parse().expect("a number")
    }

    /// The connections to a file that this process has, except those that copy it to the replicas.
    /// Each has the log open once; the file itself stays open for as long as anybody has it locked.
    fn own_sessions(&self, node: usize) -> usize {
        let name = format!("n{node}/app.db-wal");
        let open = descriptors()
            .iter()
            .filter(|file| file.ends_with(&name))
            .count();
        let copies = if node == 0 { LIVING.len() } else { 1 };
        open.saturating_sub(copies)
    }
}

/// The changes of one operator, each of which changes something.
struct Operator<'a> {
    place: &'a Place,
    cluster: Cluster<Plain>,
    present: Vec<usize>,
    drained: Vec<usize>,
    slammed: Option<usize>,
    dice: usize,
}

impl Operator<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    fn change(&mut self, number: usize) {
        if let Some(door) = self.slammed.take() {
            self.place.open(door);
        }
        match number % 20 {
            5 if !self.place.doors.is_empty() => {
                let door = self.roll(self.place.doors.len());
                self.place.slam(door);
                self.slammed = Some(door);
            }
            10 => self.come_or_go(),
            _ => self.drain_or_resume(),
        }
    }

    /// Adds a replica or removes one.
    fn come_or_go(&mut self) {
        let node = 1 + self.roll(DEAD);
        match self.present.iter().position(|present| *present == node) {
            Some(at) => drop(self.present.remove(at)),
            None => self.present.push(node),
        }
        // one that comes back is a new one
        self.drained.retain(|drained| *drained != node);
        self.set_replicas();
    }

    fn set_replicas(&self) {
        let replicas = self.place.replicas(&self.present);
        self.cluster.set_replicas(replicas).expect("a right list");
    }

    /// As at the start, with replicas that are all new.
    fn start_anew(&mut self) {
        self.slammed.take().inspect(|door| self.place.open(*door));
        self.drained.clear();
        for present in [&[][..], &LIVING] {
            self.present = present.to_vec();
            self.set_replicas();
        }
    }

    fn drain_or_resume(&mut self) {
        if self.present.is_empty() {
            return self.come_or_go();
        }
        let at = self.roll(self.present.len());
        let node = self.present[at];
        let name = format!("n{node}");
        match self.drained.iter().position(|drained| *drained == node) {
            Some(at) => {
                self.drained.swap_remove(at);
                self.cluster.resume(&name).expect("it is there");
            }
            None => {
                self.drained.push(node);
                self.cluster.drain(&name).expect("it is there");
            }
        }
    }
}

/// The threads of this process, without those of the pool of handles: r2d2 lets them go when it
/// would next have looked for idle ones, half a minute later.
fn own_threads() -> Vec<String> {
    let mut threads = threads();
    threads.retain(|name| !name.starts_with("r2d2-worker"));
    threads
}

/// What this process has open: connections as well as files.
fn descriptors() -> Vec<String> {
    let open = fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    let target = |file: fs::DirEntry| fs::read_link(file.path()).ok();
    let targets = open.flatten().filter_map(target);
    let mut targets: Vec<_> = targets.map(|target| target.display().to_string()).collect();
    targets.sort();
    targets
}

fn without_databases() -> Vec<String> {
    let mut open = descriptors();
    open.retain(|target| !target.contains("/app.db"));
    open
}

/// One request in eight writes; each is another one.
fn request(pool: &Pool, number: usize) -> QueryResult<String> {
    Context::new().run(|| {
        let mut conn = pool.get().expect("a handle is free");
        match number % 8 {
            0 => try_write(&mut conn, "churn").map(|_| "written".to_owned()),
            _ => conn.distributed(try_who),
        }
    })
}

/// That it is `expected` in the end.
#[track_caller]
fn settles<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, now: impl Fn() -> T) {
    let mut last = None;
    let began = Instant::now();
    let settled = holds_within(SOON, || last.insert(now()) == &expected);
    assert!(settled, "{what}: {last:?}, not {expected:?}");
    println!("{what}: after {:?}", began.elapsed());
}

fn churn(place: &Place, pool: &Pool, tally: &Tally) {
    let began = Instant::now();
    let mut operator = Operator {
        place,
        cluster: pool.get().expect("a handle is free").cluster().clone(),
        present: LIVING.to_vec(),
        drained: vec![],
        slammed: None,
        dice: 7,
    };
    for number in 0..CHANGES {
        operator.change(number);
        if number % 10 == 0 {
            tally.wait_for_more(THREADS);
        }
        if number % (CHANGES / 5) == 1 {
            operator.start_anew();
            for node in LIVING {
                tally.wait_for_more_by(&format!("n{node}"), 100);
            }
        }
    }
    operator.start_anew();
    println!("{CHANGES} changes took {:?}", began.elapsed());
}

#[test]
fn ten_thousand_changes_under_load_fail_no_request_and_leave_nothing_behind() {
    let place = Place::new();
    let before = (own_threads(), without_databases());
    let pool = place.pool();
    let requests = AtomicUsize::new(0);
    let ((), tally) = under_load(
        THREADS,
        || request(&pool, requests.fetch_add(1, Ordering::Relaxed)),
        |tally| churn(&place, &pool, tally),
    );
    let by = |name| tally.by(name);
    println!(
        "answers of n0 {}, n1 {}, n2 {}",
        by("n0"),
        by("n1"),
        by("n2")
    );
    assert_eq!(tally.failures(), [""; 0], "no request fails");
    settles("connections in use", vec![0; 3], || in_flight(&pool));
    Known::to(&pool).wait_for_all();
    let cluster = pool.get().expect("a handle is free").cluster().clone();
    cluster.set_replicas(vec![]).expect("a right list");
    for node in LIVING {
        settles("sessions of a removed node", 0, || place.sessions(node));
    }
    drop((cluster, pool));
    settles("threads", before.0, own_threads);
    settles("open sockets and files", before.1, without_databases);
    settles("sessions", 0, || place.sessions(0));
}

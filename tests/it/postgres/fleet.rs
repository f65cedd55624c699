//! Many processes on one cluster: what their probes cost it, and how they dial a new primary.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel_routed::{ClusterConfig, Context, NodeConfig};

use super::settings::set;
use crate::kit::postgres::{Pool, cluster, try_who, warm};
use crate::kit_health::SOON;
use crate::kit_pools::postgres::pool_of;
use crate::support::{Cluster, Forwarder, holds_within, wait_until};

/// A process of the fleet is told the URLs of its nodes.
const CHILD: &str = "DIESEL_ROUTED_FLEET_CHILD";
/// How many processes there are; for 50, see CONTRIBUTING.md.
const SIZE: &str = "DIESEL_ROUTED_FLEET";
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the fleet is watched while nothing happens.
const WINDOW: Duration = Duration::from_secs(3);
/// How many threads of a process want the new primary at the same time.
const THREADS: u32 = 4;

fn size() -> usize {
    std::env::var(SIZE).map_or(8, |size| size.parse().expect("a number"))
}

/// Serves requests until its standard input ends.
fn serve(urls: &str) {
    let nodes = urls.split(' ').enumerate().map(|(place, url)| {
        NodeConfig::new(url)
            .name(&format!("n{place}"))
            .pool_size(THREADS)
    });
    let nodes: Vec<_> = nodes.collect();
    let config = ClusterConfig::new(nodes[0].clone());
    let config = nodes[1..]
        .iter()
        .fold(config, |config, node| config.replica(node.clone()));
    let pool = pool_of(THREADS, config.check_interval(INTERVAL));
    warm(&pool);
    println!("> ready");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !holds_within(INTERVAL, || over.load(Ordering::Relaxed)) {
                    request(&pool);
                }
            });
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
}

/// Fails while there is no primary.
fn request(pool: &Pool) {
    Context::new().run(|| {
        let mut conn = pool.get().expect("a handle is free");
        let _ = conn.distributed(try_who);
        let process = format!("process {}", std::process::id());
        let _ = crate::kit::postgres::try_write(&mut conn, &process);
    });
}

/// One process, which reaches the server that is to be promoted through a forwarder of its own.
struct Member {
    process: Child,
    told: BufReader<ChildStdout>,
    way: Forwarder,
}

impl Member {
    fn start(cluster: &Cluster) -> Self {
        let way = Forwarder::new(&[cluster.port(1)]);
        let urls = [cluster.url(0), cluster.url_through(1, &way), cluster.url(2)];
        let test = "postgres::fleet::a_fleet_asks_little_and_dials_a_new_primary_gently";
        let mut process = Command::new(std::env::current_exe().expect("known"))
            .args([test, "--exact", "--nocapture"])
            .env(CHILD, urls.join(" "))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let told = BufReader::new(process.stdout.take().expect("it is a pipe"));
        Self { process, told, way }
    }

    fn wait(&mut self) {
        let ready =
            |line: std::io::Result<String>| line.is_ok_and(|line| line.ends_with("> ready"));
        assert!(self.told.by_ref().lines().any(ready), "it ended too soon");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // the end of its input is the end of its work
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// A cluster that takes hundreds of connections, and a fleet that is at work on it.
fn fleet() -> (Vec<Member>, Cluster) {
    let cluster = cluster(2);
    // no standby may take less than its primary
    for node in [1, 2, 0] {
        cluster.sql(node, "ALTER SYSTEM SET max_connections = 1000");
        cluster.kill(node);
        cluster.restart(node);
    }
    let mut members: Vec<_> = (0..size()).map(|_| Member::start(&cluster)).collect();
    members.iter_mut().for_each(Member::wait);
    (members, cluster)
}

/// The processes of a server that answer probes.
fn probed(cluster: &Cluster, node: usize) -> Vec<String> {
    let named = "SELECT pid FROM pg_stat_activity WHERE application_name = 'diesel-routed probe' ORDER BY pid";
    let pids = cluster.sql(node, named);
    pids.lines().map(str::to_owned).collect()
}

/// How long these processes have run on a processor.
fn worked(pids: &[String]) -> Duration {
    let of = |pid: &String| {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
        let nanoseconds = text.split(' ').next().expect("a number");
        Duration::from_nanos(nanoseconds.parse().expect("a number"))
    };
    pids.iter().map(of).sum()
}

/// How often a server was probed so far, of what it has written down.
fn asked(cluster: &Cluster, node: usize) -> usize {
    let log = fs::read(cluster.dir().join(format!("n{node}/log"))).expect("it has a log");
    let log = String::from_utf8_lossy(&log);
    log.matches("AS standing").count()
}

fn during<T>(f: impl Fn() -> T) -> (T, T, f64) {
    let (start, before) = (Instant::now(), f());
    holds_within(WINDOW, || false);
    (before, f(), start.elapsed().as_secs_f64())
}

fn log_statements(cluster: &Cluster, which: &str) {
    for node in 0..3 {
        set(cluster, node, &format!("log_statement = '{which}'"));
    }
}

/// One connection and one question a second from each process, at half a percent of a processor
/// for fifty.
fn check_probes(cluster: &Cluster) {
    let nodes = [0, 1, 2];
    for node in nodes {
        wait_until("one probe connection from each process", SOON, || {
            probed(cluster, node).len() == size()
        });
    }
    let due = size() as f64 / INTERVAL.as_secs_f64();
    log_statements(cluster, "all");
    let rates = || {
        let (first, last, seconds) = during(|| nodes.map(|node| asked(cluster, node)));
        nodes.map(|node| (last[node] - first[node]) as f64 / seconds)
    };
    let mut rate = rates();
    // a start is an event, after which nodes are probed more often for a while
    wait_until("no more than one question a second", 4 * SOON, || {
        println!("{rate:.1?} probes a second");
        let few = rate.iter().all(|rate| *rate < 1.2 * due);
        rate = rates();
        few
    });
    log_statements(cluster, "none");
    let pids = nodes.map(|node| probed(cluster, node));
    let (before, after, seconds) = during(|| pids.each_ref().map(|pids| worked(pids)));
    assert_eq!(nodes.map(|node| probed(cluster, node)), pids, "none is new");
    for node in nodes {
        let share = (after[node] - before[node]).as_secs_f64() / seconds;
        let (percent, each) = (share * 100.0, share / rate[node] * 1e6);
        println!(
            "n{node}: {} connections, {:.1} probes a second, {percent:.3} % of a processor, \
             {each:.0} us each",
            pids[node].len(),
            rate[node]
        );
        assert!(rate[node] > 0.5 * due, "n{node}: {rate:?} a second");
        // the budget is 100 us, which holds where the server is warm: once a second, on a busy machine,
        // an empty statement alone takes longer
        assert!(each < 2000.0, "n{node}: {each} us each");
    }
}

/// Promotes n1, which takes its time with each connection.
fn check_promotion(cluster: &Cluster, members: &[Member]) {
    set(cluster, 1, "pre_auth_delay = 1");
    cluster.wait_replicated();
    let last = cluster.sql(1, "SELECT max(id) FROM note");
    cluster.kill(0);
    cluster.promote(1);
    let writers = format!("SELECT count(DISTINCT body) FROM note WHERE id > {last}");
    wait_until("each process writes to the new primary", SOON, || {
        cluster.sql(1, &writers) == size().to_string()
    });
    let most: Vec<_> = members.iter().map(|m| m.way.most_unanswered()).collect();
    println!("dials under way at the new primary, by process: {most:?}");
    assert!(most.iter().all(|most| (1..=2).contains(most)), "{most:?}");
}

#[test]
fn a_fleet_asks_little_and_dials_a_new_primary_gently() {
    if let Ok(urls) = std::env::var(CHILD) {
        return serve(&urls);
    }
    let (members, cluster) = fleet();
    check_probes(&cluster);
    check_promotion(&cluster, &members);
}

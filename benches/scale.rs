//! Reads per second with 1, 2 and 4 replicas that can do so many at a time.
//!
//! `cargo bench --bench scale --all-features` prints the table of docs/performance.md; `CHARTS=1`
//! draws docs/scale.svg, too. What is measured is the router: whether it keeps every replica busy.
//! A machine with two cores has no four replicas' worth of work to give, so a read here is one that
//! sleeps in its server, and a replica admits no more of them than its pool has connections.

#[path = "common/mod.rs"]
mod common;
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use common::svg::Svg;
use common::{Rounds, Table, machine, throughput};
use diesel::prelude::*;
use diesel::sql_query;
use diesel_routed::{ClusterConfig, NodeConfig, Role, RoutedConnection, RoutedConnectionManager};
use support::Cluster;

const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_secs(2);

/// How many reads a replica admits at a time, and what each takes there.
const ADMITTED: u32 = 4;
const READ: &str = "SELECT pg_sleep(0.02)";
const SECONDS: f64 = 0.02;

/// As many as all of four replicas admit, and as many again that wait.
const WORKERS: usize = 32;

const SIZES: [(&str, usize); 3] = [("1", 1), ("2", 2), ("4", 4)];

type Handle = RoutedConnection<PgConnection>;

fn main() {
    println!("{}", machine::line());
    let cluster = Cluster::postgres(4);
    println!("{}", cluster.sql(0, "SELECT version()"));
    let mut teams = SIZES.map(|(_, replicas)| team(&cluster, replicas));
    let [one, two, four] = &mut teams;
    let rounds = Rounds::measure(
        ROUNDS,
        &mut [
            ("1", &mut || throughput(one, TIME, read)),
            ("2", &mut || throughput(two, TIME, read)),
            ("4", &mut || throughput(four, TIME, read)),
        ],
    );

    let mut table = Table::new([
        "replicas",
        "reads/s",
        "per replica",
        "beside 1 replica",
        "beside linear",
        "of what the replicas admit",
    ]);
    for (name, replicas) in SIZES {
        let (rate, replicas) = (rounds.median(name), replicas as f64);
        let beside = rounds.ratio(name, "1");
        table.row([
            name.to_owned(),
            format!("{rate:.0}"),
            format!("{:.0}", rate / replicas),
            format!("{beside:.2}"),
            format!("{:.3}", beside / replicas),
            format!("{:.3}", rate / (replicas * admitted())),
        ]);
    }
    println!("\n{table}");
    if let Some(path) = common::chart("scale.svg") {
        draw(SIZES.map(|(name, replicas)| (replicas as f64, rounds.median(name)))).save(&path);
    }
}

/// What a replica can do at most, in reads per second.
fn admitted() -> f64 {
    f64::from(ADMITTED) / SECONDS
}

/// Handles of a cluster with so many replicas.
fn team(cluster: &Cluster, replicas: usize) -> Vec<Handle> {
    let mut config = ClusterConfig::new(cluster.url(0)).pool_size(WORKERS as u32);
    for node in 1..=replicas {
        config = config.replica(NodeConfig::new(cluster.url(node)).pool_size(ADMITTED));
    }
    let manager = RoutedConnectionManager::connect(config).expect("a node answers");
    let routed = manager.cluster().clone();
    (0..WORKERS).map(|_| routed.connection()).collect()
}

fn read(conn: &mut Handle) {
    let rows = conn.distributed(|conn| sql_query(READ).execute(conn));
    rows.expect("a replica answers");
    let route = conn.last_route().expect("it went somewhere");
    assert_eq!(route.role, Role::Replica, "{route:?}");
}

fn draw(points: [(f64, f64); 3]) -> Svg {
    const LEFT: f64 = 80.0;
    const BOTTOM: f64 = 330.0;
    let top = admitted() * 4.0;
    let place =
        |(replicas, rate): (f64, f64)| (LEFT + replicas * 140.0, BOTTOM - rate / top * 255.0);
    let mut svg = Svg::new(
        680,
        390,
        "Reads per second beside the number of replicas",
        "The throughput grows in a straight line with the number of replicas, close to what they admit.",
    );
    for step in 0..=4 {
        let rate = f64::from(step) * admitted();
        let (_, y) = place((0.0, rate));
        svg.line(
            if step == 0 { "axis" } else { "grid" },
            &[(LEFT, y), (LEFT + 580.0, y)],
        );
        svg.text("note end", (LEFT - 8.0, y + 4.0), format!("{rate:.0}"));
    }
    for replicas in [1.0, 2.0, 3.0, 4.0] {
        let (x, y) = place((replicas, 0.0));
        svg.text("note middle", (x, y + 20.0), replicas);
    }
    svg.text("middle", (LEFT + 290.0, BOTTOM + 44.0), "replicas");
    svg.upright("middle", (24.0, BOTTOM - 128.0), "reads per second");
    let most = |replicas: f64| place((replicas, replicas * admitted()));
    svg.line("ideal", &[most(0.0), most(4.0)]);
    let (x, y) = most(3.0);
    svg.text("note end", (x - 12.0, y - 6.0), "what the replicas admit");
    svg.line("line", &points.map(place));
    for (replicas, rate) in points {
        let (x, y) = place((replicas, rate));
        svg.dot("ours", (x, y));
        svg.text("strong middle", (x, y + 24.0), format!("{rate:.0}"));
    }
    svg
}

//! The same program beside proxies: direct, through PgBouncer, through pgpool-II, and routed.
//!
//! `cargo bench --bench peers --all-features` prints the table of docs/performance.md. It needs the
//! Debian packages pgbouncer and pgpool2, which `scripts/peers.sh` installs without starting them: the
//! bench starts its own, in front of its own servers, a PostgreSQL primary and two standbys.
//!
//! The program is as good to the proxies as it can be: each thread keeps one connection and reads one
//! row after the other by its key, with a statement that is prepared once. All of them read from the
//! standbys: `direct` has half of its threads on each, as have PgBouncer, which splits nothing, and
//! pgpool-II, which gives a session one of them.

#[path = "../common/mod.rs"]
mod common;
mod proxy;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use common::account::{self, Ids, account as table};
use common::{Rounds, Table, machine, throughput};
use diesel::connection::LoadConnection;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel_routed::{ClusterConfig, RoutedConnection, RoutedConnectionManager};
use support::Cluster;

const ROUNDS: usize = 15;
const TIME: Duration = Duration::from_millis(400);

const DIRECT: &str = "direct";
const PGBOUNCER: &str = "PgBouncer";
const PGPOOL: &str = "pgpool-II";
const ROUTED: &str = "routed";

/// A thread with its connection.
struct Worker<C> {
    conn: C,
    ids: Ids,
}

impl<C> Worker<C> {
    fn team(size: i32, connect: impl Fn(i32) -> C) -> Vec<Self> {
        let worker = |number| Worker {
            conn: connect(number),
            ids: Ids::new(number),
        };
        (0..size).map(worker).collect()
    }
}

fn main() {
    println!("{}", machine::line());
    let cluster = Cluster::postgres(2);
    println!("{}", cluster.sql(0, "SELECT version()"));
    cluster
        .try_app_sql(0, account::POSTGRES)
        .expect("the table is new");
    cluster.wait_replicated();
    let pgbouncer = proxy::pgbouncer(&cluster);
    let pgpool = proxy::pgpool(&cluster);
    let config = ClusterConfig::new(cluster.url(0))
        .replica(cluster.url(1))
        .replica(cluster.url(2));
    let manager = RoutedConnectionManager::<PgConnection>::connect(config);
    let routed = manager.expect("a node answers").cluster().clone();

    let mut table = Table::new([
        "threads",
        DIRECT,
        PGBOUNCER,
        PGPOOL,
        ROUTED,
        "PgBouncer / direct",
        "pgpool-II / direct",
        "routed / direct",
        "routed / pgpool-II",
    ]);
    for threads in [1, 4] {
        let direct = |number| establish(&cluster.url(1 + number as usize % 2));
        let bounced = |number| establish(&pgbouncer.url(&format!("n{}", 1 + number % 2)));
        let pooled = |_| establish(&pgpool.url("app"));
        let mut direct = Worker::team(threads, direct);
        let mut bounced = Worker::team(threads, bounced);
        let mut pooled = Worker::team(threads, pooled);
        let mut handles = Worker::team(threads, |_| routed.connection());
        let rounds = Rounds::measure(
            ROUNDS,
            &mut [
                (DIRECT, &mut || throughput(&mut direct, TIME, plain)),
                (PGBOUNCER, &mut || throughput(&mut bounced, TIME, plain)),
                (PGPOOL, &mut || throughput(&mut pooled, TIME, plain)),
                (ROUTED, &mut || throughput(&mut handles, TIME, distributed)),
            ],
        );
        table.row(row(threads, &rounds));
    }
    println!("\nreads per second\n\n{table}");
}

fn establish(url: &str) -> PgConnection {
    PgConnection::establish(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn plain(worker: &mut Worker<PgConnection>) {
    let id = worker.ids.next();
    read(&mut worker.conn, id);
}

fn distributed(worker: &mut Worker<RoutedConnection<PgConnection>>) {
    let id = worker.ids.next();
    worker.conn.distributed(|conn| read(conn, id));
}

fn read<C: Connection<Backend = Pg> + LoadConnection>(conn: &mut C, id: Option<i32>) {
    let id = id.expect("ids do not end");
    let row = table::table.find(id).first::<(i32, String, i64)>(conn);
    assert_eq!(row.expect("the server answers").0, id);
}

fn row(threads: i32, rounds: &Rounds) -> [String; 9] {
    let rate = |name| format!("{:.0}", rounds.median(name));
    let ratio = |name, base| format!("{:.2}", rounds.ratio(name, base));
    [
        threads.to_string(),
        rate(DIRECT),
        rate(PGBOUNCER),
        rate(PGPOOL),
        rate(ROUTED),
        ratio(PGBOUNCER, DIRECT),
        ratio(PGPOOL, DIRECT),
        ratio(ROUTED, DIRECT),
        ratio(ROUTED, PGPOOL),
    ]
}

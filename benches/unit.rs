//! A unit of work: get a connection, run one statement, give the connection back.
//!
//! `cargo bench --bench unit --all-features` prints the tables of docs/performance.md. A pool of Diesel
//! with its defaults, which pings at each checkout; the same without the ping; and routed pools, whose
//! reads go to one replica or to two. All are on this machine, over TCP, and share its cores: so there
//! are also pools without ping for one replica, and for two which are taken in turn, to show what it
//! costs here that a replica answers, and that two servers answer where one did.

#[path = "common/mod.rs"]
mod common;
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use common::account::{self, Ids};
use common::{Rounds, Table, machine, throughput};
use support::Cluster;

const ROUNDS: usize = 15;
const TIME: Duration = Duration::from_millis(250);

const PLAIN: &str = "default pool";
const UNTESTED: &str = "without ping";
const REPLICA: &str = "one replica, without ping";
const IN_TURN: &str = "two replicas in turn, without ping";
const ROUTED: &str = "routed, 1 replica";
const ROUTED_TO_TWO: &str = "routed, 2 replicas";

/// As large as there are threads at most: also a single replica lends to all of them.
const POOL_SIZE: u32 = 12;

#[derive(Debug, Clone, Copy)]
enum Work {
    Read,
    Write,
    /// Nine reads to a write.
    Mixed,
}

/// One thread, which reads all rows in turn and writes one of its own.
struct Worker {
    row: i32,
    ids: Ids,
    done: u32,
}

impl Worker {
    fn team(size: i32) -> Vec<Worker> {
        let worker = |number| Worker {
            row: number + 1,
            ids: Ids::new(number),
            done: 0,
        };
        (0..size).map(worker).collect()
    }

    /// The row to read, or `None` to write.
    fn next(&mut self, work: Work) -> Option<i32> {
        self.done += 1;
        match work {
            Work::Write => None,
            Work::Mixed if self.done % 10 == 0 => None,
            Work::Read | Work::Mixed => self.ids.next(),
        }
    }
}

/// The pools of one database, and how each does a unit of work.
macro_rules! pools {
    ($name:ident, $Conn:ty) => {
        mod $name {
            use diesel::connection::LoadConnection;
            use diesel::prelude::*;
            use diesel::r2d2::{ConnectionManager, Pool};
            use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

            use super::account::account;
            use super::support::Cluster;
            use super::{POOL_SIZE, Work, Worker};

            type Plain = Pool<ConnectionManager<$Conn>>;

            type Backend = <$Conn as Connection>::Backend;

            pub struct Pools {
                pub plain: Plain,
                pub untested: Plain,
                pub replicas: [Plain; 2],
                pub routed: RoutedPool<$Conn>,
                pub routed_to_two: RoutedPool<$Conn>,
            }

            impl Pools {
                pub fn new(cluster: &Cluster) -> Self {
                    let manager = |node| ConnectionManager::new(cluster.url(node));
                    let untested = |node| {
                        let pool = Pool::builder().test_on_check_out(false);
                        pool.build(manager(node)).expect("the server answers")
                    };
                    Pools {
                        plain: Pool::new(manager(0)).expect("the server answers"),
                        untested: untested(0),
                        replicas: [untested(1), untested(2)],
                        routed: routed_pool(cluster, &[1]),
                        routed_to_two: routed_pool(cluster, &[1, 2]),
                    }
                }
            }

            fn routed_pool(cluster: &Cluster, replicas: &[usize]) -> RoutedPool<$Conn> {
                let primary = ClusterConfig::new(cluster.url(0)).pool_size(POOL_SIZE);
                let config = replicas
                    .iter()
                    .fold(primary, |config, node| config.replica(cluster.url(*node)));
                let manager = RoutedConnectionManager::connect(config).expect("a node answers");
                RoutedPool::new(manager).expect("handles dial nothing")
            }

            /// Reads on so many replicas, in turn.
            pub fn split(pools: &Pools, replicas: usize, worker: &mut Worker, work: Work) {
                match worker.next(work) {
                    Some(id) => {
                        let replica = &pools.replicas[worker.done as usize % replicas];
                        read(&mut *replica.get().expect("a connection is free"), id);
                    }
                    None => {
                        let mut conn = pools.untested.get().expect("a connection is free");
                        write(&mut *conn, worker.row);
                    }
                }
            }

            pub fn plain(pool: &Plain, worker: &mut Worker, work: Work) {
                let mut conn = pool.get().expect("a connection is free");
                match worker.next(work) {
                    Some(id) => read(&mut *conn, id),
                    None => write(&mut *conn, worker.row),
                }
            }

            pub fn routed(pool: &RoutedPool<$Conn>, worker: &mut Worker, work: Work) {
                let mut conn = pool.get().expect("a handle is free");
                match worker.next(work) {
                    Some(id) => conn.distributed(|conn| read(conn, id)),
                    None => write(&mut *conn, worker.row),
                }
            }

            fn read<C>(conn: &mut C, id: i32)
            where
                C: Connection<Backend = Backend> + LoadConnection,
            {
                let row = account::table.find(id).first::<(i32, String, i64)>(conn);
                assert_eq!(row.expect("the server answers").0, id);
            }

            fn write<C: Connection<Backend = Backend>>(conn: &mut C, id: i32) {
                let more = account::balance.eq(account::balance + 1);
                let rows = diesel::update(account::table.find(id))
                    .set(more)
                    .execute(conn);
                assert_eq!(rows, Ok(1));
            }
        }
    };
}

pools!(postgres, diesel::PgConnection);
pools!(mariadb, diesel::MysqlConnection);

macro_rules! rows {
    ($database:ident, $cluster:expr, $rates:expr, $times:expr) => {{
        let pools = $database::Pools::new($cluster);
        for work in [Work::Read, Work::Write, Work::Mixed] {
            for threads in [1, 8] {
                let pool = |unit: fn(&$database::Pools, &mut Worker, Work)| {
                    let unit = |worker: &mut Worker| unit(&pools, worker, work);
                    throughput(&mut Worker::team(threads), TIME, unit)
                };
                let rounds = Rounds::measure(
                    ROUNDS,
                    &mut [
                        (PLAIN, &mut || {
                            pool(|pools, w, work| $database::plain(&pools.plain, w, work))
                        }),
                        (UNTESTED, &mut || {
                            pool(|pools, w, work| $database::plain(&pools.untested, w, work))
                        }),
                        (REPLICA, &mut || {
                            pool(|pools, w, work| $database::split(pools, 1, w, work))
                        }),
                        (IN_TURN, &mut || {
                            pool(|pools, w, work| $database::split(pools, 2, w, work))
                        }),
                        (ROUTED, &mut || {
                            pool(|pools, w, work| $database::routed(&pools.routed, w, work))
                        }),
                        (ROUTED_TO_TWO, &mut || {
                            pool(|pools, w, work| $database::routed(&pools.routed_to_two, w, work))
                        }),
                    ],
                );
                let unit = format!("{}, {work:?}, {threads}", stringify!($database)).to_lowercase();
                $rates.row(rates_of(&unit, &rounds));
                $times.row(times_of(&unit, &rounds));
            }
        }
    }};
}

fn main() {
    println!("{}", machine::line());
    const UNIT: &str = "database, work, threads";
    let mut rates = Table::new([&[UNIT], &CONTENDERS[..]].concat());
    let mut times = Table::new(vec![
        UNIT,
        "1 replica / default pool",
        "2 replicas / default pool",
        "1 replica / the same, without ping",
        "2 replicas / the same in turn, without ping",
    ]);
    let postgres = start(Cluster::postgres(2), account::POSTGRES);
    rows!(postgres, &postgres, rates, times);
    drop(postgres);
    let mariadb = start(Cluster::mariadb(2), account::MARIADB);
    rows!(mariadb, &mariadb, rates, times);
    println!("\nunits a second:\n\n{rates}\ntime of a unit, routed / plain:\n\n{times}");
}

fn start(cluster: Cluster, fill: &str) -> Cluster {
    println!("{}", cluster.sql(0, "SELECT version()"));
    cluster.try_app_sql(0, fill).expect("the table is new");
    cluster.wait_replicated();
    cluster
}

const CONTENDERS: [&str; 6] = [PLAIN, UNTESTED, REPLICA, IN_TURN, ROUTED, ROUTED_TO_TWO];

fn rates_of(unit: &str, rounds: &Rounds) -> Vec<String> {
    let rate = |name: &&str| format!("{:.0}", rounds.median(name));
    let rates = CONTENDERS.iter().map(rate);
    std::iter::once(unit.to_owned()).chain(rates).collect()
}

/// The time of a unit is the inverse of its rate: so the ratio of times is the inverse one.
fn times_of(unit: &str, rounds: &Rounds) -> Vec<String> {
    let ratio = |(plain, routed)| format!("{:.2}", rounds.ratio(plain, routed));
    let pairs = [
        (PLAIN, ROUTED),
        (PLAIN, ROUTED_TO_TWO),
        (REPLICA, ROUTED),
        (IN_TURN, ROUTED_TO_TWO),
    ];
    let times = pairs.into_iter().map(ratio);
    std::iter::once(unit.to_owned()).chain(times).collect()
}

//! A unit of work: get a connection, run one statement, give the connection back.
//!
//! `cargo bench --bench unit --all-features` prints the table of docs/performance.md. A pool of Diesel
//! with its defaults, which pings at each checkout; the same without the ping; and a routed pool, whose
//! reads go to a replica. All are on this machine, over TCP.

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
const ROUTED: &str = "routed";

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

/// The three pools of one database, and how each does a unit of work.
macro_rules! pools {
    ($name:ident, $Conn:ty) => {
        mod $name {
            use diesel::connection::LoadConnection;
            use diesel::prelude::*;
            use diesel::r2d2::{ConnectionManager, Pool};
            use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

            use super::account::account;
            use super::support::Cluster;
            use super::{Work, Worker};

            type Backend = <$Conn as Connection>::Backend;

            pub struct Pools {
                pub plain: Pool<ConnectionManager<$Conn>>,
                pub untested: Pool<ConnectionManager<$Conn>>,
                pub routed: RoutedPool<$Conn>,
            }

            impl Pools {
                pub fn new(cluster: &Cluster) -> Self {
                    let manager = || ConnectionManager::new(cluster.url(0));
                    let untested = Pool::builder().test_on_check_out(false);
                    let config = ClusterConfig::new(cluster.url(0))
                        .replica(cluster.url(1))
                        .replica(cluster.url(2));
                    let routed = RoutedConnectionManager::connect(config).expect("a node answers");
                    Pools {
                        plain: Pool::new(manager()).expect("the server answers"),
                        untested: untested.build(manager()).expect("the server answers"),
                        routed: RoutedPool::new(routed).expect("handles dial nothing"),
                    }
                }
            }

            pub fn plain(pool: &Pool<ConnectionManager<$Conn>>, worker: &mut Worker, work: Work) {
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
    ($database:ident, $cluster:expr, $table:expr) => {{
        let pools = $database::Pools::new($cluster);
        for work in [Work::Read, Work::Write, Work::Mixed] {
            for threads in [1, 8] {
                let rate = |unit: &(dyn Fn(&mut Worker) + Sync)| {
                    throughput(&mut Worker::team(threads), TIME, unit)
                };
                let rounds = Rounds::measure(
                    ROUNDS,
                    &mut [
                        (PLAIN, &mut || {
                            rate(&|w| $database::plain(&pools.plain, w, work))
                        }),
                        (UNTESTED, &mut || {
                            rate(&|w| $database::plain(&pools.untested, w, work))
                        }),
                        (ROUTED, &mut || {
                            rate(&|w| $database::routed(&pools.routed, w, work))
                        }),
                    ],
                );
                let unit = format!("{}, {work:?}, {threads}", stringify!($database)).to_lowercase();
                $table.row(row(&unit, &rounds));
            }
        }
    }};
}

fn main() {
    println!("{}", machine::line());
    let mut table = Table::new([
        "database, work, threads",
        "default pool, units/s",
        "without ping",
        "routed",
        "time: routed / default",
        "routed / without ping",
    ]);
    let postgres = start(Cluster::postgres(2), account::POSTGRES);
    rows!(postgres, &postgres, table);
    drop(postgres);
    let mariadb = start(Cluster::mariadb(2), account::MARIADB);
    rows!(mariadb, &mariadb, table);
    println!("\n{table}");
}

fn start(cluster: Cluster, fill: &str) -> Cluster {
    println!("{}", cluster.sql(0, "SELECT version()"));
    cluster.try_app_sql(0, fill).expect("the table is new");
    cluster.wait_replicated();
    cluster
}

/// The time of a unit is the inverse of its rate: so the ratio of times is the inverse one.
fn row(unit: &str, rounds: &Rounds) -> [String; 6] {
    let rate = |name| format!("{:.0}", rounds.median(name));
    [
        unit.to_owned(),
        rate(PLAIN),
        rate(UNTESTED),
        rate(ROUTED),
        format!("{:.2}", rounds.ratio(PLAIN, ROUTED)),
        format!("{:.2}", rounds.ratio(UNTESTED, ROUTED)),
    ]
}

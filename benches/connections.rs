//! How many connections are open when workers are busy nine tenths of the time.
//!
//! `cargo bench --bench connections --all-features` prints the table of docs/performance.md. Counted by
//! the servers themselves, the most at any time, for a routed pool and for one pool of Diesel's for
//! each node. Makara, a Ruby library, is computed: each of its workers has a connection of its own to
//! every node.

#[path = "common/mod.rs"]
mod common;
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{Table, account, machine};
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::sql_query;
use diesel::sql_types::{BigInt, Integer};
use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};
use support::Cluster;

const TIME: Duration = Duration::from_secs(4);

/// A worker is busy for nine parts of ten; one of its ten requests writes.
const READ: &str = "SELECT pg_sleep(0.018)";
const WRITE: &str = "
    UPDATE account SET balance = balance + 1 WHERE id = $1 AND pg_sleep(0.018) IS NOT NULL";
const IDLE: Duration = Duration::from_millis(2);

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

fn main() {
    println!("{}", machine::line());
    let cluster = Cluster::postgres(4);
    println!("{}", cluster.sql(0, "SELECT version()"));
    cluster
        .try_app_sql(0, account::POSTGRES)
        .expect("the table is new");
    cluster.wait_replicated();

    let mut table = Table::new([
        "workers, replicas",
        "routed: primary",
        "each replica",
        "all",
        "a pool for each node: each node",
        "all",
        "Makara (computed): each node",
        "all",
    ]);
    for (workers, replicas) in [(16, 2), (16, 4), (64, 2), (64, 4)] {
        let routed = routed(&cluster, workers, replicas);
        let pools = pools(&cluster, workers, replicas);
        let nodes = replicas + 1;
        table.row([
            format!("{workers}, {replicas}"),
            routed[0].to_string(),
            range(&routed[1..]),
            routed.iter().sum::<i64>().to_string(),
            range(&pools),
            pools.iter().sum::<i64>().to_string(),
            workers.to_string(),
            (workers * nodes).to_string(),
        ]);
    }
    println!("\n{table}");
}

/// The connections to the primary and to each replica, of a routed pool.
fn routed(cluster: &Cluster, workers: usize, replicas: usize) -> Vec<i64> {
    let size = u32::try_from(workers).expect("they are few");
    let mut config = ClusterConfig::new(cluster.url(0)).pool_size(size);
    for node in 1..=replicas {
        config = config.replica(cluster.url(node));
    }
    let manager = RoutedConnectionManager::<PgConnection>::new(config);
    let manager = manager.expect("the settings are right");
    let pool = RoutedPool::builder().max_size(size).build(manager);
    let pool = pool.expect("handles dial nothing");
    busy(cluster, workers, replicas, |request| {
        let mut conn = pool.get().expect("a handle is free");
        match request {
            Request::Write(id) => write(&mut *conn, id),
            Request::Read(_) => conn.distributed(read),
        }
    })
}

/// The same of one pool for each node, as large as there are workers, since all may meet.
fn pools(cluster: &Cluster, workers: usize, replicas: usize) -> Vec<i64> {
    let size = u32::try_from(workers).expect("they are few");
    let pool = |node| {
        let manager = ConnectionManager::<PgConnection>::new(cluster.url(node));
        let pool = Pool::builder().max_size(size).build(manager);
        pool.expect("the server answers")
    };
    let pools: Vec<_> = (0..=replicas).map(pool).collect();
    busy(cluster, workers, replicas, |request| match request {
        Request::Write(id) => write(&mut *pools[0].get().expect("it answers"), id),
        Request::Read(number) => {
            let replica = 1 + number % replicas;
            read(&mut *pools[replica].get().expect("it answers"));
        }
    })
}

enum Request {
    /// Of this row.
    Write(i32),
    /// The read of that number.
    Read(usize),
}

/// Has the workers busy for a while: the most connections that each node had meanwhile.
fn busy(
    cluster: &Cluster,
    workers: usize,
    replicas: usize,
    serve: impl Fn(Request) + Sync,
) -> Vec<i64> {
    let (end, serve) = (&AtomicBool::new(false), &serve);
    let work = move |worker: usize| {
        for number in 0.. {
            if end.load(Ordering::Relaxed) {
                break;
            }
            serve(match (worker + number) % 10 {
                0 => Request::Write(worker as i32 + 1),
                _ => Request::Read(worker + number),
            });
            thread::sleep(IDLE);
        }
    };
    thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || work(worker));
        }
        let most = count(cluster, replicas);
        end.store(true, Ordering::Relaxed);
        most
    })
}

fn read<C: Connection<Backend = diesel::pg::Pg>>(conn: &mut C) {
    sql_query(READ).execute(conn).expect("a replica answers");
}

fn write<C: Connection<Backend = diesel::pg::Pg>>(conn: &mut C, id: i32) {
    let write = sql_query(WRITE).bind::<Integer, _>(id);
    assert_eq!(write.execute(conn), Ok(1));
}

/// The most connections of the application that each node had while this looked.
fn count(cluster: &Cluster, replicas: usize) -> Vec<i64> {
    let admin = |node| PgConnection::establish(&cluster.admin_url(node)).expect("it answers");
    let mut admins: Vec<_> = (0..=replicas).map(admin).collect();
    let mut most = vec![0; admins.len()];
    let began = Instant::now();
    while began.elapsed() < TIME {
        for (admin, most) in admins.iter_mut().zip(&mut most) {
            let count = "SELECT count(*) AS count FROM pg_stat_activity WHERE usename = 'app'";
            let count = sql_query(count).get_result::<Count>(admin);
            *most = count.expect("it answers").count.max(*most);
        }
        thread::sleep(Duration::from_millis(50));
    }
    most
}

fn range(counts: &[i64]) -> String {
    let least = counts.iter().min().expect("there is a node");
    let most = counts.iter().max().expect("there is a node");
    match least == most {
        true => most.to_string(),
        false => format!("{least} to {most}"),
    }
}

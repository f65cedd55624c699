//! What routing costs, in one process: each statement on a plain SQLite connection and on a routed
//! one, in turns.
//!
//! ```sh
//! cargo bench --bench overhead
//! ```

mod reads;
mod rounds;
mod statements;

use std::hint::black_box;
use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::sqlite::SqliteConnection;
use diesel_routed::{
    ClusterConfig, NodeConfig, RoutedConnection, RoutedConnectionManager, RoutedPool,
};

use self::reads::{CREATE, boxed, posts, typed};
use self::rounds::{Ratio, alone, compare};
use self::statements::{insert, raw, transaction};

type Routed = RoutedConnection<SqliteConnection>;

/// The database as it is: a file, and nothing that makes its statements slower than they have to be.
const SETUP: &str = "PRAGMA synchronous = off";

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("bench.sqlite");
    let mut bare = connect(&file);
    bare.batch_execute(CREATE).expect("the database is new");
    let pool = pool(&file);
    let mut routed = pool.get().expect("a handle is free");
    warm(&mut routed);

    println!(
        "one process, SQLite, a point read of a file in memory; medians of interleaved rounds\n"
    );
    println!("{:<44} {:>12} {:>12} {:>10}", "", "bare", "routed", "ratio");
    in_blocks(&mut bare, &mut routed);
    on_primary(&mut bare, &mut routed);
    drop(routed);
    with_checkouts(&file, &pool);
    alone_in_process(&pool);
}

fn connect(file: &Path) -> SqliteConnection {
    let mut conn = SqliteConnection::establish(&file.to_string_lossy()).expect("a file");
    conn.batch_execute(SETUP).expect("a right setting");
    conn
}

/// A primary and a replica, which are the same file.
fn pool(file: &Path) -> RoutedPool<SqliteConnection> {
    let node = |name| NodeConfig::new(file.to_string_lossy()).name(name);
    let config = ClusterConfig::new(node("primary")).replica(node("replica"));
    let manager = RoutedConnectionManager::<SqliteConnection>::new(config)
        .expect("a right configuration")
        .with_setup(|conn, _| conn.batch_execute(SETUP));
    RoutedPool::new(manager).expect("handles are made without I/O")
}

/// Both nodes have answered, and reads go to the replica.
fn warm(conn: &mut Routed) {
    conn.distributed(|conn| typed(conn, 1)).expect("a post");
    let route = conn.last_route().expect("one statement");
    assert_eq!(&*route.node, "replica", "blocks read there");
}

fn line(what: &str, ratio: &Ratio) {
    println!("{what:<44} {ratio}");
}

fn in_blocks(bare: &mut SqliteConnection, routed: &mut Routed) {
    routed.distributed(|routed| {
        let ratio = compare(|id| done(typed(bare, id)), |id| done(typed(routed, id)));
        line("typed read, in a block", &ratio);
        let ratio = compare(|id| done(boxed(bare, id)), |id| done(boxed(routed, id)));
        line("boxed read, in a block", &ratio);
        let ratio = compare(|id| done(raw(bare, id)), |id| done(raw(routed, id)));
        line("sql_query, in a block", &ratio);
    });
}

fn on_primary(bare: &mut SqliteConnection, routed: &mut Routed) {
    let ratio = compare(|id| done(typed(bare, id)), |id| done(typed(routed, id)));
    line("typed read, on the primary", &ratio);
    let ratio = compare(|id| done(insert(bare, id)), |id| done(insert(routed, id)));
    line("insert", &ratio);
    let ratio = compare(
        |id| done(transaction(bare, id)),
        |id| done(transaction(routed, id)),
    );
    line("transaction of one read", &ratio);
}

/// Beside Diesel's pool as it comes, and without its ping.
fn with_checkouts(file: &Path, routed: &RoutedPool<SqliteConnection>) {
    for (name, ping) in [("a default pool", true), ("a pool without ping", false)] {
        let manager = ConnectionManager::<SqliteConnection>::new(file.to_string_lossy());
        let bare = Pool::builder()
            .test_on_check_out(ping)
            .build(manager)
            .expect("connections to a file");
        let ratio = compare(
            |id| done(typed(&mut *get(&bare), id)),
            |id| done(get(routed).distributed(|conn| typed(conn, id))),
        );
        line(&format!("get, one typed read, give back: {name}"), &ratio);
    }
}

fn alone_in_process(pool: &RoutedPool<SqliteConnection>) {
    let handle = alone(|_| drop(black_box(get(pool))));
    println!("\n{:<44} {handle:>9.0} ns", "get and give back a handle");
    let mut conn = get(pool);
    let decide =
        |conn: &mut Routed, id| done(conn.explain(&posts::table.find(id).select(posts::title)));
    let empty = alone(|id| conn.distributed(|_| _ = black_box(id)));
    let first = alone(|id| conn.distributed(|conn| decide(conn, id)));
    let read = conn.distributed(|conn| {
        done(typed(conn, 1));
        alone(|id| decide(conn, id))
    });
    let later = alone(|id| conn.distributed(|conn| decide(conn, id)));
    for (what, time) in [
        ("decision in a block that has read", read),
        ("decision at the first read of a block", first - empty),
        ("the same in a later block", later - empty),
    ] {
        println!("{what:<44} {time:>9.0} ns");
    }
}

fn get<M: diesel::r2d2::ManageConnection>(pool: &Pool<M>) -> diesel::r2d2::PooledConnection<M> {
    pool.get().expect("one is free")
}

fn done<T>(result: QueryResult<T>) {
    black_box(result.expect("the statement is right"));
}

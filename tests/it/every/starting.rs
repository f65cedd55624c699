//! How a cluster comes to be: by a manager, and by `establish` as pools of plain connections do.

use std::fs;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, R2D2Connection};
use diesel_routed::{ClusterConfig, ConnectError, NodeConfig, RoutedConnectionManager};

use super::backend::*;
use super::pools::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// The cluster as a list of URLs.
fn urls(db: &Db) -> String {
    let all: Vec<_> = (0..db.cluster.len())
        .map(|node| db.cluster.url(node))
        .collect();
    all.join(" ")
}

fn open(conn: &Conn) -> Vec<u32> {
    let status = conn.cluster().status();
    status.nodes.iter().map(|node| node.open).collect()
}

#[test]
fn a_start_needs_one_node_whichever() {
    let connect = |db: &Db| RoutedConnectionManager::<Plain>::connect(sized(&db.cluster, 1, 1));
    for down in [&[] as &[usize], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]] {
        let db = db(2);
        down.iter().for_each(|node| db.cluster.kill(*node));
        let manager = connect(&db);
        assert!(manager.is_ok(), "with {down:?} down: {manager:?}");
    }
    let db = db(2);
    (0..3).for_each(|node| db.cluster.kill(node));
    let error = connect(&db).expect_err("nobody answers");
    let text = error.to_string();
    match error {
        ConnectError::Unreachable(causes) => {
            let nodes: Vec<_> = causes.iter().map(|(node, _)| node.as_str()).collect();
            assert_eq!(nodes, ["n0", "n1", "n2"]);
            for (node, cause) in &causes {
                assert!(
                    !cause.is_empty() && text.contains(&format!("{node}: {cause}")),
                    "{text}"
                );
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_manager_and_its_pool_do_no_io_and_have_one_thread_a_node() {
    let db = db(2);
    (0..3).for_each(|node| db.cluster.kill(node));
    let before = threads();
    let (manager, time) = timed(|| manager(sized(&db.cluster, 2, 2)));
    assert_eq!(threads() - before, 3, "one for each node");
    let pool = Pool::builder().max_size(4).build(manager).unwrap();
    assert!(
        time < Duration::from_secs(1),
        "nobody was dialled, {time:?}"
    );
    for _ in 0..3 {
        assert_eq!(open(&pool.get().unwrap()), [0, 0, 0]);
    }
}

#[test]
fn establish_dials_the_primary_and_shares_one_cluster_between_equal_lists() {
    let db = db(1);
    let before = threads();
    let mut conns: Vec<Conn> = (0..30)
        .map(|_| Conn::establish(&urls(&db)).expect("more than the primary lends at once"))
        .collect();
    // its pool's and its prober's for each node, and the monitor's
    wait_until("the threads of one cluster", SOON, || {
        threads() == before + 5
    });
    assert_eq!(
        open(&conns[0]),
        [1, 0],
        "one connection was enough to see the primary"
    );
    assert_eq!(who(&mut conns[0]), "n0");
    assert_eq!(conns[1].distributed(who), "n1");
    assert_eq!(open(&conns[2]), [1, 1], "they share its connections");
    let other = Conn::establish(&db.cluster.url(0)).unwrap();
    assert_eq!(open(&other), [1], "another list is another cluster");
    drop((conns, other));
    wait_until("a cluster ends with its last handle", SOON, || {
        let again = Conn::establish(&urls(&db)).unwrap();
        open(&again) == [1, 0]
    });
}

#[test]
fn establish_fails_without_the_primary_and_names_it() {
    let db = db(1);
    db.cluster.kill(0);
    let error = Conn::establish(&urls(&db))
        .expect_err("the primary is down")
        .to_string();
    assert!(error.contains("the primary "), "{error}");
    db.cluster.restart(0);
    db.cluster.kill(1);
    let mut conn = Conn::establish(&urls(&db)).expect("replicas are not asked");
    assert_eq!(conn.distributed(who), "n0");
}

#[test]
fn a_pool_of_diesels_own_manager_works() {
    let db = db(1);
    let pool = diesel::r2d2::Pool::builder()
        .max_size(15)
        .connection_timeout(Duration::from_secs(20))
        .build(ConnectionManager::<Conn>::new(urls(&db)))
        .expect("fifteen handles on a primary of ten connections");
    for _ in 0..3 {
        let mut conn = pool.get().unwrap();
        write(&mut conn, "noted");
        assert_eq!(conn.distributed(who), "n0", "this handle has written");
        conn.batch_execute(SET).unwrap();
    }
    let mut conn = pool.get().unwrap();
    assert_eq!(conn.distributed(who), "n1", "the next has not");
    assert!(!is_set(&mut conn), "and sees no settings");
}

#[test]
fn a_pool_that_asks_at_the_next_checkout_gets_a_clean_handle() {
    let db = db(1);
    let mut conn = Conn::establish(&urls(&db)).unwrap();
    for _ in 0..3 {
        // as deadpool does: nothing at give-back, these two at checkout
        assert!(!conn.is_broken());
        conn.ping().unwrap();
        assert!(!is_set(&mut conn), "of the last request");
        assert_eq!(conn.distributed(who), "n1", "nor does its write stick");
        conn.batch_execute(SET).unwrap();
        write(&mut conn, "noted");
    }
    let broken = conn.begin_test_transaction();
    assert!(
        broken.is_ok() && !conn.is_broken(),
        "a test transaction is spared"
    );
    write(&mut conn, "only here");
    assert!(!conn.is_broken());
    assert_eq!(bodies(&mut conn).len(), 4, "also by the second question");
}

#[test]
fn nodes_are_named_by_their_place_unless_they_have_a_name() {
    let db = db(1);
    let config = ClusterConfig::new(db.cluster.url(0))
        .replica(NodeConfig::new(db.cluster.url(1)).name("eu"));
    let pool = pool_of(1, config);
    let nodes = pool.get().unwrap().cluster().status().nodes;
    assert!(
        !nodes[0].name.contains("app:") && !nodes[0].name.contains("://"),
        "{}",
        nodes[0].name
    );
    assert_eq!(nodes[1].name, "eu");
}

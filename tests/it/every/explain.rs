//! What the router says of statements, before and after they run.

use diesel::prelude::*;
use diesel::query_builder::AsQuery;
use diesel_routed::{ClusterStatus, Reason, Role};

use super::backend::*;
use super::reads::paused;

#[test]
fn explaining_runs_nothing_and_opens_nothing() {
    let db = paused();
    let mut conn: diesel::r2d2::PooledConnection<_> = db.pool.get().unwrap();
    let insert = diesel::insert_into(note::table).values(note::body.eq("explained"));
    let before = conn.cluster().status();
    let decision = conn.distributed(|conn| conn.explain(&insert)).unwrap();
    assert_eq!(
        (decision.target, decision.reason),
        (Role::Primary, Reason::Write)
    );
    // a bare table is no query yet
    let query = node_name::table.as_query();
    let read = conn.distributed(|conn| conn.explain(&query)).unwrap();
    assert_eq!(
        (read.target, read.reason),
        (Role::Replica, Reason::Distributed)
    );
    assert_eq!(conn.last_route(), None, "no statement ran");
    let after = conn.cluster().status();
    let counters = |status: &ClusterStatus| -> Vec<(u32, u64, u64)> {
        status
            .nodes
            .iter()
            .map(|node| (node.in_flight, node.reads, node.writes))
            .collect()
    };
    assert_eq!(counters(&after), counters(&before), "nothing was asked");
    assert_eq!(
        conn.distributed(who),
        "n1",
        "what was explained left no mark"
    );
    assert_eq!(bodies(&mut conn), ["old"], "the insert did not run");
}

#[test]
fn a_route_and_a_decision_can_be_compared_and_printed() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    assert_eq!(
        conn.last_route(),
        None,
        "before the first statement there is none"
    );
    conn.distributed(who);
    let route = conn.last_route().unwrap();
    assert_eq!(route, route.clone());
    let printed = format!("{route:?} {} {}", route.role, route.reason);
    assert!(
        printed.contains("n1") && printed.ends_with("replica distributed"),
        "{printed}"
    );
    who(&mut conn);
    assert_ne!(
        conn.last_route().unwrap(),
        route,
        "it is that of the last statement"
    );
    drop(conn);
    let conn = db.pool.get().unwrap();
    assert_eq!(
        conn.last_route(),
        None,
        "the next user of the handle starts anew"
    );
}

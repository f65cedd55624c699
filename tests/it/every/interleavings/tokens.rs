//! What goes from one request to the next, and what may happen in between.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::Context;

use super::super::backend::*;
use super::super::health::*;
use super::super::pools::*;
use super::{elsewhere, let_pass, read_with};
use crate::support::{holds_within, wait_until};

#[test]
fn n02_a_position_is_waited_for_longer_than_sticky_for() {
    let sticky_for = Duration::from_millis(300);
    let brief = |config: diesel_routed::ClusterConfig| config.max_lag(None).sticky_for(sticky_for);
    let db = paused_db_with(1, brief);
    let other = elsewhere(&db, brief);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("the replica lacks it");
    // as a job may lie in its queue
    let_pass(3 * sticky_for);
    assert_eq!(
        read_with(&other, &token),
        (vec!["own".to_owned()], "n0".to_owned())
    );
}

#[test]
fn n11_a_position_is_told_to_the_request_that_wrote_and_to_no_other() {
    let db = db_with(1, patient);
    let other = elsewhere(&db, patient);
    let (writer, bystander) = (Context::resume(""), Context::resume(""));
    let mut conn = db.pool.get().unwrap();
    writer.run(|| write(&mut conn, "own"));
    bystander.run(|| drop(conn));
    assert_eq!(bystander.token(), None, "it has written nothing");
    let token = writer.token().expect("it has");
    db.cluster.wait_replicated();
    let seen = read_with(&other, &token);
    // by time alone the primary would serve for minutes
    assert_eq!(
        seen,
        (vec!["own".to_owned()], "n1".to_owned()),
        "it knows the position"
    );
}

#[test]
fn n15_a_token_is_handed_on_as_long_as_a_replica_that_is_dead_may_lack_what_it_says() {
    let db = db_with(2, watched);
    let other = elsewhere(&db, watched);
    let known = Known::to(&db.pool);
    known.wait_for_all();
    // it will lack what is written from now on
    db.cluster.stop_receiving(2);
    db.cluster.kill(2);
    known.wait("n2", "down");
    let request = Context::resume("");
    request.run(|| write(&mut db.pool.get().unwrap(), "own"));
    db.cluster.wait_replicated();
    let is_gone = || request.token().is_none();
    assert!(
        !holds_within(5 * TICK, is_gone),
        "n2 is not known to have it"
    );
    let token = request.token().expect("as was just seen");
    db.cluster.restart(2);
    for _ in 0..50 {
        let (seen, from) = read_with(&other, &token);
        assert_eq!(seen, ["own"], "read from {from}");
    }
    let cluster = db.pool.get().unwrap().cluster().clone();
    cluster.drain("n2").expect("it is a node");
    wait_until("only those count that may be asked", SOON, is_gone);
}

/// Freezes the primary between the commit and the question for its position.
fn frozen_after_a_write(db: &Db, ask: impl FnOnce(diesel::r2d2::PooledConnection<Manager>)) {
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "own");
    db.cluster.freeze(0);
    let ((), time) = timed(|| ask(conn));
    db.cluster.thaw(0);
    assert!(time < Duration::from_secs(5), "it took {time:?}");
    assert_eq!(db.cluster.sql(0, "SELECT body FROM note"), "own", "once");
}

type Manager = diesel_routed::RoutedConnectionManager<Plain>;

#[test]
fn n20_a_position_that_cannot_be_read_is_no_error_and_holds_nobody_up() {
    type Way = fn(diesel::r2d2::PooledConnection<Manager>);
    let ways: [Way; 2] = [
        |mut conn| assert!(conn.token().is_some(), "time will tell"),
        drop,
    ];
    for way in ways {
        let db = paused_db(1);
        let other = elsewhere(&db, patient);
        let request = Context::resume("");
        request.run(|| frozen_after_a_write(&db, way));
        let token = request.token().expect("it has written");
        let seen = read_with(&other, &token);
        assert_eq!(seen, (vec!["own".to_owned()], "n0".to_owned()));
    }
}

#[test]
fn n27_a_token_that_is_made_inside_a_transaction_holds_by_time_alone() {
    let db = paused_db(1);
    let other = elsewhere(&db, patient);
    let request = Context::resume("");
    let mut conn = db.pool.get().unwrap();
    let early = request.run(|| {
        conn.transaction(|conn| {
            write(conn, "own");
            QueryResult::Ok(conn.token().expect("a write runs"))
        })
    });
    let early = early.expect("it commits");
    assert_eq!(
        read_with(&other, &early),
        (vec!["own".to_owned()], "n0".to_owned())
    );
    let late = request.run(|| conn.token()).expect("the replica lacks it");
    db.cluster.resume_replication(1);
    db.cluster.wait_replicated();
    assert_eq!(read_with(&other, &early).1, "n0", "it knows of no position");
    assert_eq!(
        read_with(&other, &late).1,
        "n1",
        "the end of the unit has told"
    );
}

/// A request that writes when its client has had its answer.
#[cfg(feature = "tower")]
#[test]
fn n26_a_write_that_comes_too_late_for_the_token_is_told() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use axum::{Router, body::Body, http::Request, routing::get};
    use diesel_routed::{Event, RoutedLayer};
    use tower_service::Service;

    let told = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&told);
    let db = db_with(1, |config| {
        config.observer(move |event: &Event<'_>| {
            let late = matches!(event, Event::TokenTooLate);
            counter.fetch_add(usize::from(late), Ordering::SeqCst);
        })
    });
    let context = Arc::<Mutex<Option<Context>>>::default();
    let (seen, pool) = (Arc::clone(&context), db.pool.clone());
    let handler = move || async move {
        write(&mut pool.get().unwrap(), "in time");
        *seen.lock().unwrap() = Context::current();
    };
    let app = Router::new()
        .route("/", get(handler))
        .layer(RoutedLayer::unsigned());
    let request = Request::get("/").body(Body::empty()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(app.clone().call(request)).unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 0, "it was in time");
    let context = context
        .lock()
        .unwrap()
        .take()
        .expect("a request has a context");
    context.run(|| write(&mut db.pool.get().unwrap(), "too late"));
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

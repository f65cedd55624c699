//! A response whose body writes when its head has long been sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel_routed::{
    ClusterConfig, Event, RoutedConnectionManager, RoutedLayer, RoutedPool, route,
};
use futures_util::stream::{self, StreamExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::support::Cluster;

type Pool = RoutedPool<PgConnection>;

/// Sends a line, and writes a note before it sends the next one.
fn export(pool: Pool) -> Body {
    let write = move || notes::add(&mut pool.get().expect("a handle is free"), "late");
    let second = async {
        let written = route::spawn_blocking(write).await.expect("no panic");
        Ok::<_, std::io::Error>(format!("then {:?}", written.is_ok()))
    };
    let first = stream::iter([Ok("first, ".to_owned())]);
    Body::from_stream(first.chain(stream::once(second)))
}

#[test]
fn a_stream_that_writes_late_is_told_of_and_has_no_token() {
    let cluster = Cluster::postgres(1);
    let told = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&told);
    let config = ClusterConfig::new(cluster.url(0))
        .replica(cluster.url(1))
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::TokenTooLate) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
    let pool = RoutedPool::new(RoutedConnectionManager::new(config).expect("it is right"));
    let pool = pool.expect("handles are made without I/O");
    let mut conn = pool.get().expect("a handle is free");
    conn.batch_execute(notes::TABLE)
        .expect("the primary takes it");
    drop(conn);

    let app = Router::new()
        .route("/", get(async move || export(pool)))
        .layer(RoutedLayer::unsigned());
    let runtime = Runtime::new().expect("threads can be started");
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)));
    let listener = listener.expect("some port is free");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async { axum::serve(listener, app).await });

    let answer = Client::default().get(&format!("http://{address}/"));
    assert_eq!(answer.body, "first, then true");
    assert_eq!(cluster.sql(0, "SELECT body FROM notes"), "late");
    assert_eq!(answer.cookies, [""; 0], "its head had been sent");
    assert_eq!(told.load(Ordering::SeqCst), 1, "somebody may miss it");
}

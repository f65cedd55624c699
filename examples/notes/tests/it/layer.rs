//! The layer in this process, over real HTTP: what no example does.

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

/// A pool, and how often a request has written too late.
fn pool(cluster: &Cluster) -> (Pool, Arc<AtomicUsize>) {
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
    (pool, told)
}

async fn write(pool: Pool) -> &'static str {
    let write = move || notes::add(&mut pool.get().expect("a handle is free"), "own");
    let written = route::spawn_blocking(write).await.expect("no panic");
    written.map_or("failed", |_| "written")
}

/// Sends a line, and writes before it sends the next one.
fn export(pool: Pool) -> Body {
    let first = stream::iter(["first, then "]);
    let all = first.chain(stream::once(write(pool)));
    Body::from_stream(all.map(Ok::<_, std::io::Error>))
}

/// Serves in the background, for as long as the runtime is there.
fn serve(runtime: &Runtime, app: Router) -> String {
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)));
    let listener = listener.expect("some port is free");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async { axum::serve(listener, app).await });
    format!("http://{address}")
}

#[test]
fn a_stream_that_writes_late_is_told_of_and_has_no_token() {
    let cluster = Cluster::postgres(1);
    let (pool, told) = pool(&cluster);
    let app = Router::new()
        .route("/", get(async move || export(pool)))
        .layer(RoutedLayer::unsigned());
    let runtime = Runtime::new().expect("threads can be started");
    let answer = Client::default().get(&serve(&runtime, app));
    assert_eq!(answer.body, "first, then written");
    assert_eq!(cluster.sql(0, "SELECT body FROM notes"), "own");
    assert_eq!(answer.cookies, [""; 0], "its head had been sent");
    assert_eq!(told.load(Ordering::SeqCst), 1, "somebody may miss it");
}

#[test]
fn cookies_are_as_configured_and_public_responses_have_none() {
    let cluster = Cluster::postgres(1);
    let (pool, _) = pool(&cluster);
    let layer = RoutedLayer::unsigned()
        .cookie_prefix("__Secure-shop")
        .cookie_path("/shop");
    let mut app = Router::new();
    for (path, control) in [("/shop/private", "private"), ("/shop/public", "public")] {
        let pool = pool.clone();
        let handler = async move || ([("cache-control", control)], write(pool).await);
        app = app.route(path, get(handler));
    }
    let runtime = Runtime::new().expect("threads can be started");
    let server = serve(&runtime, app.layer(layer));
    let answer = Client::default().get(&format!("{server}/shop/private"));
    let [cookie] = &answer.cookies[..] else {
        panic!("one cookie, not {:?}", answer.cookies);
    };
    assert!(cookie.starts_with("__Secure-shop_"), "{cookie}");
    let attributes = "; Path=/shop; HttpOnly; SameSite=Lax; Secure";
    assert!(cookie.ends_with(attributes), "{cookie}");
    let answer = Client::default().get(&format!("{server}/shop/public"));
    assert_eq!((answer.body.as_str(), answer.cookies), ("written", vec![]));
}

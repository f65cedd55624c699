//! Notes on axum: `cargo run -p notes --bin notes-axum`
//!
//! [`RoutedLayer`] gives each request a context and its client a token, so that whoever has added a
//! note sees it on the next page, from whichever process; others read from the replica.

#![forbid(unsafe_code)]

use axum::Router;
use axum::extract::Form;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use diesel::QueryResult;
use diesel_routed::{ConfigError, RoutedLayer};
use notes::{Draft, Failure, route};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    notes::open()?;
    let listener = TcpListener::bind(("127.0.0.1", notes::port()?)).await?;
    println!("Open http://{} in a browser.", listener.local_addr()?);
    Ok(axum::serve(listener, app()?).await?)
}

fn app() -> Result<Router, ConfigError> {
    let keys = notes::token_keys()?;
    let pages = Router::new()
        .route("/", get(page))
        .route("/notes", post(add))
        // the outermost layer; `plain_http` because there is no TLS here
        .layer(RoutedLayer::new(keys.clone()).plain_http());
    let api = Router::new()
        .route("/api/notes", get(list).post(add_text))
        // programs would rather keep a header than cookies
        .layer(RoutedLayer::new(keys).header("x-routed-token"));
    Ok(pages.merge(api))
}

async fn page() -> Result<Html<String>, Failed> {
    let all = blocking(|| route::distributed(notes::all)).await?;
    Ok(Html(notes::page(&all)))
}

async fn add(Form(note): Form<Draft>) -> Result<Redirect, Failed> {
    blocking(move || route::primary(|conn| notes::add(conn, &note.body))).await?;
    Ok(Redirect::to("/"))
}

async fn list() -> Result<String, Failed> {
    Ok(blocking(|| route::distributed(notes::all))
        .await?
        .join("\n"))
}

async fn add_text(body: String) -> Result<StatusCode, Failed> {
    blocking(move || route::primary(|conn| notes::add(conn, &body))).await?;
    Ok(StatusCode::CREATED)
}

/// Waits for the database on a thread that may; this function takes the context along, which
/// tokio's own does not.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> QueryResult<T> + Send + 'static,
) -> Result<T, Failed> {
    Ok(diesel_routed::route::spawn_blocking(work).await??)
}

/// What went wrong is for the log, not for the client.
struct Failed(Failure);

impl<E: Into<Failure>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        eprintln!("notes: {}", self.0);
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

//! Notes on Rocket: `cargo run -p notes --bin notes-rocket`
//!
//! The guard [`Routed`] runs what a handler does in the context of its request, and the fairing
//! [`tokens`] hands the client a token, so that whoever has added a note sees it on the next page,
//! from whichever process; others read from the replica.

#![forbid(unsafe_code)]

use std::convert::Infallible;

use diesel::QueryResult;
use diesel_routed::{Context, TokenCarrier};
use notes::{Draft, Failure, route};
use rocket::config::LogLevel;
use rocket::fairing::AdHoc;
use rocket::form::Form;
use rocket::request::{FromRequest, Outcome};
use rocket::response::{Redirect, content::RawHtml};
use rocket::tokio::task;
use rocket::{Config, Request, get, http::Status, post, routes};

#[rocket::main]
async fn main() -> Result<(), Failure> {
    notes::open()?;
    // `plain_http` because there is no TLS here
    let carrier = TokenCarrier::new(notes::token_keys()?).plain_http();
    let config = Config {
        port: notes::port()?,
        // which still tells the address
        log_level: LogLevel::Critical,
        ..Config::default()
    };
    let rocket = rocket::custom(config)
        .manage(carrier)
        // the last fairing: what others do to a response is done by then
        .attach(tokens())
        .mount("/", routes![page, add]);
    rocket.launch().await?;
    Ok(())
}

#[get("/")]
async fn page(routed: Routed<'_>) -> Result<RawHtml<String>, Status> {
    let all = routed.run(|| route::distributed(notes::all)).await?;
    Ok(RawHtml(notes::page(&all)))
}

#[post("/notes", data = "<note>")]
async fn add(routed: Routed<'_>, note: Form<Draft>) -> Result<Redirect, Status> {
    let write = move || route::primary(|conn| notes::add(conn, &note.body));
    routed.run(write).await?;
    Ok(Redirect::to("/"))
}

/// The context of a request: all of its guards and fairings have the same.
struct Routed<'r>(&'r Context);

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Routed<'r> {
    type Error = Infallible;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Infallible> {
        Outcome::Success(Self::of(request))
    }
}

impl<'r> Routed<'r> {
    fn of(request: &'r Request<'_>) -> Self {
        Self(request.local_cache(|| {
            let carrier = carrier(request);
            carrier.resume(request.headers().get(carrier.request_header()))
        }))
    }

    /// Waits for the database on a thread that may, inside the context.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> QueryResult<T> + Send + 'static,
    ) -> Result<T, Status> {
        let context = self.0.clone();
        let done = task::spawn_blocking(move || context.run(work)).await;
        done.map_err(failed)?.map_err(failed)
    }
}

/// Answers requests that have written with a token.
fn tokens() -> AdHoc {
    AdHoc::on_response("tokens", |request, response| {
        Box::pin(async move {
            let cacheable = response.headers().get("cache-control");
            let answer = carrier(request).answer(Routed::of(request).0, cacheable);
            if let Some((name, value)) = answer {
                response.adjoin_raw_header(name, value);
            }
        })
    })
}

fn carrier<'r>(request: &'r Request<'_>) -> &'r TokenCarrier {
    request.rocket().state().expect("it is managed")
}

/// What went wrong is for the log, not for the client.
fn failed(error: impl std::error::Error) -> Status {
    eprintln!("notes: {error}");
    Status::InternalServerError
}

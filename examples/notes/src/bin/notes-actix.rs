//! Notes on actix-web: `cargo run -p notes --bin notes-actix`
//!
//! The middleware [`routed`] gives each request a context and its client a token, so that whoever
//! has added a note sees it on the next page, from whichever process; others read from the replica.

#![forbid(unsafe_code)]

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::web::{Data, Form, Html, Redirect};
use actix_web::{App, Error, HttpServer, error, get, post};
use diesel::QueryResult;
use diesel_routed::TokenCarrier;
use notes::{Draft, Failure, route};

#[actix_web::main]
async fn main() -> Result<(), Failure> {
    notes::open()?;
    // `plain_http` because there is no TLS here
    let carrier = Data::new(TokenCarrier::new(notes::token_keys()?).plain_http());
    let app = move || {
        App::new()
            .app_data(carrier.clone())
            .service(page)
            .service(add)
            // the last one is the outermost
            .wrap(from_fn(routed))
    };
    let server = HttpServer::new(app).bind(("127.0.0.1", notes::port()?))?;
    println!("Open http://{} in a browser.", server.addrs()[0]);
    Ok(server.run().await?)
}

/// Runs a request in a context of its own, and answers it with a token if it has written.
async fn routed(
    carrier: Data<TokenCarrier>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let sent = request.headers().get_all(carrier.request_header());
    let context = carrier.resume(sent);
    // workers serve many requests on one thread: `scope` is inside only while this one is polled;
    // what a handler fails with is a response, too
    let mut response = context.scope(next.call(request)).await?;
    let cacheable = response.headers().get_all(CACHE_CONTROL);
    if let Some((name, value)) = carrier.answer(&context, cacheable) {
        let value = HeaderValue::try_from(value).map_err(error::ErrorInternalServerError)?;
        response
            .headers_mut()
            .append(HeaderName::from_static(name), value);
    }
    Ok(response)
}

#[get("/")]
async fn page() -> Result<Html, Error> {
    let all = blocking(|| route::distributed(notes::all)).await?;
    Ok(Html::new(notes::page(&all)))
}

#[post("/notes")]
async fn add(note: Form<Draft>) -> Result<Redirect, Error> {
    blocking(move || route::primary(|conn| notes::add(conn, &note.body))).await?;
    Ok(Redirect::to("/").see_other())
}

/// Waits for the database on a thread that may; this function takes the context along, which
/// `web::block` does not.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> QueryResult<T> + Send + 'static,
) -> Result<T, Error> {
    let done = diesel_routed::route::spawn_blocking(work).await;
    done.map_err(failed)?.map_err(failed)
}

/// What went wrong is for the log, not for the client.
fn failed(error: impl std::error::Error) -> Error {
    eprintln!("notes: {error}");
    error::ErrorInternalServerError("sorry")
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CACHE_CONTROL, COOKIE, SET_COOKIE};
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use parking_lot::Mutex;
use tower_service::Service;

use super::*;
use crate::context::Context;
use crate::context::tests::cluster;

fn current() -> Context {
    Context::current().expect("a request has a context")
}

/// Writes without a database.
fn write() {
    current().mark(&cluster());
}

fn keys() -> TokenKeys {
    TokenKeys::new([7; 32]).unwrap()
}

/// Says whether the client has written before, as its token tells.
async fn read() -> String {
    current().written_token(None).is_some().to_string()
}

async fn cached(control: &'static str) -> impl IntoResponse {
    write();
    [(CACHE_CONTROL, control)]
}

fn app(layer: RoutedLayer) -> Router {
    let fail = || async {
        write();
        StatusCode::INTERNAL_SERVER_ERROR
    };
    Router::new()
        .route("/", get(read))
        .route("/write", post(async || write()))
        .route("/fail", post(fail))
        .route("/public", post(|| cached("max-age=60, Public")))
        .route("/shared", post(|| cached("s-maxage=60")))
        .route("/private", post(|| cached("private, max-age=60")))
        .layer(layer)
}

/// A browser with its cookies.
#[derive(Default)]
struct Browser(BTreeMap<String, String>);

impl Browser {
    fn request(&self, method: &str, path: &str) -> Request<Body> {
        let cookies = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        let mut all = vec!["theme=dark".to_owned()];
        all.extend(cookies);
        let request = Request::builder().method(method).uri(path);
        request
            .header(COOKIE, all.join("; "))
            .body(Body::empty())
            .unwrap()
    }

    fn receive(&mut self, response: &Response<Body>) {
        for cookie in cookies(response) {
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }
}

fn cookies(response: &Response<Body>) -> Vec<String> {
    let all = response.headers().get_all(SET_COOKIE).iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

async fn send(app: &Router, request: Request<Body>) -> Response<Body> {
    app.clone().call(request).await.unwrap()
}

async fn text(response: Response<Body>) -> String {
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.into()).unwrap()
}

#[tokio::test]
async fn what_a_request_writes_the_next_one_knows() {
    for layer in [RoutedLayer::unsigned(), RoutedLayer::new(keys())] {
        let app = app(layer);
        let mut browser = Browser::default();
        let response = send(&app, browser.request("GET", "/")).await;
        assert_eq!(cookies(&response), [""; 0], "a read sets no cookie");
        assert_eq!(text(response).await, "false");

        browser.receive(&send(&app, browser.request("POST", "/write")).await);
        let response = send(&app, browser.request("GET", "/")).await;
        assert_eq!(
            cookies(&response),
            [""; 0],
            "nor does it with a token, nor remove it"
        );
        assert_eq!(text(response).await, "true");
    }
}

#[tokio::test]
async fn a_cookie_is_set_as_configured() {
    let table = [
        (
            RoutedLayer::unsigned(),
            "routed_",
            "Path=/; HttpOnly; SameSite=Lax; Secure",
        ),
        (
            RoutedLayer::unsigned().plain_http(),
            "routed_",
            "Path=/; HttpOnly; SameSite=Lax",
        ),
        (
            RoutedLayer::unsigned()
                .cookie_prefix("__Host-shop")
                .cookie_path("/shop"),
            "__Host-shop_",
            "Path=/shop; HttpOnly; SameSite=Lax; Secure",
        ),
    ];
    for (layer, prefix, attributes) in table {
        let request = Browser::default().request("POST", "/write");
        let response = send(&app(layer), request).await;
        let [cookie] = &cookies(&response)[..] else {
            panic!("one cookie");
        };
        let (name, rest) = cookie
            .strip_prefix(prefix)
            .unwrap()
            .split_once('=')
            .unwrap();
        let (token, set) = rest.split_once("; ").unwrap();
        u32::from_str_radix(name, 16).expect("hexadecimal digits");
        assert!(token.starts_with("1."), "{cookie}");
        assert_eq!(set, format!("Max-Age=60; {attributes}"));
    }
}

#[tokio::test]
async fn errors_carry_the_token_and_public_responses_do_not() {
    let table = [
        ("/fail", 1),
        ("/private", 1),
        ("/public", 0),
        ("/shared", 0),
    ];
    for (path, expected) in table {
        let request = Browser::default().request("POST", path);
        let response = send(&app(RoutedLayer::unsigned()), request).await;
        assert_eq!(cookies(&response).len(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_signing_application_believes_no_other_token() {
    let mut browser = Browser::default();
    let response = send(
        &app(RoutedLayer::unsigned()),
        browser.request("POST", "/write"),
    )
    .await;
    browser.receive(&response);
    let response = send(&app(RoutedLayer::new(keys())), browser.request("GET", "/")).await;
    assert_eq!(text(response).await, "false", "unsigned");
}

#[tokio::test]
async fn all_cookies_are_read_and_others_are_let_be() {
    let app = app(RoutedLayer::unsigned());
    let written = send(&app, Browser::default().request("POST", "/write")).await;
    let cookie = &cookies(&written)[0];
    let token = cookie.split(['=', ';']).nth(1).unwrap();
    let table = [
        (format!("routed_0={token}"), "true"),
        (format!("caf\u{e9}=1; routed_7={token};"), "true"),
        (format!("routed_3=garbage;routed_4 = {token}"), "true"),
        (format!("routed_c0ffee42={token}"), "true"),
        (format!("routed_c0ffee421={token}"), "false"),
        (format!("routed_+1={token}; routed_={token}"), "false"),
        (format!("other_1={token}; routed={token}"), "false"),
        ("routed_1=; routed_2; =; ;".to_owned(), "false"),
    ];
    for (cookie, expected) in table {
        let value = axum::http::HeaderValue::from_bytes(cookie.as_bytes()).unwrap();
        let request = Request::get("/").header(COOKIE, value).body(Body::empty());
        let response = send(&app, request.unwrap()).await;
        assert_eq!(text(response).await, expected, "{cookie}");
    }
}

#[tokio::test]
async fn programs_carry_the_token_in_a_header() {
    let app = app(RoutedLayer::new(keys()).header("x-routed-token"));
    let response = send(&app, Browser::default().request("POST", "/write")).await;
    assert_eq!(cookies(&response), [""; 0]);
    let token = response.headers()["x-routed-token"].clone();
    let request = Request::get("/")
        .header("x-routed-token", token)
        .body(Body::empty());
    let response = send(&app, request.unwrap()).await;
    assert!(!response.headers().contains_key("x-routed-token"), "a read");
    assert_eq!(text(response).await, "true");
}

/// A body that asks in which context it is polled.
struct Stream(Arc<Mutex<Option<Context>>>);

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        *self.0.lock() = Context::current();
        Poll::Ready(None)
    }
}

#[tokio::test]
async fn a_streamed_body_is_in_the_context_and_too_late_for_the_token() {
    let polled_in = Arc::<Mutex<Option<Context>>>::default();
    let seen = Arc::clone(&polled_in);
    let handler = move || async move {
        *seen.lock() = Some(current());
        assert!(!current().is_answered());
        Response::new(Body::new(Stream(seen)))
    };
    let app = Router::new()
        .route("/", get(handler))
        .layer(RoutedLayer::unsigned());
    let response = send(&app, Browser::default().request("GET", "/")).await;
    let context = polled_in.lock().take().unwrap();
    assert!(context.is_answered(), "its head is made");
    text(response).await;
    let inside = polled_in.lock().take().expect("the body has a context");
    assert!(inside.is(&context));
}

#[tokio::test]
async fn a_write_that_still_runs_is_in_the_token_and_a_request_given_up_gets_none() {
    let running = async || std::mem::forget(current().begin_write(&cluster(), None));
    let app = Router::new()
        .route("/", get(running))
        .layer(RoutedLayer::unsigned());
    let response = send(&app, Browser::default().request("GET", "/")).await;
    assert_eq!(cookies(&response).len(), 1, "as a time mark");

    let context = Arc::<Mutex<Option<Context>>>::default();
    let seen = Arc::clone(&context);
    let endless = move || async move {
        *seen.lock() = Some(current());
        std::future::pending::<()>().await;
    };
    let app = Router::new()
        .route("/", get(endless))
        .layer(RoutedLayer::unsigned());
    let response = send(&app, Browser::default().request("GET", "/"));
    tokio::time::timeout(Duration::from_millis(10), response)
        .await
        .unwrap_err();
    assert!(
        context.lock().take().unwrap().is_answered(),
        "its client is gone"
    );
}

#[tokio::test]
async fn two_tabs_do_not_destroy_each_others_token() {
    let app = app(RoutedLayer::unsigned());
    let mut browser = Browser::default();
    // both are sent before either is answered; the reading one is answered last
    let writing = browser.request("POST", "/write");
    let reading = browser.request("GET", "/");
    let read = send(&app, reading).await;
    browser.receive(&send(&app, writing).await);
    browser.receive(&read);
    let response = send(&app, browser.request("GET", "/")).await;
    assert_eq!(text(response).await, "true");
}

#[test]
#[should_panic(expected = "cannot be part of a cookie's name")]
fn a_prefix_that_is_no_name_is_refused() {
    let _ = RoutedLayer::unsigned().cookie_prefix("a=b; ");
}

#[test]
#[should_panic(expected = "cannot be the path of a cookie")]
fn a_path_that_ends_the_attribute_is_refused() {
    let _ = RoutedLayer::unsigned().cookie_path("/; Domain=example.org");
}

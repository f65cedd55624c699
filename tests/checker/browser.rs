//! A browser's request to a web application that has the layer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use diesel_routed::{RoutedLayer, TokenKeys};
use http::header::{COOKIE, SET_COOKIE};
use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

/// The values of cookies, by their names.
pub type Cookies = BTreeMap<String, String>;

/// An application that does its work, and keeps something for as long as the body lives.
struct Application<F>(Option<F>);

impl<F: FnOnce() -> B, B> Service<Request<()>> for Application<F> {
    type Response = Response<B>;
    type Error = Infallible;
    type Future = Ready<Result<Response<B>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let work = self.0.take().expect("one request is made");
        ready(Ok(Response::new(work())))
    }
}

/// Has `work` done in a request with these cookies; returns those that the response sets.
pub fn request<B>(cookies: &Cookies, work: impl FnOnce() -> B) -> Cookies {
    let keys = TokenKeys::new([7; 32]).expect("long enough");
    let mut application = RoutedLayer::new(keys).layer(Application(Some(work)));
    let pairs = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let request = Request::builder()
        .header(COOKIE, pairs.collect::<Vec<_>>().join("; "))
        .body(())
        .expect("a request");
    let response = pin!(application.call(request)).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(response)) = response else {
        unreachable!("all is done at once");
    };
    let set = response.headers().get_all(SET_COOKIE).iter();
    set.map(|cookie| read(cookie.to_str().expect("text")))
        .collect()
}

fn read(cookie: &str) -> (String, String) {
    let (pair, _) = cookie.split_once("; ").expect("attributes");
    let (name, value) = pair.split_once('=').expect("a name and a value");
    (name.to_owned(), value.to_owned())
}

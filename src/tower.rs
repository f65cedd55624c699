//! One context for each HTTP request, and a token that the client carries to its next one.

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use http::header::{CACHE_CONTROL, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use crate::carrier::TokenCarrier;
use crate::context::{Scope, TokenKeys};

/// Runs each request in a [`Context`](crate::Context) of its own and carries what it wrote to the client's next
/// one, which may reach another process.
///
/// Make it the outermost layer: what a layer outside it answers for the application, such as a
/// time-out or a caught panic, carries no token.
///
/// The client gets a token in a cookie when its request has written, and only then; also with an
/// error, and never with a response that is publicly cacheable. [`TokenCarrier`] has the rules.
///
/// The token is taken when the head of the response is made. A write that still runs then is in
/// it; one that begins later, as in a body that is streamed, is not, and is told as
/// [`Event::TokenTooLate`](crate::Event::TokenTooLate). The body is polled inside the context, too.
///
/// Blocking parts of a request belong into `route::spawn_blocking`, which keeps the context
/// (feature `tokio`).
///
/// ```
/// use diesel_routed::{RoutedLayer, TokenKeys};
///
/// # let secret = [0; 32];
/// let app = axum::Router::<()>::new()
///     // .route(..)
///     .layer(RoutedLayer::new(TokenKeys::new(secret)?));
/// # Ok::<(), diesel_routed::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RoutedLayer(TokenCarrier);

impl RoutedLayer {
    /// Signs tokens and believes only signed ones.
    pub fn new(keys: TokenKeys) -> Self {
        Self(TokenCarrier::new(keys))
    }

    /// As [`TokenCarrier::unsigned`]: believes what clients send, for when all of them are trusted.
    pub fn unsigned() -> Self {
        Self(TokenCarrier::unsigned())
    }

    /// As [`TokenCarrier::cookie_prefix`]. Defaults to `routed`.
    ///
    /// # Panics
    ///
    /// If it cannot be part of a cookie's name.
    #[must_use]
    pub fn cookie_prefix(self, prefix: &str) -> Self {
        Self(self.0.cookie_prefix(prefix))
    }

    /// As [`TokenCarrier::cookie_path`]. Defaults to `/`.
    ///
    /// # Panics
    ///
    /// If it does not begin with `/`, or cannot be part of a cookie.
    #[must_use]
    pub fn cookie_path(self, path: &str) -> Self {
        Self(self.0.cookie_path(path))
    }

    /// Leaves `Secure` out of the cookies, so that clients send them without TLS as well.
    #[must_use]
    pub fn plain_http(self) -> Self {
        Self(self.0.plain_http())
    }

    /// As [`TokenCarrier::header`]: carries tokens in this header in place of cookies, for clients
    /// that are programs.
    ///
    /// # Panics
    ///
    /// If it is no name of a header in lower case, such as `x-routed-token`.
    #[must_use]
    pub fn header(self, name: &'static str) -> Self {
        Self(self.0.header(name))
    }
}

impl<S> Layer<S> for RoutedLayer {
    type Service = RoutedService<S>;

    fn layer(&self, inner: S) -> RoutedService<S> {
        RoutedService {
            inner,
            carrier: Arc::new(self.0.clone()),
        }
    }
}

/// A service whose requests have contexts; made by [`RoutedLayer`].
#[derive(Debug, Clone)]
pub struct RoutedService<S> {
    inner: S,
    carrier: Arc<TokenCarrier>,
}

impl<S, B, R> Service<Request<B>> for RoutedService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<RoutedBody<R>>;
    type Error = S::Error;
    type Future = RoutedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> RoutedFuture<S::Future> {
        let header = self.carrier.request_header();
        let context = self.carrier.resume(request.headers().get_all(header));
        // a service may do its work before it returns a future
        let response = context.run(|| self.inner.call(request));
        RoutedFuture {
            response: context.scope(response),
            carrier: Arc::clone(&self.carrier),
        }
    }
}

/// A response to come; made by [`RoutedService`].
pub struct RoutedFuture<F> {
    response: Scope<F>,
    carrier: Arc<TokenCarrier>,
}

impl<F, R, E> Future for RoutedFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<RoutedBody<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.response)
            .poll(cx)
            .map_ok(|mut response| {
                let context = self.response.context();
                let cacheable = response.headers().get_all(CACHE_CONTROL);
                if let Some((name, value)) = self.carrier.answer(context, cacheable) {
                    add(name, value, response.headers_mut());
                }
                response.map(|body| RoutedBody(context.around(body)))
            })
    }
}

fn add(name: &'static str, value: String, headers: &mut HeaderMap) {
    let name = HeaderName::from_static(name);
    let value = HeaderValue::try_from(value).expect("every part of it was checked");
    if name == SET_COOKIE {
        headers.append(name, value);
    } else {
        headers.insert(name, value);
    }
}

impl<F> Drop for RoutedFuture<F> {
    fn drop(&mut self) {
        // failed, or given up: the client gets no token at all
        self.response.context().answer();
    }
}

impl<F> fmt::Debug for RoutedFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutedFuture").finish_non_exhaustive()
    }
}

/// A body that is polled in the context of its request; made by [`RoutedService`].
#[derive(Debug)]
pub struct RoutedBody<B>(Scope<B>);

impl<B: Body> Body for RoutedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.0.enter(|body| body.poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.0.get().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.get().size_hint()
    }
}

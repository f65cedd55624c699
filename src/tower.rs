//! One context for each HTTP request, and a token that the client carries to its next one.

mod carrier;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use self::carrier::Carrier;
use crate::context::{Context, Scope, TokenKeys};

/// Runs each request in a [`Context`] of its own and carries what it wrote to the client's next
/// one, which may reach another process.
///
/// Make it the outermost layer: what a layer outside it answers for the application, such as a
/// time-out or a caught panic, carries no token.
///
/// The client gets a token in a cookie when its request has written, and only then; also with an
/// error. It is one of eight cookies at random, which are read together, so that two tabs do not
/// destroy each other's. No cookie is ever removed: they end by themselves when
/// `sticky_for` is over, and are `HttpOnly` and `SameSite=Lax`.
///
/// A response with `Cache-Control: public` or `s-maxage` gets none, because a cache would hand it
/// on to others: answer requests that write in another way.
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
pub struct RoutedLayer {
    keys: Option<TokenKeys>,
    carrier: Carrier,
}

impl RoutedLayer {
    /// Signs tokens and believes only signed ones.
    pub fn new(keys: TokenKeys) -> Self {
        Self {
            keys: Some(keys),
            carrier: Carrier::default(),
        }
    }

    /// Believes what clients send, for when all of them are trusted.
    ///
    /// A client that writes a token of its own can send its own reads to the primary.
    pub fn unsigned() -> Self {
        Self {
            keys: None,
            carrier: Carrier::default(),
        }
    }

    /// Sets what the names of the cookies begin with; `PREFIX_0` to `PREFIX_7` are used.
    ///
    /// Defaults to `routed`. Applications on one host and path need different ones.
    ///
    /// # Panics
    ///
    /// If it cannot be part of a cookie's name.
    #[must_use]
    pub fn cookie_prefix(mut self, prefix: &str) -> Self {
        self.carrier.set_prefix(prefix);
        self
    }

    /// Sets the path under which clients send the cookies back. Defaults to `/`.
    ///
    /// # Panics
    ///
    /// If it does not begin with `/`, or cannot be part of a cookie.
    #[must_use]
    pub fn cookie_path(mut self, path: &str) -> Self {
        self.carrier.set_path(path);
        self
    }

    /// Leaves `Secure` out of the cookies, so that clients send them without TLS as well.
    #[must_use]
    pub fn plain_http(mut self) -> Self {
        self.carrier.allow_plain_http();
        self
    }

    /// Carries tokens in this header in place of cookies, for clients that are programs.
    ///
    /// Such a client sends the last value that it got with each request, and all of them if its
    /// requests run at the same time.
    ///
    /// # Panics
    ///
    /// If it is no name of a header in lower case, such as `x-routed-token`.
    #[must_use]
    pub fn header(mut self, name: &'static str) -> Self {
        self.carrier.set_header(name);
        self
    }
}

impl<S> Layer<S> for RoutedLayer {
    type Service = RoutedService<S>;

    fn layer(&self, inner: S) -> RoutedService<S> {
        RoutedService {
            inner,
            layer: Arc::new(self.clone()),
        }
    }
}

/// A service whose requests have contexts; made by [`RoutedLayer`].
#[derive(Debug, Clone)]
pub struct RoutedService<S> {
    inner: S,
    layer: Arc<RoutedLayer>,
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
        let tokens = self.layer.carrier.received(request.headers());
        let context = Context::resume_all(tokens, self.layer.keys.as_ref());
        // a service may do its work before it returns a future
        let response = context.run(|| self.inner.call(request));
        RoutedFuture {
            response: context.scope(response),
            layer: Arc::clone(&self.layer),
        }
    }
}

/// A response to come; made by [`RoutedService`].
pub struct RoutedFuture<F> {
    response: Scope<F>,
    layer: Arc<RoutedLayer>,
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
                // first: a write that begins in between is told in vain, but never missing
                context.answer();
                if context.moved_since_resume() && !carrier::is_public(response.headers()) {
                    if let Some((token, left)) = context.written_token(self.layer.keys.as_ref()) {
                        self.layer
                            .carrier
                            .send(&token, left, response.headers_mut());
                    }
                }
                response.map(|body| RoutedBody(context.around(body)))
            })
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

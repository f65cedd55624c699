//! How a token goes to the client and back: in a cookie, or in a header.

use std::time::Duration;

use crate::context::{Context, TokenKeys};

/// From so many cookies on a new one takes the place of an old one: enough for tabs, few enough for
/// every server's limit.
const ENOUGH: usize = 8;

/// Carries tokens to the clients of a server and back, in whichever web framework.
///
/// With axum and whatever else is made of tower, [`RoutedLayer`](crate::RoutedLayer) is all of it.
/// Elsewhere a middleware has three things to do: [`resume`](Self::resume) a context by the headers
/// of the request, run the request in it, and add to the response what [`answer`](Self::answer)
/// returns. Make it the outermost one, and have it answer errors, too.
///
/// The client gets a token in a cookie when its request has written, and only then. Each cookie has
/// a name of its own, and all are read together, so that two tabs do not destroy each other's token
/// in whichever order they are answered. Only a client that has sent eight gets one in place of one
/// of those. No cookie is ever removed: they end by themselves when `sticky_for` is over, and are
/// `HttpOnly` and `SameSite=Lax`.
///
/// A response with `Cache-Control: public` or `s-maxage` gets none, because a cache would hand it
/// on to others: answer requests that write in another way.
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*; let (secret, pool) = ([7; 32], pool());
/// let carrier = TokenCarrier::new(TokenKeys::new(secret)?);
///
/// let request = carrier.resume(["theme=dark; routed_5eed=garbage"]); // its `Cookie` headers
/// let mut conn = pool.get()?;
/// request.run(|| diesel::delete(posts::table).execute(&mut conn))?;
/// drop(conn);
/// let (name, value) = carrier.answer(&request, ["no-store"]).expect("the request has written");
/// assert!(name == "set-cookie" && value.starts_with("routed_"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TokenCarrier {
    keys: Option<TokenKeys>,
    /// In place of cookies.
    header: Option<&'static str>,
    prefix: String,
    path: String,
    transport: Transport,
}

/// Over what a client may send the cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Secure,
    Any,
}

impl TokenCarrier {
    /// Signs tokens and believes only signed ones.
    pub fn new(keys: TokenKeys) -> Self {
        Self {
            keys: Some(keys),
            ..Self::unsigned()
        }
    }

    /// Believes what clients send, for when all of them are trusted.
    ///
    /// A client that writes a token of its own can send its own reads to the primary.
    pub fn unsigned() -> Self {
        Self {
            keys: None,
            header: None,
            prefix: "routed".to_owned(),
            path: "/".to_owned(),
            transport: Transport::Secure,
        }
    }

    /// Sets what the names of the cookies begin with; `_` and up to eight hexadecimal digits follow.
    ///
    /// Defaults to `routed`. Applications on one host and path need different ones.
    ///
    /// # Panics
    ///
    /// If it cannot be part of a cookie's name.
    #[must_use]
    pub fn cookie_prefix(mut self, prefix: &str) -> Self {
        assert!(
            is_word(prefix),
            "{prefix:?} cannot be part of a cookie's name"
        );
        self.prefix = prefix.to_owned();
        self
    }

    /// Sets the path under which clients send the cookies back. Defaults to `/`.
    ///
    /// # Panics
    ///
    /// If it does not begin with `/`, or cannot be part of a cookie.
    #[must_use]
    pub fn cookie_path(mut self, path: &str) -> Self {
        let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b';';
        assert!(
            path.starts_with('/') && path.bytes().all(allowed),
            "{path:?} cannot be the path of a cookie"
        );
        self.path = path.to_owned();
        self
    }

    /// Leaves `Secure` out of the cookies, so that clients send them without TLS as well.
    #[must_use]
    pub fn plain_http(mut self) -> Self {
        self.transport = Transport::Any;
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
        assert!(
            is_word(name) && !name.bytes().any(|byte| byte.is_ascii_uppercase()),
            "{name:?} is no name of a header in lower case"
        );
        self.header = Some(name);
        self
    }

    /// The name of the request's header in which clients send tokens, in lower case: `cookie`,
    /// unless it is another [`header`](Self::header).
    pub fn request_header(&self) -> &'static str {
        self.header.unwrap_or("cookie")
    }

    /// Makes the context of a request, which takes up what the client has written before.
    ///
    /// `values` are those of all headers with the name of [`request_header`](Self::request_header).
    /// Other cookies may be in them, and anything else.
    pub fn resume<V: AsRef<[u8]>>(&self, values: impl IntoIterator<Item = V>) -> Context {
        let values: Vec<V> = values.into_iter().collect();
        let values = values.iter().map(AsRef::as_ref);
        let (names, tokens): (Vec<u32>, Vec<&str>) = match self.header {
            Some(_) => {
                let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
                (vec![], texts.collect())
            }
            // other cookies may hold anything, so that the header as a whole is no text
            None => values
                .flat_map(|value| value.split(|byte| *byte == b';'))
                .filter_map(|pair| self.received(pair))
                .unzip(),
        };
        Context::resume_all(tokens, self.keys.as_ref(), names)
    }

    fn received<'a>(&self, pair: &'a [u8]) -> Option<(u32, &'a str)> {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        let name = name.trim().strip_prefix(&self.prefix)?.strip_prefix('_')?;
        let is_ours = name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = u32::from_str_radix(name, 16).ok().filter(|_| is_ours)?;
        Some((name, value.trim()))
    }

    /// Returns the header that hands the client its token: the name, in lower case, and the value;
    /// `None` if the request has written nothing, or every replica has it, or the response is
    /// publicly cacheable.
    ///
    /// To be called once, as late as the head of the response can be changed, with the values of
    /// its `Cache-Control` headers. A write that still runs is in the token. One that begins later,
    /// as in a body that is streamed, is not, and is told as
    /// [`Event::TokenTooLate`](crate::Event::TokenTooLate).
    pub fn answer<V: AsRef<[u8]>>(
        &self,
        context: &Context,
        cache_control: impl IntoIterator<Item = V>,
    ) -> Option<(&'static str, String)> {
        // first: a write that begins in between is told in vain, but never missing
        context.answer();
        if !context.moved_since_resume() || cache_control.into_iter().any(is_public) {
            return None;
        }
        let (token, left) = context.written_token(self.keys.as_ref())?;
        Some(match self.header {
            Some(name) => (name, token),
            None => ("set-cookie", self.cookie(context, &token, left)),
        })
    }

    /// The cookie for a token that is of use for as long as is `left`.
    fn cookie(&self, context: &Context, token: &str, left: Duration) -> String {
        let Self { prefix, path, .. } = self;
        let name = match context.cookies() {
            // what that one says is in this token, too
            known if known.len() >= ENOUGH => known[rand::random_range(0..known.len())],
            _ => rand::random(),
        };
        // rounded up: a token that has ended does no harm
        let seconds = left.as_secs() + 1;
        let secure = match self.transport {
            Transport::Secure => "; Secure",
            Transport::Any => "",
        };
        format!(
            "{prefix}_{name:x}={token}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Lax{secure}"
        )
    }
}

/// Whether a text is what HTTP calls a token: the name of a header or a cookie.
fn is_word(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Whether caches may keep a response with this `Cache-Control` for other clients as well.
fn is_public(value: impl AsRef<[u8]>) -> bool {
    let mut directives = value.as_ref().split(|byte| *byte == b',');
    directives.any(|directive| {
        let name = directive.split(|byte| *byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii();
        name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
    })
}

#[cfg(test)]
mod tests;

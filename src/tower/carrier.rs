//! How a token goes to the client and back: in one of eight cookies, or in a header.

use std::time::Duration;

use http::header::{CACHE_CONTROL, COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The names that a token's cookie may have: enough for tabs, few enough for every browser.
const SLOTS: u8 = 8;

/// Where a token is written.
#[derive(Debug, Clone)]
pub(super) struct Carrier {
    /// In place of cookies.
    header: Option<HeaderName>,
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

impl Default for Carrier {
    fn default() -> Self {
        Self {
            header: None,
            prefix: "routed".to_owned(),
            path: "/".to_owned(),
            transport: Transport::Secure,
        }
    }
}

impl Carrier {
    pub(super) fn set_header(&mut self, name: &'static str) {
        self.header = Some(HeaderName::from_static(name));
    }

    pub(super) fn set_prefix(&mut self, prefix: &str) {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        assert!(
            !prefix.is_empty() && prefix.bytes().all(allowed),
            "{prefix:?} cannot be part of a cookie's name"
        );
        self.prefix = prefix.to_owned();
    }

    pub(super) fn set_path(&mut self, path: &str) {
        let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b';';
        assert!(
            path.starts_with('/') && path.bytes().all(allowed),
            "{path:?} cannot be the path of a cookie"
        );
        self.path = path.to_owned();
    }

    pub(super) fn allow_plain_http(&mut self) {
        self.transport = Transport::Any;
    }

    /// The texts that a client has sent as tokens.
    pub(super) fn received<'a>(&self, headers: &'a HeaderMap) -> Vec<&'a str> {
        match &self.header {
            Some(name) => {
                let values = headers.get_all(name).iter();
                values.filter_map(|value| value.to_str().ok()).collect()
            }
            None => {
                let values = headers.get_all(COOKIE).iter();
                // other cookies may hold anything, so that the header as a whole is no text
                let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
                pairs
                    .filter_map(|pair| self.received_cookie(pair))
                    .collect()
            }
        }
    }

    fn received_cookie<'a>(&self, pair: &'a [u8]) -> Option<&'a str> {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        let slot = name.trim().strip_prefix(&self.prefix)?.strip_prefix('_')?;
        let ours = matches!(slot.as_bytes(), [digit] if (b'0'..b'0' + SLOTS).contains(digit));
        ours.then_some(value.trim())
    }

    /// Hands a token over that is of use for as long as is `left`.
    pub(super) fn send(&self, token: &str, left: Duration, headers: &mut HeaderMap) {
        let value = |text: &str| HeaderValue::from_str(text).expect("every part of it was checked");
        match &self.header {
            Some(name) => drop(headers.insert(name, value(token))),
            None => drop(headers.append(SET_COOKIE, value(&self.cookie(token, left)))),
        }
    }

    fn cookie(&self, token: &str, left: Duration) -> String {
        let Self { prefix, path, .. } = self;
        let slot = rand::random_range(0..SLOTS);
        // rounded up: a token that has ended does no harm
        let seconds = left.as_secs() + 1;
        let secure = match self.transport {
            Transport::Secure => "; Secure",
            Transport::Any => "",
        };
        format!(
            "{prefix}_{slot}={token}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Lax{secure}"
        )
    }
}

/// Whether caches may keep a response for other clients as well.
pub(super) fn is_public(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|directive| {
            let name = directive
                .split(|byte| *byte == b'=')
                .next()
                .unwrap_or_default();
            let name = name.trim_ascii();
            name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
        })
}

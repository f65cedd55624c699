//! A client that keeps cookies, or the token of a header.

use std::collections::BTreeMap;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Response;

/// The header of the examples' API.
pub const HEADER: &str = "x-routed-token";

#[derive(Default, Clone)]
pub struct Client {
    cookies: BTreeMap<String, String>,
    token: Option<String>,
}

/// What a server has answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub cookies: Vec<String>,
    pub token: Option<String>,
    pub body: String,
}

impl Client {
    /// Asks, and keeps what the answer says.
    pub fn get(&mut self, url: &str) -> Answer {
        let answer = self.ask(url);
        self.keep(&answer);
        answer
    }

    pub fn post(&mut self, url: &str, body: &str) -> Answer {
        let answer = self.tell(url, body);
        self.keep(&answer);
        answer
    }

    /// Asks, and does not know the answer yet: [`keep`](Self::keep) receives it.
    pub fn ask(&self, url: &str) -> Answer {
        let request = self
            .headers()
            .into_iter()
            .fold(agent().get(url), |request, (name, value)| {
                request.header(name, value)
            });
        answer(request.call())
    }

    pub fn tell(&self, url: &str, body: &str) -> Answer {
        let request = agent()
            .post(url)
            .content_type("application/x-www-form-urlencoded");
        let request = self
            .headers()
            .into_iter()
            .fold(request, |request, (name, value)| {
                request.header(name, value)
            });
        answer(request.send(body))
    }

    pub fn keep(&mut self, answer: &Answer) {
        for cookie in &answer.cookies {
            let (name, rest) = cookie.split_once('=').expect("a name and a value");
            let value = rest.split(';').next().expect("there is a first one");
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        if let Some(token) = &answer.token {
            self.token = Some(token.clone());
        }
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let cookies = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let cookies: Vec<_> = cookies.collect();
        let mut headers = vec![];
        if !cookies.is_empty() {
            headers.push(("cookie", cookies.join("; ")));
        }
        headers.extend(self.token.clone().map(|token| (HEADER, token)));
        headers
    }
}

/// A new one each time: so every request has a connection of its own, and any worker may serve it.
fn agent() -> Agent {
    let config = Agent::config_builder()
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)));
    config.build().into()
}

fn answer(response: Result<Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = response.expect("the server answers");
    let text = |name: &str| -> Vec<String> {
        let values = response.headers().get_all(name).iter();
        values
            .map(|value| value.to_str().expect("ASCII").to_owned())
            .collect()
    };
    let (cookies, token) = (text("set-cookie"), text(HEADER).pop());
    Answer {
        status: response.status().as_u16(),
        cookies,
        token,
        body: response.body_mut().read_to_string().expect("text"),
    }
}

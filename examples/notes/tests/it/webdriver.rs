//! A real browser, by the WebDriver protocol: JSON over HTTP.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::process::Process;

/// Nothing but the pages of the test, in a profile of its own.
const FLAGS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A browser with tabs; closed with this value.
pub struct Browser {
    agent: Agent,
    session: String,
    // ended after the session, which closes the browser
    _driver: Process,
}

impl Browser {
    /// Starts Chromium with an empty profile below this directory.
    pub fn start(dir: &Path) -> Self {
        let mut command = Command::new(program("chromedriver"));
        command.arg("--port=0").env("HOME", dir);
        let mut driver = Process::start(command, dir);
        let port = driver.line(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .into();
        let profile = format!("--user-data-dir={}", dir.join("profile").display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
        let options = json!({ "binary": program("chromium"), "args": flags });
        let capabilities = json!({ "alwaysMatch": { "goog:chromeOptions": options } });
        let sessions = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self {
            agent,
            session: sessions,
            _driver: driver,
        };
        let session = browser.post("", &json!({ "capabilities": capabilities }));
        let id = session["sessionId"].as_str().expect("a session has a name");
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    /// The name of the tab that it shows now.
    pub fn tab(&self) -> String {
        text(&self.command("GET", "/window", None))
    }

    pub fn new_tab(&self) -> String {
        text(&self.post("/window/new", &json!({ "type": "tab" }))["handle"])
    }

    pub fn switch_to(&self, tab: &str) {
        self.post("/window", &json!({ "handle": tab }));
    }

    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// Runs a script in the page and returns its value; of a promise that of its end.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The text that the page shows.
    pub fn page(&self) -> String {
        text(&self.run("return document.body.innerText"))
    }

    /// Fills in the only field of the page and sends its form, as somebody at the keyboard does.
    pub fn submit(&self, typed: &str) {
        let found = self.post(
            "/element",
            &json!({ "using": "css selector", "value": "input" }),
        );
        let field = found.as_object().and_then(|found| found.values().next());
        let field = text(field.expect("the page has a field"));
        self.post(
            &format!("/element/{field}/value"),
            &json!({ "text": format!("{typed}\u{e007}") }),
        );
    }

    /// All cookies for the page that it shows.
    pub fn cookies(&self) -> Vec<Value> {
        let cookies = self.command("GET", "/cookie", None);
        cookies.as_array().expect("a list").clone()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.command("POST", path, Some(body))
    }

    fn command(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let url = format!("{}{path}", self.session);
        let answer = match body {
            Some(body) => self.agent.post(&url).send_json(body),
            None => self.agent.get(&url).call(),
        };
        let mut answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let mut said: Value = answer.body_mut().read_json().expect("JSON");
        assert!(answer.status().is_success(), "{method} {path}: {said}");
        said["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
    }
}

fn program(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file());
    let found = found.unwrap_or_else(|| {
        panic!("{name} is not installed: apt-get install chromium chromium-driver")
    });
    found.display().to_string()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

//! The story of the page, played over HTTP: what a newcomer is to see must be so.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// In seconds.
const LAG: u32 = 2;

/// Longer than any replica is late and any context keeps its reads on the primary.
const PATIENCE: Duration = Duration::from_secs(40);

const AS_FORM: &str = "name=Smoke&message=%3Cb%3Ehere%3C%2Fb%3E+%26+now+";
const AS_HTML: &str = "&lt;b&gt;here&lt;/b&gt; &amp; now ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Primary,
    Replica,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Seen,
    NotSeen,
}

/// Whether the story can count on replicas to be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    Chosen,
    Unknown,
}

pub fn play(server: SocketAddr, delay: Delay) -> Outcome<()> {
    let mut browser = Browser {
        server,
        cookie: None,
    };
    browser.get("/")?;
    browser.refuses_what_is_wrong()?;
    browser.drains_and_resumes()?;
    if delay == Delay::Chosen {
        browser.post("/settings", &format!("lag={LAG}"), 303)?;
    }
    // told apart from what earlier runs left in a database that stays
    let tag = rand::random::<u64>().to_string();
    browser.post("/sign", &format!("{AS_FORM}{tag}"), 303)?;
    let entry = format!("{AS_HTML}{tag}");
    let mut read = |reader| browser.read(reader, &entry);

    expect(
        "the signer reads his entry",
        read("you")?,
        (Answer::Primary, Entry::Seen),
    )?;
    if delay == Delay::Chosen {
        let stale = (Answer::Replica, Entry::NotSeen);
        expect("another visitor does not yet", read("other")?, stale)?;
        browser.post("/settings", "reads=eventual", 303)?;
        let mut read = |reader| browser.read(reader, &entry);
        expect(
            "nor does a signer who reads eventually",
            read("you")?,
            stale,
        )?;
        browser.post("/settings", "reads=own-writes", 303)?;
    }
    browser.until_all_read_replicas(&entry)
}

fn expect(what: &str, seen: (Answer, Entry), expected: (Answer, Entry)) -> Outcome<()> {
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{what}: expected {expected:?}, saw {seen:?}").into()),
    }
}

/// What one browser does: it keeps its cookie.
struct Browser {
    server: SocketAddr,
    cookie: Option<String>,
}

impl Browser {
    fn refuses_what_is_wrong(&mut self) -> Outcome<()> {
        let long = format!("name=Smoke&message={}", "x".repeat(501));
        for (form, said) in [
            ("name=+&message=hello", "Please enter your name."),
            (&*long, "That has 501 characters; there is room for 500."),
            ("name=only", "no form of this page"),
        ] {
            if !self.post("/sign", form, 422)?.contains(said) {
                return Err(format!("the page does not say {said:?}").into());
            }
        }
        Ok(())
    }

    /// A replica that is taken out is shown so until it is taken in again.
    fn drains_and_resumes(&mut self) -> Outcome<()> {
        let page = self.get("/")?;
        let button = page.split_once(r#"name="drain" value=""#);
        let replica = button.and_then(|(_, rest)| rest.split_once('"'));
        let (replica, _) = replica.ok_or("there is no replica to drain")?;
        for (turn, is_drained) in [("drain", true), ("resume", false)] {
            self.post("/settings", &format!("{turn}={replica}"), 303)?;
            if self.get("/live")?.contains("drained for") != is_drained {
                return Err(format!("{turn} {replica} is not shown").into());
            }
        }
        self.post("/settings", "drain=nobody", 422).map(drop)
    }

    /// First the others see the entry, on a replica; at last the signer, too, is back on one.
    /// Until then he reads it on the primary: he never misses it.
    fn until_all_read_replicas(&mut self, entry: &str) -> Outcome<()> {
        let caught_up = (Answer::Replica, Entry::Seen);
        let deadline = Instant::now() + PATIENCE;
        for reader in ["other", "you"] {
            loop {
                let mine = self.read("you", entry)?;
                if mine.1 == Entry::NotSeen {
                    return Err("the signer lost sight of his entry".into());
                }
                if reader == "you" && mine == caught_up {
                    break;
                }
                if reader == "other" && self.read("other", entry)? == caught_up {
                    break;
                }
                if Instant::now() > deadline {
                    return Err(format!("{reader} did not read it from a replica in time").into());
                }
                thread::sleep(Duration::from_millis(100));
            }
        }
        Ok(())
    }

    /// Who answered, and whether the entry was there.
    fn read(&mut self, reader: &str, entry: &str) -> Outcome<(Answer, Entry)> {
        let html = self.get(&format!("/entries/{reader}"))?;
        let answer = if html.contains(r#"<span class="badge primary">"#) {
            Answer::Primary
        } else if html.contains(r#"<span class="badge replica">"#) {
            Answer::Replica
        } else {
            return Err(format!("nobody answered: {html}").into());
        };
        let seen = match html.contains(entry) {
            true => Entry::Seen,
            false => Entry::NotSeen,
        };
        Ok((answer, seen))
    }

    fn get(&mut self, path: &str) -> Outcome<String> {
        self.send(&format!("GET {path}"), "", 200)
    }

    fn post(&mut self, path: &str, form: &str, status: u16) -> Outcome<String> {
        self.send(&format!("POST {path}"), form, status)
    }

    /// Sends a request and returns the body of the answer, which must have this status.
    fn send(&mut self, request: &str, form: &str, status: u16) -> Outcome<String> {
        let (server, length) = (self.server, form.len());
        let cookie = self
            .cookie
            .as_ref()
            .map(|cookie| format!("Cookie: {cookie}\r\n"));
        let mut stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}",
            cookie.unwrap_or_default()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no HTTP was spoken")?;
        let set = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        if let Some((cookie, _)) = set.and_then(|set| set.split_once(';')) {
            self.cookie = Some(cookie.to_owned());
        }
        match head.split(' ').nth(1) == Some(&status.to_string()) {
            true => Ok(body.to_owned()),
            false => Err(format!("{request}: expected {status}, got {head}").into()),
        }
    }
}

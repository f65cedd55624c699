//! The other process: this program once more, which serves requests that come over a socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use diesel_routed::Consistency;
use serde::{Deserialize, Serialize};

use super::client::{Order, Outcome};
use super::support::wait_until;

/// Holds, in the other process, what it has to know.
const LETTER: &str = "CHECKER_LETTER";

/// What the other process has to know.
#[derive(Serialize, Deserialize)]
struct Letter {
    port: u16,
    links: usize,
    urls: Vec<String>,
    eventual: bool,
}

/// A process that serves requests, with a pool of its own; ends with this value.
pub struct OtherProcess {
    child: Child,
    /// Those in use by no request.
    links: Mutex<Vec<BufReader<TcpStream>>>,
}

impl OtherProcess {
    /// Starts `test` of this program in another process, which has to [`serve`].
    pub fn start(test: &str, urls: Vec<String>, consistency: Consistency, links: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
        let letter = Letter {
            port: listener.local_addr().expect("it is bound").port(),
            links,
            urls,
            eventual: consistency == Consistency::Eventual,
        };
        let child = Command::new(std::env::current_exe().expect("this program is a file"))
            .args([test, "--exact", "--nocapture"])
            .env(LETTER, serde_json::to_string(&letter).expect("plain data"))
            .stdout(Stdio::null())
            .spawn()
            .expect("this program can be run");
        let mut connected = vec![];
        listener.set_nonblocking(true).expect("a socket");
        wait_until("it connects", Duration::from_secs(60), || {
            if let Ok((link, _)) = listener.accept() {
                link.set_nonblocking(false).expect("a socket");
                link.set_nodelay(true).expect("a socket");
                connected.push(BufReader::new(link));
            }
            connected.len() == links
        });
        Self {
            child,
            links: Mutex::new(connected),
        }
    }

    /// Has the other process serve a request.
    pub fn serve(&self, order: &Order) -> Outcome {
        let links = || self.links.lock().expect("no panic while it is held");
        let mut link = links().pop().expect("there are enough");
        send(link.get_mut(), order);
        let outcome = receive(&mut link).expect("the other process answers");
        links().push(link);
        outcome
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // without links it ends by itself, unless something is wrong
        if let Ok(links) = self.links.get_mut() {
            links.clear();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves requests at a site of this process, if it is the other one; tells whether it is.
pub fn serve<S>(start: impl Fn(&[String], Consistency) -> S) -> bool
where
    S: Fn(&Order) -> Outcome + Sync,
{
    let Ok(letter) = std::env::var(LETTER) else {
        return false;
    };
    let letter: Letter = serde_json::from_str(&letter).expect("a letter");
    let consistency = match letter.eventual {
        true => Consistency::Eventual,
        false => Consistency::Session,
    };
    let site = start(&letter.urls, consistency);
    thread::scope(|scope| {
        for _ in 0..letter.links {
            scope.spawn(|| {
                let link = TcpStream::connect(("127.0.0.1", letter.port)).expect("it listens");
                link.set_nodelay(true).expect("a socket");
                let mut link = BufReader::new(link);
                while let Some(order) = receive::<Order>(&mut link) {
                    let outcome = site(&order);
                    send(link.get_mut(), &outcome);
                }
            });
        }
    });
    true
}

fn send(link: &mut TcpStream, message: &impl Serialize) {
    let line = serde_json::to_string(message).expect("plain data") + "\n";
    link.write_all(line.as_bytes())
        .expect("the other process listens");
}

/// `None` if the other process has ended.
fn receive<T: for<'a> Deserialize<'a>>(link: &mut BufReader<TcpStream>) -> Option<T> {
    let mut line = String::new();
    match link.read_line(&mut line) {
        Ok(1..) => Some(serde_json::from_str(&line).expect("a message")),
        _ => None,
    }
}

//! The other process: this program once more, which serves requests that come over a socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use diesel_routed::Consistency;
use serde::{Deserialize, Serialize};

use super::backend::Pool;
use super::visit::{Order, Outcome, Site};
use crate::support::wait_until;

/// Holds, in the other process, what it has to know.
const LETTER: &str = "CHECKER_LETTER";

/// What the other process has to know.
#[derive(Serialize, Deserialize)]
struct Letter {
    port: u16,
    threads: usize,
    urls: Vec<String>,
    eventual: bool,
}

/// A process that serves requests, with a pool of its own; ends with this value.
pub struct OtherProcess {
    child: Child,
    /// One for each thread.
    links: Vec<Mutex<BufReader<TcpStream>>>,
}

impl OtherProcess {
    /// Starts `test` of this program in another process, which has to [`serve`].
    pub fn start(test: &str, urls: Vec<String>, consistency: Consistency, threads: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
        let letter = Letter {
            port: listener.local_addr().expect("it is bound").port(),
            threads,
            urls,
            eventual: consistency == Consistency::Eventual,
        };
        let child = Command::new(std::env::current_exe().expect("this program is a file"))
            .args([test, "--exact", "--nocapture"])
            .env(LETTER, serde_json::to_string(&letter).expect("plain data"))
            .stdout(Stdio::null())
            .spawn()
            .expect("this program can be run");
        let mut other = Self {
            child,
            links: vec![],
        };
        listener.set_nonblocking(true).expect("a socket");
        wait_until("it connects", Duration::from_secs(60), || {
            if let Ok((link, _)) = listener.accept() {
                link.set_nonblocking(false).expect("a socket");
                link.set_nodelay(true).expect("a socket");
                other.links.push(Mutex::new(BufReader::new(link)));
            }
            other.links.len() == threads
        });
        other
    }

    /// Has the other process serve a request.
    pub fn serve(&self, thread: usize, order: &Order) -> Outcome {
        let mut link = self.links[thread]
            .lock()
            .expect("no panic while it is held");
        send(link.get_mut(), order);
        receive(&mut link).expect("the other process answers")
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // without links it ends by itself, unless something is wrong
        self.links.clear();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves requests, if this is the other process; tells whether it was.
pub fn serve(pool: impl Fn(&[String], Consistency) -> Pool) -> bool {
    let Ok(letter) = std::env::var(LETTER) else {
        return false;
    };
    let letter: Letter = serde_json::from_str(&letter).expect("a letter");
    let consistency = match letter.eventual {
        true => Consistency::Eventual,
        false => Consistency::Session,
    };
    let site = Site {
        pool: pool(&letter.urls, consistency),
        consistency,
    };
    thread::scope(|scope| {
        for _ in 0..letter.threads {
            scope.spawn(|| {
                let link = TcpStream::connect(("127.0.0.1", letter.port)).expect("it listens");
                link.set_nodelay(true).expect("a socket");
                let mut link = BufReader::new(link);
                while let Some(order) = receive::<Order>(&mut link) {
                    let outcome = site.serve(&order);
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

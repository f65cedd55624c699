//! Where memcached is, whether it is connected, and when it is tried again.

use std::io;
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::memcached::Memcached;

const DEFAULT_PORT: u16 = 11211;

/// How long a connection may take to open; nobody waits for it.
const DIAL: Duration = Duration::from_secs(1);

/// The first and the longest time for which a server that failed is left alone.
const PAUSE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// A server, by name or address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// Understands `memcached://host`, `memcached://host:port` and both with `[an IPv6 address]`.
    ///
    /// A user and password are refused: they would not be used.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("memcached://")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                (host, port)
            }
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let part_of_name =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        let port = match port.strip_prefix(':') {
            None => port.is_empty().then_some(DEFAULT_PORT)?,
            Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        };
        let valid = !host.is_empty() && host.chars().all(part_of_name);
        valid.then(|| Address {
            host: host.to_owned(),
            port,
        })
    }

    fn dial(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, DIAL) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// The one connection of the process to memcached.
#[derive(Debug, Default)]
pub(super) struct Link {
    state: State,
    outage: Outage,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Closed,
    /// On a thread of its own, because looking up a name takes as long as it wants.
    Dialling(Receiver<io::Result<TcpStream>>),
    Open(Memcached),
}

impl Link {
    /// Talks to memcached until `deadline`; `None` if that failed, or failed not long ago.
    pub(super) fn visit<T>(
        &mut self,
        address: &Address,
        deadline: Instant,
        talk: impl FnOnce(&mut Memcached) -> io::Result<T>,
    ) -> Option<T> {
        if !self.outage.permits(Instant::now()) {
            return None;
        }
        let said = self.open(address, deadline).and_then(|mut memcached| {
            memcached.set_deadline(deadline);
            let said = talk(&mut memcached)?;
            self.state = State::Open(memcached);
            Ok(said)
        });
        let Address { host, port } = address;
        match &said {
            Ok(_) if self.outage.end() => {
                log::info!("shared status: memcached at {host}:{port} answers again");
            }
            Ok(_) => {}
            Err(error) if self.outage.note(Instant::now()) == Failure::First => {
                log::warn!(
                    "shared status: memcached at {host}:{port} does not answer ({error}), \
                     every process asks the servers for itself"
                );
            }
            Err(_) => {}
        }
        said.ok()
    }

    /// Takes the connection out, and opens one if there is none.
    fn open(&mut self, address: &Address, deadline: Instant) -> io::Result<Memcached> {
        let dialled = match std::mem::take(&mut self.state) {
            State::Open(memcached) => return Ok(memcached),
            State::Dialling(dialled) => dialled,
            State::Closed => {
                let (send, dialled) = sync_channel(1);
                let address = address.clone();
                let dial = move || drop(send.send(address.dial()));
                thread::Builder::new()
                    .name("routed-memcached".to_owned())
                    .spawn(dial)?;
                dialled
            }
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match dialled.recv_timeout(left) {
            Ok(stream) => Memcached::new(stream?, deadline),
            Err(RecvTimeoutError::Timeout) => {
                // never a second thread: the next visit asks this one again
                self.state = State::Dialling(dialled);
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Failures since the last success.
#[derive(Debug, Default)]
pub(super) struct Outage {
    failures: u32,
    until: Option<Instant>,
}

/// What a failure means: only the first is worth a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    First,
    Repeated,
}

impl Outage {
    /// Tells whether the server may be tried.
    pub(super) fn permits(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now >= until)
    }

    /// Notes a failure, after which the server is left alone for a while.
    pub(super) fn note(&mut self, now: Instant) -> Failure {
        let [first, longest] = PAUSE;
        let pause = first.saturating_mul(1 << self.failures.min(10));
        self.until = Some(now + pause.min(longest));
        self.failures = self.failures.saturating_add(1);
        match self.failures {
            1 => Failure::First,
            _ => Failure::Repeated,
        }
    }

    /// Notes a success; tells whether it ends an outage.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }
}

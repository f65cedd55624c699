//! The thread of a forwarder, and the connections that it serves.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::listen;
use rustix::net::sockopt::set_socket_linger;

use super::{Counts, Manners};

/// How many may wait to be accepted while the thread is busy.
const BACKLOG: i32 = 128;

/// A dial on loopback that takes longer than this is never answered.
const NEVER: Duration = Duration::from_millis(100);

pub enum Order {
    Targets(Vec<u16>),
    Manners(Manners),
    Cut,
    Count,
}

pub struct Exchange {
    listener: TcpListener,
    bell: UnixStream,
    orders: Receiver<(Order, Sender<()>)>,
    counts: Arc<Counts>,
    targets: Vec<u16>,
    /// Who is next.
    turn: usize,
    manners: Manners,
    links: Vec<Link>,
    /// What fills the queue of the deaf.
    plugs: Vec<TcpStream>,
}

impl Exchange {
    pub fn new(
        listener: TcpListener,
        bell: UnixStream,
        orders: Receiver<(Order, Sender<()>)>,
        counts: Arc<Counts>,
        targets: &[u16],
    ) -> Exchange {
        listener.set_nonblocking(true).expect("a socket");
        bell.set_nonblocking(true).expect("a socket");
        Exchange {
            listener,
            bell,
            orders,
            counts,
            targets: targets.to_vec(),
            turn: 0,
            manners: Manners::Forward,
            links: Vec::new(),
            plugs: Vec::new(),
        }
    }

    /// Serves until the bell is closed.
    pub fn run(mut self) {
        while self.wait() {
            self.accept();
            while let Ok((order, done)) = self.orders.try_recv() {
                self.obey(order);
                self.advance();
                // one that has stopped waiting does not want to know
                let _ = done.send(());
            }
            self.advance();
        }
        self.links.iter().for_each(Link::reset);
    }

    /// Returns when there may be something to do; `false` if there never will be again.
    fn wait(&mut self) -> bool {
        let mut wanted = vec![PollFd::new(&self.bell, PollFlags::IN)];
        if self.manners != Manners::Deaf {
            wanted.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        for link in &self.links {
            link.wants(self.manners, &mut wanted);
        }
        poll(&mut wanted, None).expect("a list of open sockets");
        !matches!(self.bell.read(&mut [0; 64]), Ok(0))
    }

    fn accept(&mut self) {
        while self.manners != Manners::Deaf {
            let Ok((client, from)) = self.listener.accept() else {
                return;
            };
            if self.unplugged(from) {
                continue;
            }
            self.counts.accepted.fetch_add(1, Ordering::SeqCst);
            self.links.push(Link::new(client));
        }
    }

    fn unplugged(&mut self, from: SocketAddr) -> bool {
        let is_it = |plug: &TcpStream| plug.local_addr().is_ok_and(|address| address == from);
        let place = self.plugs.iter().position(is_it);
        place.map(|place| self.plugs.swap_remove(place)).is_some()
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Targets(targets) => (self.targets, self.turn) = (targets, 0),
            Order::Manners(manners) => {
                self.manners = manners;
                match manners {
                    Manners::Deaf => self.close_ears(),
                    _ => listen(&self.listener, BACKLOG).expect("it listens already"),
                }
            }
            Order::Cut => {
                self.links.iter().for_each(Link::reset);
                self.links.clear();
            }
            Order::Count => {}
        }
    }

    /// Makes the kernel's queue as short as can be, and fills it: what comes then is dropped.
    fn close_ears(&mut self) {
        listen(&self.listener, 0).expect("it listens already");
        let address = self.listener.local_addr().expect("it is bound");
        while let Ok(plug) = TcpStream::connect_timeout(&address, NEVER) {
            self.plugs.push(plug);
        }
    }

    /// Moves what can be moved.
    fn advance(&mut self) {
        let mut links = std::mem::take(&mut self.links);
        links.retain_mut(|link| {
            if self.manners == Manners::Forward && link.server.is_none() {
                link.server = self.dial();
                if link.server.is_none() {
                    link.reset();
                    return false;
                }
            }
            let goes_on = link.advance(self.manners);
            if std::mem::take(&mut link.asked) {
                self.counts.round_trips.fetch_add(1, Ordering::SeqCst);
            }
            goes_on
        });
        self.counts.open.store(links.len(), Ordering::SeqCst);
        let unanswered = links.iter().filter(|link| !link.down.begun).count();
        self.counts
            .most_unanswered
            .fetch_max(unanswered, Ordering::SeqCst);
        self.links = links;
    }

    fn dial(&mut self) -> Option<TcpStream> {
        let target = *self.targets.get(self.turn % self.targets.len().max(1))?;
        self.turn += 1;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, target));
        let server = TcpStream::connect_timeout(&address, NEVER).ok()?;
        prepare(&server);
        Some(server)
    }
}

/// A client, the server that it talks to, and what is under way between them.
struct Link {
    client: TcpStream,
    server: Option<TcpStream>,
    up: Flow,
    down: Flow,
    /// The client has begun to speak.
    asked: bool,
    /// It waits for an answer.
    waits: bool,
}

impl Link {
    fn new(client: TcpStream) -> Link {
        prepare(&client);
        Link {
            client,
            server: None,
            up: Flow::default(),
            down: Flow::default(),
            asked: false,
            waits: false,
        }
    }

    /// Adds what it waits for; nothing on a socket that would only report its end again and again.
    fn wants<'a>(&'a self, manners: Manners, wanted: &mut Vec<PollFd<'a>>) {
        let mut want = |socket: &'a TcpStream, from: &Flow, to: &Flow| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, from.has_room());
            flags.set(PollFlags::OUT, !to.waiting.is_empty());
            if !flags.is_empty() {
                wanted.push(PollFd::new(socket, flags));
            }
        };
        match (&self.server, manners) {
            (Some(server), Manners::Forward) => {
                want(&self.client, &self.up, &self.down);
                want(server, &self.down, &self.up);
            }
            _ => want(&self.client, &self.up, &Flow::default()),
        }
    }

    /// Moves what can be moved; `false` when it is over.
    fn advance(&mut self, manners: Manners) -> bool {
        let moved = match (&self.server, manners) {
            (Some(server), Manners::Forward) => {
                let up = self.up.pass(&self.client, server);
                // what came before the server's next word is one question
                self.asked = std::mem::take(&mut self.up.moved) && !self.waits;
                self.waits |= self.asked;
                let down = up.and_then(|()| self.down.pass(server, &self.client));
                self.waits &= !std::mem::take(&mut self.down.moved);
                down
            }
            // to learn that the client has given up
            _ => self.up.fill(&self.client),
        };
        if moved.is_err() {
            self.reset();
            return false;
        }
        let given_up = self.server.is_none() && self.up.ended;
        let over = self.up.over && self.down.over;
        !(given_up || over)
    }

    fn reset(&self) {
        for socket in [Some(&self.client), self.server.as_ref()]
            .into_iter()
            .flatten()
        {
            // one that is closed already is reset enough
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
        }
    }
}

/// One direction of a link.
#[derive(Default)]
struct Flow {
    waiting: Vec<u8>,
    /// The source has said something.
    begun: bool,
    /// And it has since this was last looked at.
    moved: bool,
    /// The source has said all.
    ended: bool,
    /// The other side has got all and knows that it ends.
    over: bool,
}

impl Flow {
    const ROOM: usize = 64 * 1024;

    fn has_room(&self) -> bool {
        !self.ended && self.waiting.len() < Self::ROOM
    }

    fn pass(&mut self, from: &TcpStream, mut to: &TcpStream) -> std::io::Result<()> {
        self.fill(from)?;
        while !self.waiting.is_empty() {
            match to.write(&self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            self.fill(from)?;
        }
        if self.ended && !self.over {
            to.shutdown(Shutdown::Write)?;
            self.over = true;
        }
        Ok(())
    }

    fn fill(&mut self, mut from: &TcpStream) -> std::io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        while self.has_room() {
            match from.read(&mut bytes) {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    (self.begun, self.moved) = (true, true);
                    self.waiting.extend_from_slice(&bytes[..read]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn prepare(socket: &TcpStream) {
    socket.set_nonblocking(true).expect("a socket");
    socket.set_nodelay(true).expect("a socket");
}

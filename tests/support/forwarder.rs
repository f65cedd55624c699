//! A TCP forwarder that behaves as badly as a network can.

mod exchange;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::port::Port;
use exchange::{Exchange, Order};

/// How a [`Forwarder`] treats those who dial it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manners {
    /// Connects each to the next of the targets, in turn; hangs up if that one does not answer, or
    /// if there is none.
    Forward,
    /// Takes connections and says nothing. Open ones carry nothing either; all go on from where they
    /// were when it forwards again.
    Silent,
    /// Takes no connection: a dial waits until the dialler has had enough. Open ones carry nothing.
    Deaf,
}

/// Stands on a port of 127.0.0.1 and passes connections on to servers behind it.
///
/// One thread serves all connections; dropped, it resets them and ends.
pub struct Forwarder {
    port: u16,
    counts: Arc<Counts>,
    orders: Sender<(Order, Sender<()>)>,
    /// Wakes the thread; closed, it ends it.
    bell: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _claim: Option<Port>,
}

#[derive(Default)]
struct Counts {
    accepted: AtomicUsize,
    open: AtomicUsize,
    most_unanswered: AtomicUsize,
    round_trips: AtomicUsize,
}

impl Forwarder {
    /// Forwards from a free port to these ports.
    pub fn new(targets: &[u16]) -> Forwarder {
        let claim = Port::claim();
        Forwarder::start(claim.number(), Some(claim), targets)
    }

    /// Forwards from the port of a server that is dead. Without targets it tells who dials a node
    /// that is not there.
    pub fn in_place_of(port: u16, targets: &[u16]) -> Forwarder {
        Forwarder::start(port, None, targets)
    }

    fn start(port: u16, claim: Option<Port>, targets: &[u16]) -> Forwarder {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.unwrap_or_else(|error| panic!("port {port}: {error}"));
        let (bell, woken) = UnixStream::pair().expect("a pair of sockets");
        let (orders, inbox) = channel();
        let counts = Arc::new(Counts::default());
        let exchange = Exchange::new(listener, woken, inbox, Arc::clone(&counts), targets);
        Forwarder {
            port,
            counts,
            orders,
            bell: Some(bell),
            thread: Some(std::thread::spawn(|| exchange.run())),
            _claim: claim,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends those who dial from now on to other ports; open connections stay where they are.
    pub fn switch(&self, targets: &[u16]) {
        self.tell(Order::Targets(targets.to_vec()));
    }

    pub fn behave(&self, manners: Manners) {
        self.tell(Order::Manners(manners));
    }

    /// Resets all open connections, on both sides.
    pub fn cut(&self) {
        self.tell(Order::Cut);
    }

    /// How many have dialled it so far, those that have just got through included.
    pub fn accepted(&self) -> usize {
        self.tell(Order::Count);
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.tell(Order::Count);
        self.counts.open.load(Ordering::SeqCst)
    }

    /// The most connections at any one time that the server had said nothing on yet.
    pub fn most_unanswered(&self) -> usize {
        self.tell(Order::Count);
        self.counts.most_unanswered.load(Ordering::SeqCst)
    }

    /// How often a client has spoken to a server that had said all it was asked for: the round trips,
    /// in whatever protocol, as long as no client speaks ahead.
    pub fn round_trips(&self) -> usize {
        self.tell(Order::Count);
        self.counts.round_trips.load(Ordering::SeqCst)
    }

    /// Returns when the order has been carried out.
    fn tell(&self, order: Order) {
        let (done, wait) = channel();
        let mut bell = self.bell.as_ref().expect("open until it is dropped");
        self.orders.send((order, done)).expect("the thread runs");
        bell.write_all(&[0]).expect("the thread runs");
        wait.recv().expect("the thread runs");
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.bell = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

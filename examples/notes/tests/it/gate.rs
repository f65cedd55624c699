//! A way to a server on which answers can be held up.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::site::SOON;
use crate::support::wait_until;

/// Answers to requests whose path holds `held` wait here until they are released.
pub struct Gate {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    held: AtomicUsize,
    open: AtomicBool,
}

impl Gate {
    pub fn before(server: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("some port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let state = Arc::<State>::default();
        let (server, shared) = (server.to_owned(), Arc::clone(&state));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(&server).expect("the server runs");
                shared.connect(client, server);
            }
        });
        Self { address, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns when the server has answered so many requests whose answers are held.
    pub fn wait_for_held(&self, answers: usize) {
        wait_until("the server has answered", SOON, || {
            self.state.held.load(Ordering::SeqCst) == answers
        });
    }

    pub fn release(&self) {
        self.state.open.store(true, Ordering::SeqCst);
    }
}

impl State {
    fn connect(self: &Arc<Self>, mut client: TcpStream, mut server: TcpStream) {
        let asked = Arc::new(AtomicBool::new(false));
        let (mut from_server, mut to_client) = (
            server.try_clone().expect("a socket"),
            client.try_clone().expect("a socket"),
        );
        let (state, held) = (Arc::clone(self), Arc::clone(&asked));
        thread::spawn(move || {
            forward(&mut from_server, &mut to_client, |_| {
                if held.swap(false, Ordering::SeqCst) {
                    state.held.fetch_add(1, Ordering::SeqCst);
                    wait_until("it is released", SOON, || state.open.load(Ordering::SeqCst));
                }
            });
        });
        thread::spawn(move || {
            forward(&mut client, &mut server, |request| {
                let line = request.split(|byte| *byte == b'\r').next();
                if line.is_some_and(|line| line.windows(4).any(|word| word == b"held")) {
                    asked.store(true, Ordering::SeqCst);
                }
            });
        });
    }
}

fn forward(from: &mut TcpStream, to: &mut TcpStream, mut before: impl FnMut(&[u8])) {
    let mut buffer = [0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        before(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

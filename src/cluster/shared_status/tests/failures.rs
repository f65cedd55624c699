//! A memcached that is gone, hangs, or is none.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::Server;
use super::*;

/// The longest that a look may take, with room for a machine that has other things to do.
const BOUND: Duration = Duration::from_secs(1);

/// More than the first pause, less than the two first ones together.
const FIRST_PAUSE: Duration = Duration::from_millis(1_100);

static LOG: Log = Log(Mutex::new(vec![]));

/// What was logged in this process.
struct Log(Mutex<Vec<String>>);

impl Log {
    /// The levels of the lines that have this in them.
    fn levels(&self, part: &str) -> String {
        let lines = self.0.lock();
        let lines = lines.iter().filter(|line| line.contains(part));
        let levels = lines.filter_map(|line| line.split(' ').next());
        levels.collect::<Vec<_>>().join(" ")
    }
}

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}", record.level(), record.args());
        self.0.lock().push(line);
    }

    fn flush(&self) {}
}

/// Looks until the server is not asked any more.
fn look_until_shared(shared: &SharedStatus) -> Duration {
    let start = Instant::now();
    while look(shared, 1).1 == Asked::Yes {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "it is used again"
        );
        std::thread::sleep(Duration::from_millis(3));
    }
    start.elapsed()
}

#[test]
fn a_killed_memcached_is_done_without_and_used_again_when_it_is_back() {
    log::set_logger(&LOG).expect("no other test of this binary has a logger");
    log::set_max_level(log::LevelFilter::Info);
    let mut server = Server::start();
    let shared = server.patient_client();
    assert_eq!(look(&shared, 1), (Some(1), Asked::Yes));
    assert_eq!(look(&shared, 2), (Some(1), Asked::No));
    server.kill();
    for load in 3..50 {
        let (time, seen) = timed(|| look(&shared, load));
        assert_eq!(seen, (Some(load), Asked::Yes), "each look asks by itself");
        assert!(time < BOUND, "and does not wait: {time:?}");
    }
    server.restart();
    let time = look_until_shared(&shared);
    assert!(
        time < Duration::from_secs(8),
        "it was tried again after some seconds: {time:?}"
    );
    let levels = LOG.levels(&server.address());
    assert_eq!(
        levels, "WARN INFO",
        "one line as it goes, one as it comes back"
    );
}

#[test]
fn one_that_does_not_run_yet_is_used_when_it_does() {
    let mut server = Server::start();
    server.kill();
    let shared = server.patient_client();
    assert_eq!(look(&shared, 1), (Some(1), Asked::Yes));
    server.restart();
    look_until_shared(&shared);
}

#[test]
fn a_frozen_memcached_is_waited_for_once() {
    let server = Server::start();
    let shared = server.client();
    assert_eq!(look(&shared, 1), (Some(1), Asked::Yes));
    server.freeze();
    let (time, seen) = timed(|| look(&shared, 2));
    assert_eq!(seen, (Some(2), Asked::Yes));
    assert!(time < BOUND, "for a short time: {time:?}");
    let (time, _) = timed(|| (3..100).for_each(|load| _ = look(&shared, load)));
    assert!(
        time < BOUND,
        "then not at all: {time:?} for a hundred looks"
    );
    server.thaw();
    look_until_shared(&shared);
}

#[test]
fn many_threads_wait_for_a_frozen_memcached_together() {
    let server = Server::start();
    let shared = server.client();
    assert_eq!(look(&shared, 1), (Some(1), Asked::Yes));
    server.freeze();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let (time, seen) = timed(|| look(&shared, 2));
                assert_eq!(seen, (Some(2), Asked::Yes));
                assert!(time < BOUND, "not one after the other: {time:?}");
            });
        }
    });
    server.thaw();
}

/// What listens in the place of memcached.
struct Impostor {
    shared: SharedStatus,
    accepted: Arc<AtomicUsize>,
}

impl Impostor {
    /// Does `behave` with each connection; its thread ends with the process.
    fn start(behave: impl Fn(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("memcached://{}", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                behave(stream.unwrap());
            }
        });
        let shared = SharedStatus::memcached(&url).unwrap();
        Self { shared, accepted }
    }

    /// Answers every request with these bytes.
    fn saying(answer: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::start(move |mut stream| {
            let mut request = [0; 1_000];
            while matches!(stream.read(&mut request), Ok(1..)) {
                let _ = stream.write_all(answer.as_ref());
            }
        })
    }
}

#[test]
fn what_fails_is_not_tried_again_at_once() {
    let impostor = Impostor::start(drop);
    let start = Instant::now();
    while start.elapsed() < FIRST_PAUSE {
        assert_eq!(look(&impostor.shared, 1), (Some(1), Asked::Yes));
        std::thread::sleep(Duration::from_millis(3));
    }
    let accepted = impostor.accepted.load(Ordering::Relaxed);
    assert!((1..=2).contains(&accepted), "once a second: {accepted}");
}

#[test]
fn what_is_no_memcached_is_survived() {
    let key = Keys::of(NODE[0], NODE[1]).fresh;
    let item = |length: &str, rest: &str| format!("VALUE {key} 0 {length}\r\n{rest}");
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(),
        "\r\n".to_owned(),
        "END\n".to_owned(),
        "ERROR\r\n".to_owned(),
        "SERVER_ERROR out of memory\r\n".to_owned(),
        "STORED\r\n".to_owned(),
        "VALUE other 0 7\r\n1 7 250\r\nEND\r\n".to_owned(),
        "VALUE\r\n".to_owned(),
        item("7", "1 7 250\r\nEND\r\nEND\r\n"),
        item("7", "1 7 250\r\n").repeat(2) + "END\r\n",
        item("6", "1 7 250\r\nEND\r\n"),
        item("-7", "1 7 250\r\nEND\r\n"),
        item("18446744073709551615", "1 7 250\r\nEND\r\n"),
        item("18446744073709551616", "1 7 250\r\nEND\r\n"),
        item("99999999", "1 7 250\r\nEND\r\n"),
        "x".repeat(100_000),
    ] {
        let shared = Impostor::saying(answer.clone()).shared;
        let (time, seen) = timed(|| (look(&shared, 1), look(&shared, 2)));
        // a surplus shows only when the next answer is read
        let (_, (_, second)) = seen;
        let what: String = answer.chars().take(60).collect();
        assert_eq!(second, Asked::Yes, "{what:?} is no answer");
        assert!(time < BOUND, "{what:?}: {time:?}");
    }
}

#[test]
fn an_endless_answer_ends_in_time() {
    for (what, part, pause) in [
        ("a byte now and then", "V", 5),
        (
            "a line without end",
            "VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV",
            0,
        ),
    ] {
        let impostor = Impostor::start(move |mut stream| {
            while stream.write_all(part.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        let (time, seen) = timed(|| look(&impostor.shared, 1));
        assert_eq!(seen, (Some(1), Asked::Yes), "{what}");
        assert!(time < BOUND, "{what}: {time:?}");
    }
}

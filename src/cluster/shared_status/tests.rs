mod failures;
mod server;
mod sharing;

use std::time::{Duration, Instant};

use proptest::prelude::{prop_assert, prop_assert_eq, prop_assert_ne, proptest};

use super::link::{Address, Failure, Outage};
use super::*;

/// A node whose names nobody would think up as parts of a key.
const NODE: [&str; 2] = ["the shop\r\nflush_all", "db1:5432/ä \0"];

fn numbers(load: u32) -> Numbers {
    Numbers {
        load: Some(load),
        lag: Some(Duration::from_millis(250)),
    }
}

/// The numbers of `NODE`, and whether they had to be asked for; asked, the server says `load`.
fn look(shared: &SharedStatus, load: u32) -> (Option<u32>, Asked) {
    let mut asked = Asked::No;
    let found = shared.numbers(NODE[0], NODE[1], || {
        asked = Asked::Yes;
        Some(numbers(load))
    });
    (found.and_then(|numbers| numbers.load), asked)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Yes,
    No,
}

/// How long `work` takes, and what it returns.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = work();
    (start.elapsed(), value)
}

#[test]
fn only_the_address_of_a_memcached_is_accepted() {
    let address = |host: &str, port| {
        let host = host.to_owned();
        Some(Address { host, port })
    };
    for (url, expected) in [
        ("memcached://cache", address("cache", 11211)),
        ("memcached://cache/", address("cache", 11211)),
        (
            "memcached://cache-1.my_net:11311",
            address("cache-1.my_net", 11311),
        ),
        ("memcached://127.0.0.1:1", address("127.0.0.1", 1)),
        ("memcached://[::1]", address("::1", 11211)),
        ("memcached://[::1]:1", address("::1", 1)),
        ("memcached://::1", None),
        ("memcached://[cache]", None),
        ("memcached://[::1]1", None),
        ("memcached://", None),
        ("memcached://:1", None),
        ("memcached://cache:", None),
        ("memcached://cache:0", None),
        ("memcached://cache:65536", None),
        ("memcached://cache:1:2", None),
        ("memcached://cache/path", None),
        ("memcached://cache?timeout=1", None),
        ("memcached://user:hunter2@cache", None),
        ("memcached://a cache", None),
        ("redis://cache", None),
        ("cache:11211", None),
        ("", None),
    ] {
        assert_eq!(Address::parse(url), expected, "{url}");
    }
}

#[test]
fn a_refused_url_is_not_repeated() {
    let error = SharedStatus::memcached("memcached://user:hunter2@cache").unwrap_err();
    assert_eq!(
        error.to_string(),
        "shared_status: a value that is not shown here is not accepted, write memcached://host:port"
    );
}

#[test]
fn a_server_that_failed_is_left_alone_for_longer_each_time() {
    let start = Instant::now();
    let mut outage = Outage::default();
    assert!(outage.permits(start), "nothing has failed yet");
    assert!(!outage.end(), "so nothing ends");
    let mut now = start;
    for (seconds, expected) in [
        (1, Failure::First),
        (2, Failure::Repeated),
        (4, Failure::Repeated),
        (8, Failure::Repeated),
        (16, Failure::Repeated),
        (30, Failure::Repeated),
        (30, Failure::Repeated),
    ] {
        assert_eq!(outage.note(now), expected, "the first one is told");
        let pause = Duration::from_secs(seconds);
        let just_before = now + pause - Duration::from_millis(1);
        assert!(!outage.permits(just_before), "{seconds} s are not over");
        now += pause;
        assert!(outage.permits(now), "{seconds} s are over");
    }
    assert!(outage.end(), "a success ends it");
    assert_eq!(
        outage.note(now),
        Failure::First,
        "and the next is a new one"
    );
    assert!(outage.permits(now + Duration::from_secs(1)));
}

#[test]
fn nothing_but_our_own_text_is_understood() {
    let of = |load, millis: Option<u64>| {
        let lag = millis.map(Duration::from_millis);
        Some(Numbers { load, lag })
    };
    for (text, expected) in [
        (&b"1 7 250"[..], of(Some(7), Some(250))),
        (b"1 - 250", of(None, Some(250))),
        (b"1 7 -", of(Some(7), None)),
        (b"1 - -", of(None, None)),
        (b"1 0 0", of(Some(0), Some(0))),
        (
            b"1 4294967295 4294967295",
            of(Some(u32::MAX), Some(u32::MAX.into())),
        ),
        (b"1 4294967296 0", None),
        (b"1 7", None),
        (b"1 7 250 1", None),
        (b"1 7 250 ", None),
        (b" 1 7 250", None),
        (b"1  7 250", None),
        (b"1 7 250\n", None),
        (b"1 +7 250", None),
        (b"1 -7 250", None),
        (b"1 07 250", None),
        (b"1 7.5 250", None),
        (b"1 0x7 250", None),
        ("1 ٧ 250".as_bytes(), None),
        (b"1 7 \xff", None),
        (b"2 7 250", None),
        (b"17 250", None),
        (b"", None),
    ] {
        assert_eq!(Numbers::parse(text), expected, "{}", text.escape_ascii());
    }
}

#[test]
fn the_hash_is_the_published_one() {
    let hash = |text: &str| fnv1a(text.bytes());
    assert_eq!(hash(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    assert_eq!(hash("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    assert_eq!(hash("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
}

proptest! {
    #[test]
    fn what_is_written_is_understood(load: Option<u32>, millis: Option<u32>) {
        let lag = millis.map(|millis| Duration::from_millis(millis.into()));
        let numbers = Numbers { load, lag };
        prop_assert_eq!(Numbers::parse(numbers.to_string().as_bytes()), Some(numbers));
    }

    #[test]
    fn any_name_makes_a_valid_key_that_does_not_show_it(cluster: String, node: String) {
        let keys = Keys::of(&cluster, &node);
        for key in [keys.fresh, keys.last, keys.claim] {
            prop_assert!(key.len() <= 250 && key.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn nodes_that_differ_have_keys_that_differ(a: String, b: String, c: String) {
        let joined = a.clone() + &b;
        let key = |cluster: &str, node: &str| Keys::of(cluster, node).fresh;
        if !b.is_empty() {
            prop_assert_ne!(key(&joined, &c), key(&a, &(b + &c)));
        }
    }
}

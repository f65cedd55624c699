//! Several clients of one memcached.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::server::{Server, patient};
use super::*;

#[test]
fn one_asks_and_the_others_read() {
    let server = Server::start();
    let (first, second) = (server.patient_client(), server.patient_client());
    assert_eq!(
        look(&first, 7),
        (Some(7), Asked::Yes),
        "nobody has asked yet"
    );
    assert_eq!(look(&second, 8), (Some(7), Asked::No), "the first one has");
    assert_eq!(
        look(&first, 9),
        (Some(7), Asked::No),
        "it reads its own, too"
    );
    let other = second.numbers(NODE[0], "another node", || Some(numbers(3)));
    assert_eq!(other, Some(numbers(3)), "each node has numbers of its own");
    let whole = second.numbers(NODE[0], NODE[1], || None);
    assert_eq!(whole, Some(numbers(7)), "load and lag are shared");
}

#[test]
fn while_one_asks_the_others_read_the_last_numbers() {
    let server = Server::start();
    let (first, second) = (server.patient_client(), server.patient_client());
    let keys = Keys::of(NODE[0], NODE[1]);
    let found = first.numbers(NODE[0], NODE[1], || {
        assert_eq!(
            look(&second, 1),
            (Some(1), Asked::Yes),
            "there are none yet"
        );
        Some(numbers(2))
    });
    assert_eq!(found, Some(numbers(2)));
    assert_eq!(
        look(&second, 3),
        (Some(2), Asked::No),
        "what the first one stored counts"
    );
    for key in [&keys.fresh, &keys.claim] {
        server.delete(key);
    }
    let found = first.numbers(NODE[0], NODE[1], || {
        assert_eq!(
            look(&second, 4),
            (Some(2), Asked::No),
            "no longer fresh, but good enough"
        );
        Some(numbers(5))
    });
    assert_eq!(found, Some(numbers(5)), "who asks has the new ones");
    assert_eq!(look(&second, 6), (Some(5), Asked::No), "and then all have");
}

#[test]
fn a_server_that_could_not_be_asked_replaces_nothing() {
    let server = Server::start();
    let keys = Keys::of(NODE[0], NODE[1]);
    let shared = server.patient_client();
    assert_eq!(
        shared.numbers(NODE[0], NODE[1], || None),
        None,
        "nothing is known"
    );
    assert_eq!(server.get(&keys.last), "END\r\n", "and nothing is stored");
    server.put(&keys.last, b"1 7 250");
    server.delete(&keys.claim);
    let found = shared.numbers(NODE[0], NODE[1], || None);
    assert_eq!(
        found,
        Some(numbers(7)),
        "the last numbers are better than none"
    );
}

#[test]
fn garbage_counts_as_nothing_and_is_replaced() {
    let server = Server::start();
    let keys = Keys::of(NODE[0], NODE[1]);
    let large = vec![b'1'; 900_000];
    let lines = b"x\r\nEND\r\nVALUE ";
    for garbage in [
        &b""[..],
        b"1 7",
        b"1 -7 0",
        b"\x00\xff\xfe",
        b"END\r\n",
        lines,
        &large,
    ] {
        for key in [&keys.fresh, &keys.last] {
            server.put(key, garbage);
        }
        server.delete(&keys.claim);
        let shared = server.patient_client();
        let what = garbage[..garbage.len().min(20)].escape_ascii();
        assert_eq!(
            look(&shared, 7),
            (Some(7), Asked::Yes),
            "{what} is not used"
        );
        assert_eq!(look(&shared, 8), (Some(7), Asked::No), "{what} is gone");
        for key in [&keys.fresh, &keys.last] {
            let stored = format!("VALUE {key} 0 7\r\n1 7 250\r\nEND\r\n");
            assert_eq!(server.get(key), stored, "{what} is gone");
        }
    }
}

/// Set for a process that this test has started: where its memcached is.
const CHILD: &str = "SHARED_STATUS_CHILD";

/// How long two processes look at the same node, in which its numbers are renewed about twice.
const RUN: Duration = Duration::from_secs(11);

#[test]
fn of_two_processes_one_asks_in_each_life() {
    if let Ok(url) = std::env::var(CHILD) {
        return look_all_the_time(&url);
    }
    let server = Server::start();
    assert_eq!(look(&server.patient_client(), 0), (Some(0), Asked::Yes));
    let children = [spawn(&server), spawn(&server)];
    let [first, second] = children.map(outcome);
    let asked = first.asked + second.asked;
    // memcached counts whole seconds: a life of 5 takes 4 to 5
    assert!(
        (2..=3).contains(&asked),
        "{asked} questions in {RUN:?}: {first:?} {second:?}"
    );
    let looks = first.looks + second.looks;
    assert!(looks > 20 * asked, "and all other {looks} looks read");
    let (short, long) = match first.seen.len() <= second.seen.len() {
        true => (first.seen, second.seen),
        false => (second.seen, first.seen),
    };
    assert!(long.len() - short.len() <= 1, "only the last may be missed");
    assert_eq!(
        short,
        long[..short.len()],
        "both see the same numbers, whoever asked"
    );
}

/// What a process has to tell.
#[derive(Debug)]
struct Outcome {
    asked: usize,
    looks: usize,
    /// The numbers that followed one another.
    seen: Vec<u32>,
}

fn look_all_the_time(url: &str) {
    let shared = patient(url);
    let (mut asked, mut looks, mut seen) = (0, 0, vec![]);
    let start = Instant::now();
    while start.elapsed() < RUN {
        // what nobody else would say
        let load = std::process::id() * 10 + asked;
        let (found, was_asked) = look(&shared, load);
        asked += u32::from(was_asked == Asked::Yes);
        looks += 1;
        let found = found.expect("somebody was asked");
        if seen.last() != Some(&found) {
            seen.push(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen: Vec<_> = seen.iter().map(u32::to_string).collect();
    println!("\noutcome {asked} {looks} {}", seen.join(" "));
}

fn spawn(server: &Server) -> Child {
    let name = std::thread::current().name().unwrap().to_owned();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--nocapture"]);
    command.env(CHILD, server.url()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn outcome(mut child: Child) -> Outcome {
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{lines:#?}");
    let outcome = lines.iter().find_map(|line| line.strip_prefix("outcome "));
    let numbers = outcome.expect("it tells its outcome").split(' ');
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    Outcome {
        asked: numbers[0] as usize,
        looks: numbers[1] as usize,
        seen: numbers[2..].to_vec(),
    }
}

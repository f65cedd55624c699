//! What a client of each framework's example sees while the replica is late.

use std::thread;

use crate::client::{Client, HEADER};
use crate::gate::Gate;
use crate::site::{SOON, Site};
use crate::support::wait_until;

/// More than any of the servers has workers.
const AT_ONCE: usize = 12;

macro_rules! frameworks {
    ($($test:ident)*) => {
        mod axum {
            $(#[test] fn $test() { super::$test(env!("CARGO_BIN_EXE_notes-axum")) })*
        }
        mod actix {
            $(#[test] fn $test() { super::$test(env!("CARGO_BIN_EXE_notes-actix")) })*
        }
        mod rocket {
            $(#[test] fn $test() { super::$test(env!("CARGO_BIN_EXE_notes-rocket")) })*
        }
    };
}

frameworks! {
    a_client_sees_its_own_note_whoever_serves_it
    answers_in_the_wrong_order_lose_nothing
    writes_answered_in_the_wrong_order_lose_nothing
}

fn a_client_sees_its_own_note_whoever_serves_it(program: &str) {
    let site = Site::start(program, 2);
    let [here, there] = &site.processes[..] else {
        panic!("two processes");
    };
    site.pause();
    let mut writer = Client::default();
    let answer = writer.post(&here.url("/notes"), "body=own+note");
    assert_eq!(answer.status, 303, "{}", answer.body);
    let [cookie] = &answer.cookies[..] else {
        panic!("one cookie, not {:?}", answer.cookies);
    };
    is_as_specified(cookie);

    for url in [here.url("/"), there.url("/")] {
        for page in at_once(&writer, &url) {
            assert!(page.contains("own note"), "from {url}: {page}");
        }
        for page in at_once(&Client::default(), &url) {
            assert!(
                !page.contains("own note"),
                "to others {url} reads from the replica, on whichever thread: {page}"
            );
        }
    }
    let read = writer.get(&there.url("/"));
    assert_eq!(read.cookies, [""; 0], "a read sets none, and removes none");

    site.resume();
    for url in [here.url("/"), there.url("/")] {
        wait_until("the replica serves the writer, too", SOON, || {
            assert!(writer.ask(&url).body.contains("own note"), "all the while");
            site.reads_replica(&writer, &url)
        });
        assert!(writer.ask(&url).body.contains("own note"), "by the replica");
    }
}

/// The pages that so many requests at the same time get, each on a connection of its own.
fn at_once(client: &Client, url: &str) -> Vec<String> {
    thread::scope(|scope| {
        let requests: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| client.ask(url).body))
            .collect();
        let pages = requests.into_iter().map(|request| request.join());
        pages.map(|page| page.expect("it is answered")).collect()
    })
}

fn is_as_specified(cookie: &str) {
    let (name, rest) = cookie.split_once('=').expect("a name and a value");
    let (token, attributes) = rest.split_once("; ").expect("attributes");
    let name = name.strip_prefix("routed_").expect("our prefix");
    u32::from_str_radix(name, 16).expect("hexadecimal digits");
    assert!(token.len() < 1024, "{cookie}");
    assert_eq!(token.split('.').count(), 3, "it is signed: {cookie}");
    let age = attributes
        .strip_prefix("Max-Age=")
        .and_then(|rest| rest.strip_suffix("; Path=/; HttpOnly; SameSite=Lax"));
    let age: u32 = age
        .unwrap_or_else(|| panic!("{cookie}"))
        .parse()
        .expect("seconds");
    assert!((690..=701).contains(&age), "{cookie}");
}

fn answers_in_the_wrong_order_lose_nothing(program: &str) {
    let site = Site::start(program, 1);
    let gate = Gate::before(&site.processes[0].address);
    site.pause();
    let mut client = Client::default();
    client.post(&gate.url("/notes"), "body=first+note");
    thread::scope(|scope| {
        let (before, held) = (client.clone(), gate.url("/?held"));
        let read = scope.spawn(move || before.ask(&held));
        gate.wait_for_held(1);
        client.post(&gate.url("/notes"), "body=second+note");
        gate.release();
        client.keep(&read.join().expect("it is answered"));
    });
    let page = client.get(&gate.url("/")).body;
    for note in ["first note", "second note"] {
        assert!(page.contains(note), "{note} is missing: {page}");
    }
}

fn writes_answered_in_the_wrong_order_lose_nothing(program: &str) {
    let site = Site::start(program, 1);
    let gate = Gate::before(&site.processes[0].address);
    let mut client = Client::default();
    thread::scope(|scope| {
        let (before, held) = (client.clone(), gate.url("/notes?held"));
        let first = scope.spawn(move || before.tell(&held, "body=first+note"));
        gate.wait_for_held(1);
        // the replica has the first note, so that its token alone would let the replica serve
        site.pause();
        client.post(&gate.url("/notes"), "body=second+note");
        gate.release();
        client.keep(&first.join().expect("it is answered"));
    });
    let page = client.get(&gate.url("/")).body;
    assert!(
        page.contains("second note"),
        "the last answer is of the first: {page}"
    );
}

#[test]
fn a_program_carries_the_token_in_a_header() {
    let site = Site::start(env!("CARGO_BIN_EXE_notes-axum"), 2);
    let [here, there] = &site.processes[..] else {
        panic!("two processes");
    };
    site.pause();
    let mut program = Client::default();
    let answer = program.post(&here.url("/api/notes"), "own note");
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(answer.cookies, [""; 0]);
    assert!(answer.token.is_some(), "in {HEADER}");
    let url = there.url("/api/notes");
    let read = program.get(&url);
    assert!(read.body.contains("own note"), "{}", read.body);
    assert_eq!(read.token, None, "a read moves no token");
    let others = Client::default().get(&url).body;
    assert!(!others.contains("own note"), "{others}");
    site.resume();
    wait_until("the replica serves it", SOON, || {
        site.reads_replica(&program, &url)
    });
    assert!(program.get(&url).body.contains("own note"));
}

use std::collections::BTreeMap;

use super::*;
use crate::context::tests::cluster;

fn signed() -> TokenCarrier {
    TokenCarrier::new(TokenKeys::new([7; 32]).unwrap())
}

/// A request that writes, and what its client gets.
fn written(carrier: &TokenCarrier) -> (&'static str, String) {
    let request = carrier.resume::<&str>([]);
    request.mark(&cluster());
    let answer = carrier.answer::<&str>(&request, []);
    answer.expect("it has written")
}

#[test]
fn what_a_request_has_written_the_next_one_waits_for() {
    let in_header = signed().header("x-routed-token");
    let table = [
        (TokenCarrier::unsigned(), "cookie", "set-cookie"),
        (signed(), "cookie", "set-cookie"),
        (in_header, "x-routed-token", "x-routed-token"),
    ];
    for (carrier, asked, answered) in table {
        let (name, value) = written(&carrier);
        assert_eq!((carrier.request_header(), name), (asked, answered));
        let sent = value.split(';').next().unwrap();
        assert!(carrier.resume([sent]).is_sticky(), "{sent}");
        assert!(carrier.resume(["", sent]).is_sticky(), "in the second one");
        assert!(!carrier.resume([""]).is_sticky(), "without {sent}");
    }
}

#[test]
fn a_request_that_writes_nothing_is_answered_with_nothing() {
    let carrier = signed();
    let (_, cookie) = written(&carrier);
    let request = carrier.resume([cookie.split(';').next().unwrap()]);
    assert!(request.is_sticky(), "by an earlier request");
    assert_eq!(carrier.answer::<&str>(&request, []), None);
    assert!(request.is_answered());
}

#[test]
fn what_a_cache_may_hand_on_carries_no_token() {
    let table = [
        (vec![], true),
        (vec!["no-store"], true),
        (vec!["private, max-age=60", "max-age=9"], true),
        (vec!["max-age=60, Public"], false),
        (vec!["no-cache", "S-MaxAge = 60"], false),
    ];
    for (cache_control, expected) in table {
        let carrier = signed();
        let request = carrier.resume::<&str>([]);
        request.mark(&cluster());
        let answer = carrier.answer(&request, &cache_control);
        assert_eq!(answer.is_some(), expected, "{cache_control:?}");
    }
}

#[test]
#[should_panic(expected = "is no name of a header in lower case")]
fn a_header_in_upper_case_is_refused() {
    let _ = signed().header("X-Routed-Token");
}

/// A browser with its cookies.
#[derive(Default, Clone)]
struct Browser(BTreeMap<String, String>);

impl Browser {
    fn request(&self, carrier: &TokenCarrier) -> Context {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        carrier.resume([pairs.collect::<Vec<_>>().join("; ")])
    }

    fn receive(&mut self, cookie: &str) {
        let (name, rest) = cookie.split_once('=').unwrap();
        let value = rest.split(';').next().unwrap();
        self.0.insert(name.to_owned(), value.to_owned());
    }
}

fn write(carrier: &TokenCarrier, request: &Context) -> String {
    request.mark(&cluster());
    carrier.answer::<&str>(request, []).unwrap().1
}

#[test]
fn two_tabs_that_write_at_the_same_time_keep_both_tokens() {
    let carrier = signed();
    for _ in 0..200 {
        let mut browser = Browser::default();
        let requests = [browser.request(&carrier), browser.request(&carrier)];
        for request in requests {
            browser.receive(&write(&carrier, &request));
        }
        assert_eq!(browser.0.len(), 2, "in whichever order they are answered");
    }
}

#[test]
fn a_client_that_keeps_writing_keeps_few_cookies() {
    let carrier = signed();
    let mut browser = Browser::default();
    for _ in 0..100 {
        let request = browser.request(&carrier);
        browser.receive(&write(&carrier, &request));
    }
    assert_eq!(browser.0.len(), 8);
    assert!(browser.request(&carrier).is_sticky());
}

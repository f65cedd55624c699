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

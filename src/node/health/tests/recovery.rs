//! How a replica comes back.

use super::*;

#[test]
fn a_replica_is_back_when_it_has_what_was_committed_before_its_return() {
    let lost = |replica: &mut Patient| {
        replica.on(101, replica.lost(100));
        replica.on(110, passed("a"));
    };
    let restarted = |replica: &mut Patient| {
        replica.on(110, passed("b"));
    };
    let cases = [("lost", lost as fn(&mut Patient)), ("restarted", restarted)];
    for (name, leave) in cases {
        let mut replica = replica("up");
        leave(&mut replica);
        let table = [
            (110, 1, "unknown"),
            (111, 2, "unknown"),
            (112, 2, "up"),
            (113, 9, "up"),
        ];
        for (second, lag, expected) in table {
            replica.on(second, passed(if name == "lost" { "a" } else { "b" }));
            replica.on(second, replica.measured(second, lag));
            let fresh = second - lag;
            assert_eq!(
                replica.state(second),
                expected,
                "{name}: fresh as of {fresh} at {second}"
            );
            assert_eq!(replica.eligible(second), expected == "up", "{name}");
        }
    }
}

#[test]
fn while_the_primary_is_silent_a_replica_is_back_with_all_that_is_known_of_it() {
    for (fresh, expected) in [(90, "up"), (89, "unknown")] {
        let mut replica = replica("down");
        replica.on(110, passed("a"));
        let standing = Standing {
            fresh_as_of: Freshness::Known(replica.start + seconds(fresh)),
            newest: Some(replica.start + seconds(90)),
        };
        replica.on(110, Event::Measured(Evidence::Standing(standing)));
        assert_eq!(replica.state(110), expected, "fresh as of {fresh}");
    }
}

#[test]
fn news_of_connections_from_before_its_return_does_not_take_a_replica_out() {
    let mut replica = replica("down");
    replica.on(110, passed("a"));
    replica.on(112, passed("a"));
    replica.on(112, replica.measured(112, 0));
    let old = [replica.lost(109), replica.dial_failed(109, Failure::Death)];
    for event in old {
        assert_eq!(replica.on(113, event), None);
        assert_eq!(replica.state(113), "up");
    }
    assert!(
        replica.on(113, replica.lost(110)).is_some(),
        "opened after it"
    );
}

#[test]
fn a_late_replica_comes_back_at_half_of_the_limit_but_never_below_a_tick_and_a_probe() {
    let table = [
        (10_000, 5_000),
        (5_000, 2_500),
        (4_000, 2_100),
        (2_100, 2_100),
        (1_000, 1_000),
    ];
    for (max_lag, back_at) in table {
        let mut replica = Patient::new(
            Role::Replica,
            HealthSettings {
                max_lag: Some(millis(max_lag)),
                ..settings()
            },
        );
        replica.on(100, passed("a"));
        let reported = |lag| Event::Measured(Evidence::Reported(Some(millis(lag))));
        let mut state = |lag| {
            replica.on(100, reported(lag));
            replica.state(100)
        };
        assert_eq!(state(back_at), "up");
        assert_eq!(state(max_lag + 1), "lagging", "{max_lag}");
        assert_eq!(state(back_at + 1), "lagging", "{max_lag}");
        assert_eq!(state(back_at), "up", "{max_lag}");
    }
}

#[test]
fn the_lag_of_a_replica_grows_between_its_probes() {
    let mut replica = replica("up");
    replica.on(101, replica.measured(101, MAX_LAG - 1));
    assert!(replica.eligible(102), "just within");
    let late = replica.start + seconds(102) + millis(1);
    assert!(!replica.health.is_eligible(late), "whatever the state says");
    assert_eq!(replica.state(102), "up");
}

#[test]
fn the_lag_of_a_replica_that_is_down_is_not_known() {
    let mut replica = replica("up");
    let shown = |replica: &Patient| replica.health.shown_lag(replica.start + seconds(101));
    assert_eq!(shown(&replica), Some(seconds(0)));
    replica.on(101, replica.lost(100));
    assert_eq!(shown(&replica), None, "it may be anywhere by now");
}

#[test]
#[rustfmt::skip]
fn without_a_comparison_it_depends_on_what_can_be_known() {
    let limit = Some(seconds(MAX_LAG));
    let table = [
        (Evidence::Reported(Some(seconds(10))), limit, "up", "the server's own number"),
        (Evidence::Reported(Some(seconds(11))), limit, "lagging", "likewise"),
        (Evidence::Reported(None), limit, "unknown", "it replicates nothing"),
        (Evidence::Reported(None), None, "up", "however late"),
        (Evidence::Furthest, limit, "up", "the best there is while there is no primary"),
        (Evidence::Unreported, limit, "up", "no such thing as lag"),
    ];
    for (evidence, max_lag, expected, why) in table {
        let mut replica = Patient::new(Role::Replica, HealthSettings { max_lag, ..settings() });
        replica.on(100, passed("a"));
        replica.on(100, Event::Measured(evidence));
        assert_eq!(replica.state(100), expected, "{why}");
        assert_eq!(replica.eligible(100), expected == "up", "{why}");
    }
    for (lag, expected) in [(99, "up"), (999, "unknown")] {
        let mut replica = Patient::new(Role::Replica, HealthSettings { max_lag: None, ..settings() });
        replica.on(100, passed("a"));
        replica.on(100, replica.measured(100, lag));
        assert_eq!(replica.state(100), expected, "however late, but no stranger");
    }
}

#[test]
fn a_replica_that_is_up_again_gets_its_share_slowly() {
    let new = replica("up");
    assert_eq!(
        new.health.weight_factor(new.start),
        1.0,
        "the first time it is not"
    );
    let leave: [fn(&Patient) -> [Event; 3]; 3] = [
        |_| [passed("b"), passed("b"), passed("b")],
        |by| {
            [
                by.measured(101, 11),
                by.measured(102, 11),
                by.measured(103, 6),
            ]
        },
        |by| [by.lost(100), passed("a"), passed("a")],
    ];
    for events in leave {
        let mut replica = replica("up");
        for (second, event) in (101..).zip(events(&replica)) {
            replica.on(second, event);
        }
        assert_ne!(replica.state(104), "up");
        replica.on(
            104,
            passed(if events(&replica)[0] == passed("b") {
                "b"
            } else {
                "a"
            }),
        );
        replica.on(104, replica.measured(104, 0));
        for (second, factor) in [(104, 0.1), (114, 0.55), (124, 1.0), (999, 1.0)] {
            let got = replica
                .health
                .weight_factor(replica.start + seconds(second));
            assert!((got - factor).abs() < 1e-9, "{got} at {second}");
        }
    }
    let mut resumed = replica("drained");
    resumed.on(101, Event::Resumed);
    assert!(
        resumed.health.weight_factor(resumed.start + seconds(101)) < 0.2,
        "cold as well"
    );
    resumed.health.settings.slow_start = Duration::ZERO;
    assert_eq!(
        resumed.health.weight_factor(resumed.start + seconds(101)),
        1.0,
        "switched off"
    );
}

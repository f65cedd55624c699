//! When a node is dialled again.

use super::*;

#[test]
fn the_quarantine_doubles_with_each_failed_attempt_until_a_probe_passes() {
    let mut replica = replica("up");
    let mut now = replica.start + seconds(100);
    for quarantine in [1, 2, 4, 8, 16, 30, 30] {
        let failed = Event::ProbeFailed(Failure::Death);
        replica.health.on(failed.clone(), now, Jitter::NONE);
        let until = now + seconds(quarantine);
        replica.health.on(failed, until - millis(1), Jitter::NONE);
        let expected = NodeState::Down { until };
        assert_eq!(
            replica.health.state(now),
            expected,
            "the same death counts once"
        );
        let may_dial = |dialler, at| replica.health.may_dial(dialler, at);
        assert!(
            may_dial(Dialler::Monitor, now),
            "it looks whenever it likes"
        );
        assert!(!may_dial(Dialler::Caller, until), "and it alone");
        now = until;
    }
    replica.health.on(passed("a"), now, Jitter::NONE);
    assert!(replica.health.may_dial(Dialler::Caller, now), "over");
    let change = replica
        .health
        .on(Event::ProbeFailed(Failure::Death), now, Jitter::NONE);
    let first = NodeState::Down {
        until: now + seconds(1),
    };
    assert_eq!(change.map(|change| change.new), Some(first), "begins anew");
}

#[test]
fn the_jitter_is_half_of_a_delay_either_way_but_a_refused_password_waits_at_least_30_seconds() {
    let mut rng = rand::rng();
    let table = [
        (Failure::Death, 500, 1_500),
        (Failure::Load, 50, 150),
        (Failure::Authentication, 30_000, 60_000),
    ];
    for (failure, least, most) in table {
        for _ in 0..100 {
            let watch = Watch::OnDemand;
            let mut replica = Patient::new(
                Role::Replica,
                HealthSettings {
                    watch,
                    ..settings()
                },
            );
            let now = replica.start + seconds(100);
            let failed = Event::ProbeFailed(failure);
            replica.health.on(failed, now, Jitter::draw(&mut rng));
            let may = |after| {
                replica
                    .health
                    .may_dial(Dialler::Caller, now + millis(after))
            };
            assert!(!may(least - 1), "{failure:?}: not before {least} ms");
            assert!(may(most), "{failure:?}: after {most} ms");
        }
    }
}

#[test]
fn a_server_that_was_full_before_it_died_is_quarantined_like_any_other() {
    let mut replica = replica("up");
    for second in 101..106 {
        replica.on(second, replica.dial_failed(second, Failure::Load));
    }
    let until = replica.start + seconds(109);
    let change = replica.on(108, replica.dial_failed(108, Failure::Death));
    assert_eq!(
        change.map(|change| change.new),
        Some(NodeState::Down { until })
    );
}

#[test]
fn the_primary_is_used_while_only_its_dialling_backs_off() {
    let mut primary = primary("up");
    let mut now = primary.start + seconds(100);
    for delay in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
        let failed = Event::ProbeFailed(Failure::Death);
        primary.health.on(failed, now, Jitter::NONE);
        assert!(
            primary.health.is_eligible(now),
            "pooled connections stay in use"
        );
        let redial = now + millis(delay);
        assert!(!primary.health.may_dial(Dialler::Caller, redial - millis(1)));
        assert!(
            primary.health.may_dial(Dialler::Caller, redial),
            "by anyone"
        );
        now = redial;
    }
    primary.health.on(Event::Dialled, now, Jitter::NONE);
    primary
        .health
        .on(Event::ProbeFailed(Failure::Death), now, Jitter::NONE);
    let redial = now + millis(100);
    assert!(
        primary.health.may_dial(Dialler::Caller, redial),
        "a success resets it"
    );
}

#[test]
fn a_full_server_is_dialled_less_often_and_stays_what_it_is() {
    for mut node in [replica("up"), primary("up")] {
        let full = node.dial_failed(101, Failure::Load);
        assert_eq!(node.on(101, full), None);
        let now = node.start + seconds(101);
        assert!(node.health.is_eligible(now), "load is not death");
        assert!(!node.health.may_dial(Dialler::Caller, now + millis(99)));
        assert!(node.health.may_dial(Dialler::Caller, now + millis(100)));
    }
}

#[test]
fn a_refused_password_is_told_once_and_not_tried_for_30_seconds() {
    for mut node in [replica("up"), primary("up"), replica("unknown")] {
        let told = node.on(101, node.dial_failed(101, Failure::Authentication));
        assert_eq!(told.map(|change| change.cause), Some(Cause::Authentication));
        let eligible = node.eligible(101);
        assert_eq!(
            eligible,
            node.state(101) == "up",
            "pooled connections stay in use"
        );
        for (second, may) in [(101, false), (130, false), (146, true)] {
            let now = node.start + seconds(second);
            assert_eq!(
                node.health.may_dial(Dialler::Monitor, now),
                may,
                "at {second}"
            );
        }
        let again = node.on(146, node.dial_failed(146, Failure::Authentication));
        assert_eq!(again, None, "told already");
        node.on(200, Event::Dialled);
        let anew = node.on(201, node.dial_failed(201, Failure::Authentication));
        assert!(anew.is_some(), "it had worked in between");
    }
}

#[test]
fn without_a_monitor_somebody_has_to_try() {
    let watch = Watch::OnDemand;
    let mut replica = Patient::new(
        Role::Replica,
        HealthSettings {
            watch,
            ..settings()
        },
    );
    assert!(replica.eligible(0), "nothing is known yet");
    replica.on(100, passed("a"));
    replica.on(100, replica.measured(100, 3));
    assert!(replica.eligible(9_999), "an old answer is better than none");
    replica.on(200, replica.dial_failed(200, Failure::Death));
    let until = replica.start + seconds(201);
    let before = until - millis(1);
    assert!(!replica.health.is_eligible(before) && replica.health.is_eligible(until));
    let caller = Dialler::Caller;
    assert!(!replica.health.may_dial(caller, before) && replica.health.may_dial(caller, until));
    replica.on(201, Event::Dialled);
    assert!(
        replica.eligible(201),
        "it answers; asked until it is compared"
    );
    replica.on(201, replica.measured(201, 3));
    assert!(!replica.eligible(201), "not back yet");
    let mut primary = Patient::new(
        Role::Primary,
        HealthSettings {
            watch,
            ..settings()
        },
    );
    primary.on(200, primary.dial_failed(200, Failure::Death));
    primary.on(201, Event::Dialled);
    assert_eq!(primary.state(201), "up");
}

mod pace;
mod random;
mod recovery;

use super::*;
use crate::node::history::{Freshness, Lag, Standing};

const MAX_LAG: u64 = 10;
const PATIENCE: Duration = Duration::from_millis(2_100);

pub(super) fn settings() -> HealthSettings {
    HealthSettings {
        watch: Watch::monitored(Duration::from_secs(1), Duration::from_secs(1)),
        max_lag: Some(seconds(MAX_LAG)),
        quarantine: seconds(1),
        slow_start: seconds(20),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A node and the clock that it lives by.
#[derive(Clone)]
struct Patient {
    health: Health,
    start: Instant,
}

impl Patient {
    fn new(role: Role, settings: HealthSettings) -> Self {
        let start = Instant::now();
        Self {
            health: Health::new(role, settings, start),
            start,
        }
    }

    fn on(&mut self, second: u64, event: Event) -> Option<Change> {
        self.health
            .on(event, self.start + seconds(second), Jitter::NONE)
    }

    fn state(&self, second: u64) -> String {
        self.health.state(self.start + seconds(second)).to_string()
    }

    fn eligible(&self, second: u64) -> bool {
        self.health.is_eligible(self.start + seconds(second))
    }

    /// The lag that it has by a comparison at `second`; beyond the clock it is not known.
    fn measured(&self, second: u64, lag: u64) -> Event {
        let now = self.start + seconds(second);
        let fresh_as_of = match second.checked_sub(lag) {
            Some(fresh) => Freshness::Known(self.start + seconds(fresh)),
            None => Freshness::Unknown,
        };
        Event::Measured(Evidence::Standing(Standing {
            fresh_as_of,
            newest: Some(now),
        }))
    }

    fn dial_failed(&self, second: u64, failure: Failure) -> Event {
        let began = self.start + seconds(second);
        Event::DialFailed { began, failure }
    }

    fn lost(&self, opened: u64) -> Event {
        let opened = self.start + seconds(opened);
        Event::ConnectionLost { opened }
    }
}

fn passed(life: &'static str) -> Event {
    let access = Access::ReadWrite;
    let life = Life::new(life);
    Event::ProbePassed { life, access }
}

fn read_only() -> Event {
    let access = Access::ReadOnly;
    let life = Life::new("a");
    Event::ProbePassed { life, access }
}

/// A replica in that state at second 100, last heard of then.
fn replica(state: &str) -> Patient {
    let mut replica = Patient::new(Role::Replica, settings());
    replica.on(100, passed("a"));
    let lag = if state == "lagging" { MAX_LAG + 1 } else { 0 };
    if state != "unknown" {
        replica.on(100, replica.measured(100, lag));
    }
    match state {
        "down" => replica.on(100, replica.lost(100)),
        "drained" => replica.on(100, Event::Drained),
        _ => None,
    };
    assert_eq!(replica.state(100), state, "the start of the test");
    replica
}

/// A primary in that state at second 100.
fn primary(state: &str) -> Patient {
    let mut primary = Patient::new(Role::Primary, settings());
    match state {
        "unknown" => None,
        "read-only" => primary.on(100, read_only()),
        _ => primary.on(100, passed("a")),
    };
    match state {
        "down" => primary.on(100, Event::ProbeFailed(Failure::Death)),
        "drained" => primary.on(100, Event::Drained),
        _ => None,
    };
    assert_eq!(primary.state(100), state, "the start of the test");
    primary
}

/// Checks rows of (event, what it makes of a node in each of the states `from`).
fn check<const N: usize>(
    node: fn(&str) -> Patient,
    from: [&str; N],
    table: &[(&str, Event, [&str; N])],
) {
    for (name, event, expected) in table {
        for (old, new) in from.into_iter().zip(expected) {
            let mut patient = node(old);
            let change = patient.on(101, event.clone());
            assert_eq!(patient.state(101), *new, "{old}: {name}");
            let told = change.map(|change| (change.old.to_string(), change.new.to_string()));
            let anyway = change.is_some_and(|change| change.cause.is_told_anyway());
            let expected = (old != *new || anyway).then(|| (old.to_string(), new.to_string()));
            assert_eq!(told, expected, "{old}: {name}: told if it changed");
        }
    }
}

#[test]
#[rustfmt::skip]
fn every_event_moves_a_replica_as_the_table_says() {
    let by = replica("unknown");
    let from = ["unknown", "up", "lagging", "down", "drained"];
    check(replica, from, &[
        ("a probe passes", passed("a"), ["unknown", "up", "lagging", "unknown", "drained"]),
        ("a probe finds another life", passed("b"), ["unknown", "unknown", "unknown", "unknown", "drained"]),
        ("a probe fails", Event::ProbeFailed(Failure::Death), ["down", "down", "down", "down", "drained"]),
        ("a dial fails", by.dial_failed(101, Failure::Death), ["down", "down", "down", "down", "drained"]),
        ("a dial finds it full", by.dial_failed(101, Failure::Load), from),
        ("its password is wrong", by.dial_failed(101, Failure::Authentication), from),
        ("a dial succeeds", Event::Dialled, from),
        ("a connection is lost", by.lost(100), ["down", "down", "down", "down", "drained"]),
        ("it is not silent", Event::Silence, from),
        ("it is measured as fresh", by.measured(101, 0), ["up", "up", "up", "down", "drained"]),
        ("... as half late", by.measured(101, 6), ["up", "up", "lagging", "down", "drained"]),
        ("... as late", by.measured(101, 11), ["lagging", "lagging", "lagging", "down", "drained"]),
        ("... as a stranger", by.measured(101, 999), ["unknown", "unknown", "unknown", "down", "drained"]),
        ("it is drained", Event::Drained, ["drained"; 5]),
        ("it is resumed", Event::Resumed, ["unknown", "up", "lagging", "down", "up"]),
        ("it becomes the primary", Event::RoleChanged(Role::Primary), ["up", "up", "up", "down", "drained"]),
        ("it stays a replica", Event::RoleChanged(Role::Replica), from),
    ]);
}

#[test]
#[rustfmt::skip]
fn every_event_moves_the_primary_as_the_table_says() {
    let by = primary("unknown");
    let from = ["unknown", "up", "read-only", "down", "drained"];
    check(primary, from, &[
        ("a probe passes", passed("a"), ["up", "up", "up", "up", "drained"]),
        ("a probe finds another life", passed("b"), ["up", "up", "up", "up", "drained"]),
        ("a probe finds it read-only", read_only(), ["read-only", "read-only", "read-only", "read-only", "drained"]),
        ("a probe fails", Event::ProbeFailed(Failure::Death), ["down", "down", "down", "down", "drained"]),
        ("a dial fails", by.dial_failed(101, Failure::Death), ["down", "down", "down", "down", "drained"]),
        ("a dial finds it full", by.dial_failed(101, Failure::Load), from),
        ("its password is wrong", by.dial_failed(101, Failure::Authentication), from),
        ("a dial succeeds", Event::Dialled, from),
        ("a connection is lost", by.lost(100), from),
        ("it is not silent", Event::Silence, from),
        ("it is measured, by mistake", by.measured(101, 11), from),
        ("it is drained", Event::Drained, ["drained"; 5]),
        ("it is resumed", Event::Resumed, ["unknown", "up", "read-only", "down", "up"]),
        ("it becomes a replica", Event::RoleChanged(Role::Replica), ["unknown", "unknown", "unknown", "down", "drained"]),
    ]);
}

#[test]
fn a_drained_node_is_what_it_has_become_when_it_is_resumed() {
    let lost = |by: &Patient| by.lost(100);
    let late = |by: &Patient| by.measured(101, 11);
    let back = |_: &Patient| passed("b");
    let cases = [
        (lost as fn(&Patient) -> Event, "down"),
        (late, "lagging"),
        (back, "unknown"),
    ];
    for (event, expected) in cases {
        let mut replica = replica("drained");
        assert_eq!(replica.on(101, event(&replica)), None, "nobody is told");
        replica.on(102, Event::Resumed);
        assert_eq!(replica.state(102), expected);
    }
}

#[test]
fn whoever_reads_the_state_sees_that_nothing_was_heard_for_too_long() {
    let mut replica = replica("up");
    let at = |more| replica.start + seconds(100) + more;
    assert_eq!(replica.health.state(at(PATIENCE)), NodeState::Up);
    let late = at(PATIENCE + millis(1));
    assert!(matches!(replica.health.state(late), NodeState::Down { .. }));
    assert!(!replica.health.is_eligible(late), "no thread had to tell");
    assert!(!replica.health.may_dial(Dialler::Caller, late));
    let told = replica.health.on(Event::Silence, late, Jitter::NONE);
    let told = told.expect("the first who finds it tells");
    assert_eq!((told.old, told.cause), (NodeState::Up, Cause::Silence));
    assert_eq!(replica.on(103, Event::Silence), None, "once");
    replica.on(110, passed("a"));
    assert_eq!(replica.state(110), "unknown", "back, like any other");
}

#[test]
fn a_change_says_what_was_for_how_long_and_why() {
    let mut replica = replica("up");
    let lines = [
        (
            101,
            replica.measured(101, 11),
            "up -> lagging after 1.0 s: its lag is 11.0 s",
        ),
        (
            103,
            replica.lost(100),
            "lagging -> down after 2.0 s: a connection was lost",
        ),
        (108, passed("a"), "down -> unknown after 5.0 s: it answers"),
        (
            109,
            replica.measured(109, 0),
            "unknown -> up after 1.0 s: its lag is 0.0 s",
        ),
        (
            119,
            replica.dial_failed(119, Failure::Authentication),
            "still up after 10.0 s, but the name or password is not accepted",
        ),
    ];
    for (second, event, line) in lines {
        let change = replica.on(second, event).expect("it changed");
        assert_eq!(change.to_string(), line);
    }
    assert_eq!(Lag::AtLeast(seconds(7)).to_string(), "at least 7.0 s");
}

//! When a context sticks, and what ends it.

use super::*;
use proptest::prelude::*;

const STICKY: Duration = Duration::from_secs(12);

fn clock() -> impl Fn(u64) -> Instant {
    let start = Instant::now();
    move |seconds| start + Duration::from_secs(seconds)
}

#[test]
fn a_write_sticks_from_its_start_until_sticky_for_after_its_end() {
    let at = clock();
    let mut marks = Stickiness::default();
    assert!(!marks.is_sticky(at(0)), "nothing written");
    let ticket = marks.begin(None);
    assert!(
        marks.is_sticky(at(1000)),
        "a running write sticks however long it takes"
    );
    marks.settle(ticket, Outcome::Kept, at(1000), STICKY);
    assert!(
        marks.is_sticky(at(1011)),
        "counted from the end of the write"
    );
    assert!(!marks.is_sticky(at(1012)), "and no longer");
}

#[test]
fn a_proven_failure_gives_back_its_own_ticket_only() {
    let at = clock();
    let mut marks = Stickiness::default();
    let (first, second) = (marks.begin(None), marks.begin(None));
    marks.settle(second, Outcome::GivenBack, at(0), STICKY);
    assert!(marks.is_sticky(at(0)), "the first still runs");
    marks.settle(first, Outcome::Kept, at(0), STICKY);
    let third = marks.begin(None);
    marks.settle(third, Outcome::GivenBack, at(1), STICKY);
    assert!(marks.is_sticky(at(1)), "the first has written");
    assert!(!marks.is_sticky(at(12)), "the failure did not prolong it");
}

#[test]
fn unstick_leaves_the_tickets_of_running_writes() {
    let at = clock();
    let mut marks = Stickiness::default();
    marks.mark(at(0), STICKY);
    marks.unstick();
    assert!(!marks.is_sticky(at(0)), "forgotten");
    let ticket = marks.begin(None);
    marks.unstick();
    assert!(marks.is_sticky(at(0)), "a write runs");
    marks.settle(ticket, Outcome::Kept, at(0), STICKY);
    assert!(marks.is_sticky(at(0)), "and has ended after unstick");
}

#[test]
fn the_marks_of_an_inner_context_reach_the_outer_one() {
    let at = clock();
    let (mut outer, mut inner) = (Stickiness::default(), Stickiness::default());
    inner.mark(at(5), STICKY);
    outer.absorb(&inner);
    assert!(outer.is_sticky(at(16)) && !outer.is_sticky(at(17)));
}

fn position(seq: u64) -> Position {
    format!("mariadb:0-1-{seq}").parse().unwrap()
}

#[test]
fn a_write_whose_server_has_a_history_waits_for_that_and_for_nothing_else() {
    let at = clock();
    let (old, new) = (Era::numbered(1), Era::numbered(2));
    let mut marks = Stickiness::default();
    let mut write = |era, second| {
        let ticket = marks.begin(era);
        marks.settle(ticket, Outcome::Kept, at(second), STICKY);
        marks.need(at(second))
    };
    let since = |second: u64, era| Need::Data {
        ended: Some(Ended {
            at: at(second),
            era,
            until: at(second + 12),
        }),
        reached: None,
        seen: None,
    };
    assert_eq!(write(Some(old), 1), since(1, old));
    assert_eq!(
        write(Some(old), 2),
        since(2, old),
        "the later one includes it"
    );
    assert_eq!(
        write(Some(new), 3),
        Need::Primary,
        "two eras: the old one by time"
    );
    assert_eq!(marks.need(at(13)), Need::Primary);
    assert_eq!(marks.need(at(14)), since(3, new));
    assert_eq!(
        marks.need(at(1_000)),
        since(3, new),
        "however long it takes"
    );
    let met = |second, told| {
        let who = Who {
            node: None,
            server: None,
        };
        let tells = |_: &Ended| told;
        since(3, new).met_by(who, at(second), tells, |_| Coverage::No)
    };
    assert_eq!(met(1_000, Some(false)), Has::NotAll);
    assert_eq!(met(4, Some(true)), Has::All);
    assert_eq!(met(14, None), Has::NotAll, "where nothing can be told");
    assert_eq!(met(15, None), Has::All, "time ends it");
}

#[test]
fn a_write_whose_end_is_not_known_ends_by_time_alone() {
    let at = clock();
    let mut marks = Stickiness::default();
    let ticket = marks.begin(Some(Era::numbered(1)));
    marks.doubt(ticket);
    marks.settle(ticket, Outcome::Kept, at(0), STICKY);
    assert_eq!(marks.need(at(11)), Need::Primary);
    assert_eq!(marks.need(at(12)), Need::Nothing);
}

#[test]
fn a_position_is_waited_for_until_it_is_reached_or_found_void() {
    let at = clock();
    let era = Era::numbered(1);
    let mut marks = Stickiness::default();
    let ticket = marks.begin(Some(era));
    marks.settle(ticket, Outcome::Kept, at(1), STICKY);
    marks.reach(position(5), at(2));
    let need = marks.need(at(3));
    let Need::Data {
        ended: None,
        reached: Some(reached),
        seen: None,
    } = &need
    else {
        panic!("{need:?}");
    };
    assert_eq!(reached.position, position(5));
    assert_eq!(
        reached.same_as.map(|ended| ended.at),
        Some(at(1)),
        "either will do"
    );
    assert_eq!(marks.need(at(1_000)), need, "however long it takes");
    marks.resume(position(9), at(1_005));
    let Need::Data {
        reached: Some(reached),
        ..
    } = marks.need(at(1_000))
    else {
        panic!("it is waited for");
    };
    assert_eq!((reached.position, reached.same_as), (position(9), None));
    marks.void();
    assert_eq!(marks.need(at(1_004)), Need::Primary, "time counts");
    assert_eq!(marks.need(at(1_005)), Need::Nothing);
}

#[test]
fn a_position_that_was_read_before_a_write_ended_says_nothing_of_it() {
    let at = clock();
    let mut marks = Stickiness::default();
    let ticket = marks.begin(Some(Era::numbered(1)));
    marks.settle(ticket, Outcome::Kept, at(2), STICKY);
    marks.reach(position(5), at(1));
    assert!(matches!(
        marks.need(at(3)),
        Need::Data {
            ended: Some(_),
            reached: Some(_),
            seen: None,
        }
    ));
}

/// A step of an interleaving: begin a write, or end the n-th running one.
#[derive(Debug, Clone)]
enum Step {
    Begin,
    End(usize, Outcome),
    Unstick,
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![Just(Outcome::Kept), Just(Outcome::GivenBack)];
    prop_oneof![
        3 => Just(Step::Begin),
        3 => (0usize..4, outcome).prop_map(|(n, outcome)| Step::End(n, outcome)),
        1 => Just(Step::Unstick),
        2 => Just(Step::Tick),
    ]
}

proptest! {
    #[test]
    fn sticky_exactly_while_a_write_runs_or_has_ended_recently(
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let at = clock();
        let mut marks = Stickiness::default();
        let (mut now, mut running, mut last_kept) = (0, Vec::new(), None);
        for step in steps {
            match step {
                Step::Begin => running.push(marks.begin(None)),
                Step::End(n, outcome) if n < running.len() => {
                    marks.settle(running.remove(n), outcome, at(now), STICKY);
                    if outcome == Outcome::Kept {
                        last_kept = Some(now);
                    }
                }
                Step::End(..) => {}
                Step::Unstick => {
                    marks.unstick();
                    last_kept = None;
                }
                Step::Tick => now += 5,
            }
            let expected = !running.is_empty()
                || last_kept.is_some_and(|kept: u64| now < kept + STICKY.as_secs());
            prop_assert_eq!(marks.is_sticky(at(now)), expected);
        }
    }
}

mod world;

use super::*;
use crate::position::WalPosition;

/// One tick and one probe.
const PATIENCE: Duration = Duration::from_millis(2_100);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn clock() -> impl Fn(u64) -> Instant {
    let start = Instant::now();
    move |second| start + seconds(second)
}

fn on_timeline(timeline: u32, lsn: u64) -> Position {
    Position::Postgres(WalPosition {
        system: 1,
        timeline,
        lsn,
    })
}

fn lsn(lsn: u64) -> Position {
    on_timeline(1, lsn)
}

fn source(place: usize, life: &str) -> Source {
    Source {
        place,
        life: Life::new(life),
    }
}

/// A history of (second, LSN) samples of one primary.
fn history(at: impl Fn(u64) -> Instant, samples: &[(u64, u64)]) -> History {
    let mut history = History::default();
    for (second, position) in samples {
        history.record(&source(0, "a"), at(*second), lsn(*position));
    }
    history
}

/// D2: the time of the newest sample that the replica has applied.
#[test]
fn a_replica_is_as_fresh_as_the_newest_sample_that_it_has_applied() {
    let at = clock();
    let history = history(&at, &[(1, 100), (2, 200), (3, 300)]);
    let table = [
        (
            99,
            Freshness::Before(at(1)),
            "below the oldest: at least that old",
        ),
        (100, Freshness::Known(at(1)), "exactly there"),
        (199, Freshness::Known(at(1)), "not quite the second"),
        (200, Freshness::Known(at(2)), "the second"),
        (300, Freshness::Known(at(3)), "the newest"),
        (999, Freshness::Known(at(3)), "ahead of what is known"),
    ];
    for (replica, expected, why) in table {
        assert_eq!(
            history.compare(&lsn(replica)).fresh_as_of,
            expected,
            "{why}"
        );
    }
    let stranger = history.compare(&on_timeline(2, 999));
    assert_eq!(stranger.fresh_as_of, Freshness::Unknown, "another timeline");
}

/// D1: the same position again refreshes its time.
#[test]
fn on_an_idle_primary_an_equal_replica_stays_fresh_and_a_late_one_does_not() {
    let at = clock();
    let history = history(&at, &[(1, 100), (2, 200), (3, 200), (60, 200)]);
    assert!(history.compare(&lsn(200)).includes(at(60)), "equal");
    assert_eq!(
        history.compare(&lsn(199)).fresh_as_of,
        Freshness::Known(at(1)),
        "what it lacks was committed after the first sample"
    );
}

/// D3: the age of the data counts by itself, so that a dead monitor fails safe.
#[test]
fn the_age_grows_from_decision_to_decision_but_a_caught_up_replica_is_shown_as_0() {
    let at = clock();
    let history = history(&at, &[(1, 100), (2, 200)]);
    let (equal, behind) = (history.compare(&lsn(200)), history.compare(&lsn(150)));
    for (now, age) in [(2, 0), (3, 1), (4, 2)] {
        assert_eq!(equal.lag(at(now), PATIENCE), Lag::Known(seconds(age)));
        assert_eq!(behind.lag(at(now), PATIENCE), Lag::Known(seconds(age + 1)));
        assert_eq!(equal.shown_lag(at(now), PATIENCE), Lag::Known(seconds(0)));
        assert_eq!(
            behind.shown_lag(at(now), PATIENCE),
            Lag::Known(seconds(age + 1)),
            "shown as it counts"
        );
    }
}

/// D4: few samples, close together where it matters; below the oldest the lag is infinite.
#[test]
fn a_day_is_kept_in_less_than_200_samples_an_eighth_of_their_age_apart() {
    let at = clock();
    let mut history = History::default();
    let mut most = 0;
    for second in 0..=100_000 {
        history.record(&source(0, "a"), at(second), lsn(second + 1));
        most = most.max(history.samples.len());
    }
    assert!(most < 200, "{most} samples");
    let now = at(100_000);
    let sent: Vec<_> = history.samples.iter().map(|sample| sample.sent).collect();
    for pair in sent.windows(2) {
        let (gap, age) = (pair[1] - pair[0], now - pair[1]);
        assert!(
            gap <= seconds(1).max(age / 8),
            "{gap:?} apart after {age:?}"
        );
    }
    let age = now - sent[0];
    assert!(
        age <= KEPT_FOR && age > KEPT_FOR * 7 / 8,
        "kept for {age:?}"
    );
    let Lag::Known(lag) = history.compare(&lsn(90_001)).age(now) else {
        panic!("a replica within the day has a lag");
    };
    assert!(lag >= seconds(10_000) && lag <= seconds(11_250), "{lag:?}");
    let lost = history.compare(&lsn(1)).age(now);
    assert_eq!(lost, Lag::AtLeast(age), "older than anything known");
    assert!(!lost.is_within(Duration::MAX), "which is infinite");
}

/// D5: until the primary was sampled nothing is known; one pass is enough.
#[test]
fn at_the_start_one_sample_of_the_primary_is_enough() {
    let at = clock();
    let mut history = History::default();
    let before = history.compare(&lsn(100));
    assert_eq!(before.fresh_as_of, Freshness::Unknown);
    assert_eq!(before.age(at(9)), Lag::Unknown);
    history.record(&source(0, "a"), at(1), lsn(100));
    let after = history.compare(&lsn(100));
    assert_eq!(after.age(at(1)), Lag::Known(seconds(0)));
}

/// D6: another server, life or timeline, or a position that went back.
#[test]
fn a_break_in_the_history_of_the_primary_clears_it() {
    let at = clock();
    let same = || source(0, "a");
    let table = [
        (same(), 3, lsn(300), Recorded::Continued, "goes on"),
        (same(), 3, lsn(200), Recorded::Continued, "idle"),
        (
            same(),
            2,
            lsn(200),
            Recorded::Continued,
            "idle, at the same instant",
        ),
        (same(), 1, lsn(150), Recorded::Late, "overtaken"),
        (same(), 3, lsn(199), Recorded::WentBack, "a commit was lost"),
        (
            same(),
            3,
            on_timeline(2, 300),
            Recorded::Begun,
            "another timeline",
        ),
        (
            source(1, "a"),
            3,
            lsn(300),
            Recorded::Begun,
            "another server",
        ),
        (source(0, "b"), 3, lsn(300), Recorded::Begun, "another life"),
        (
            source(0, "b"),
            3,
            lsn(199),
            Recorded::WentBack,
            "a crash has lost a commit",
        ),
    ];
    for (from, second, position, expected, why) in table {
        let mut history = history(&at, &[(1, 100), (2, 200)]);
        let (era, old) = (history.era(), lsn(100));
        assert_eq!(
            history.record(&from, at(second), position.clone()),
            expected,
            "{why}"
        );
        let goes_on = matches!(expected, Recorded::Continued | Recorded::Late);
        assert_eq!(history.era() == era, goes_on, "{why}: the era");
        let known = matches!(history.compare(&old).fresh_as_of, Freshness::Known(_));
        assert_eq!(known, goes_on, "{why}: what a replica had applied before");
        if expected != Recorded::Late {
            assert!(
                history.compare(&position).includes(at(second)),
                "{why}: passed it"
            );
        }
    }
}

/// D7: the primary is silent.
#[test]
fn a_silent_primary_freezes_the_lag_of_ordinary_blocks_only() {
    let at = clock();
    let history = history(&at, &[(1, 100), (2, 200), (3, 300)]);
    let (equal, behind) = (history.compare(&lsn(300)), history.compare(&lsn(100)));
    for (now, equal_lag, behind_lag) in [(5, 2, 4), (6, 0, 2), (600, 0, 2)] {
        let (now, age) = (at(now), seconds(now - 3));
        assert_eq!(equal.lag(now, PATIENCE), Lag::Known(seconds(equal_lag)));
        assert_eq!(behind.lag(now, PATIENCE), Lag::Known(seconds(behind_lag)));
        assert_eq!(
            equal.age(now),
            Lag::Known(age),
            "counts on for a limit of its own"
        );
        assert_eq!(equal.shown_lag(now, PATIENCE), Lag::Known(seconds(0)));
    }
}

#[test]
fn a_primary_without_gtids_has_no_history() {
    let at = clock();
    let mariadb = |text| Position::parse_mariadb(text).unwrap();
    let mut history = History::default();
    history.record(&source(0, "a"), at(1), mariadb("0-1-1"));
    let recorded = history.record(&source(0, "a"), at(2), mariadb(""));
    assert_eq!(recorded, Recorded::NoPosition);
    let standing = history.compare(&mariadb("0-1-1"));
    assert_eq!(standing.age(at(2)), Lag::Unknown, "not 0");
}

#[test]
fn a_write_is_on_a_replica_that_is_fresh_as_of_its_end_within_one_era() {
    let at = clock();
    let mut history = history(&at, &[(1, 100), (2, 200)]);
    let (ended, era) = (at(2), history.era());
    assert!(history.compare(&lsn(200)).includes(ended));
    assert!(!history.compare(&lsn(199)).includes(ended));
    history.record(&source(1, "z"), at(3), lsn(300));
    assert_ne!(era, history.era(), "void after a failover");
}

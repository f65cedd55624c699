//! A simulated primary and replica, to see that the lag is never under-estimated.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::position::WalPosition;

/// The longest time between the answer to one probe and the next probe.
const WAIT: u64 = 1_100;
/// The longest way to or from a server.
const WAY: u64 = 100;
/// A tick, from probe to probe, and a probe.
const TICK_AND_PROBE: u64 = WAIT + 2 * WAY + 2 * WAY;

/// All times in milliseconds.
#[derive(Debug, Clone)]
struct World {
    /// When each change was committed.
    committed: Vec<u64>,
    /// When the replica applied it.
    applied: Vec<u64>,
    primary: Vec<Probe>,
    replica: Vec<Probe>,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    sent: u64,
    read: u64,
    answered: u64,
}

impl World {
    /// What the primary shows at `time`: the number of changes committed so far.
    fn committed_by(&self, time: u64) -> usize {
        self.committed.partition_point(|commit| *commit <= time)
    }

    fn applied_by(&self, time: u64) -> usize {
        self.applied.partition_point(|apply| *apply <= time)
    }

    /// The age of the oldest commit that is not among the first `applied`.
    fn true_lag(&self, applied: usize, now: u64) -> u64 {
        match self.committed.get(applied) {
            Some(commit) => now.saturating_sub(*commit),
            None => 0,
        }
    }

    /// Every answer in the order in which it arrives.
    fn answers(&self) -> Vec<(Probe, Answer)> {
        let primary = self.primary.iter().map(|probe| (*probe, Answer::Primary));
        let replica = self.replica.iter().map(|probe| (*probe, Answer::Replica));
        let mut answers: Vec<_> = primary.chain(replica).collect();
        answers.sort_by_key(|(probe, _)| probe.answered);
        answers
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Primary,
    Replica,
}

fn position(changes: usize) -> Position {
    Position::Postgres(WalPosition {
        system: 1,
        timeline: 1,
        lsn: changes as u64,
    })
}

fn probes(count: usize) -> impl Strategy<Value = Vec<Probe>> {
    vec((0..=WAIT, 0..=WAY, 0..=WAY), count).prop_map(|steps| {
        let mut now = 0;
        let probe = |(wait, there, back)| {
            let sent = now + wait;
            let read = sent + there;
            now = read + back;
            Probe {
                sent,
                read,
                answered: now,
            }
        };
        steps.into_iter().map(probe).collect()
    })
}

fn world() -> impl Strategy<Value = World> {
    let gap = prop_oneof![0u64..50, 0u64..3_000];
    let delay = prop_oneof![5 => 0u64..50, 1 => 0u64..10_000];
    // the probes of the primary may end early: a dead monitor
    let primary = (0usize..60).prop_flat_map(probes);
    (vec((gap, delay), 0..80), primary, probes(60)).prop_map(|(changes, primary, replica)| {
        let (mut committed, mut applied) = (Vec::new(), Vec::new());
        for (gap, delay) in changes {
            let commit = committed.last().unwrap_or(&0) + gap;
            let apply = (commit + delay).max(*applied.last().unwrap_or(&0));
            committed.push(commit);
            applied.push(apply);
        }
        World {
            committed,
            applied,
            primary,
            replica,
        }
    })
}

/// Runs through the world and checks `standing`, the changes of the replica that were read and the
/// samples answered so far, at every answer and right before the next one.
fn watch(
    world: &World,
    mut check: impl FnMut(Standing, usize, &[Probe], u64) -> Result<(), TestCaseError>,
    start: Instant,
) -> Result<(), TestCaseError> {
    let source = Source {
        place: 0,
        life: Life::new("a"),
    };
    let (mut history, mut replica, mut samples) = (History::default(), None, Vec::new());
    let answers = world.answers();
    for (place, (probe, answer)) in answers.iter().enumerate() {
        match answer {
            Answer::Primary => {
                let sent = start + Duration::from_millis(probe.sent);
                history.record(&source, sent, position(world.committed_by(probe.read) + 1));
                samples.push(*probe);
            }
            Answer::Replica => replica = Some(world.applied_by(probe.read)),
        }
        let Some(applied) = replica else { continue };
        let standing = history.compare(&position(applied + 1));
        let next = answers.get(place + 1).map(|(probe, _)| probe.answered);
        for now in [probe.answered, next.unwrap_or(probe.answered + 5_000)] {
            check(standing, applied, &samples, now)?;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_lag_is_never_under_estimated(world in world()) {
        let start = Instant::now();
        let check = |standing: Standing, _, _: &[Probe], now| {
            let truth = world.true_lag(world.applied_by(now), now);
            let age = standing.age(start + Duration::from_millis(now));
            let limit = Duration::from_millis(truth.saturating_sub(1));
            prop_assert!(truth == 0 || !age.is_within(limit), "{age:?} at {now}, in truth {truth}");
            Ok(())
        };
        watch(&world, check, start)?;
    }

    #[test]
    fn it_is_over_estimated_by_a_tick_a_probe_and_what_was_thinned_out(world in world()) {
        let start = Instant::now();
        let check = |standing: Standing, applied, samples: &[Probe], now| {
            let truth = world.true_lag(applied, now);
            // as long as the primary is probed; and something must have been seen before
            let alive = samples.last().is_some_and(|last| now <= last.sent + TICK_AND_PROBE);
            let comparable = samples.iter().any(|sample| sample.read < now - truth);
            if alive && comparable {
                let age = standing.age(start + Duration::from_millis(now)).known();
                prop_assert!(age.is_some(), "a sample was applied");
                let age = age.unwrap().as_millis() as u64;
                let bound = truth + TICK_AND_PROBE + age / u64::from(SPACING);
                prop_assert!(age <= bound, "{age} at {now}, in truth {truth}");
            }
            Ok(())
        };
        watch(&world, check, start)?;
    }

    #[test]
    fn a_write_that_a_replica_includes_is_there(world in world(), probed in 0usize..80) {
        let start = Instant::now();
        let check = |standing: Standing, applied, _: &[Probe], _| {
            if let Some(commit) = world.committed.get(probed) {
                // it ended a little after its commit
                let ended = start + Duration::from_millis(commit + 1);
                prop_assert!(!standing.includes(ended) || applied > probed);
            }
            Ok(())
        };
        watch(&world, check, start)?;
    }
}

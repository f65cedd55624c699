//! The table of decisions.

use super::*;
use std::time::Duration;

const READ: Demand<'static> = Demand::Scanned(&Need::Read);

fn outside() -> Facts<'static> {
    Facts {
        demand: READ,
        transaction: Transaction::None,
        session_state: false,
        forced: false,
        block: None,
    }
}

fn block(consistency: Consistency) -> Facts<'static> {
    Facts {
        block: Some(BlockFacts {
            consistency,
            used_primary: false,
            pin: PinFacts::None,
        }),
        ..outside()
    }
}

fn with(facts: Facts<'static>, change: impl FnOnce(&mut BlockFacts)) -> Facts<'static> {
    let mut block = facts.block.unwrap();
    change(&mut block);
    Facts {
        block: Some(block),
        ..facts
    }
}

#[test]
fn the_first_rule_that_applies_wins() {
    use {Consistency::*, ReplicaFacts as R, Role::*};
    let session = || block(Session);
    let stuck = |c| with(block(c), |b| b.used_primary = true);
    let pinned = |c, pin| with(block(c), |b| b.pin = pin);
    let demand = |facts, demand| Facts { demand, ..facts };
    let lag = MaxLag(Duration::from_secs(1));
    let table = [
        // 1: a transaction stays where it is
        (
            Facts {
                transaction: Transaction::ReadWrite,
                ..session()
            },
            R::Fit,
            Primary,
            Reason::Transaction,
        ),
        (
            Facts {
                transaction: Transaction::ReadOnly(Replica),
                ..stuck(Session)
            },
            R::None,
            Replica,
            Reason::ReadOnlyTransaction,
        ),
        (
            demand(
                Facts {
                    transaction: Transaction::ReadOnly(Replica),
                    ..session()
                },
                Demand::Scanned(&Need::Write),
            ),
            R::Fit,
            Replica,
            Reason::ReadOnlyTransaction,
        ),
        // 2: what needs the primary
        (
            demand(session(), Demand::Scanned(&Need::Write)),
            R::Fit,
            Primary,
            Reason::Write,
        ),
        (
            demand(session(), Demand::Scanned(&Need::Locking)),
            R::Fit,
            Primary,
            Reason::Locking,
        ),
        (
            demand(session(), Demand::Scanned(&Need::SessionState)),
            R::Fit,
            Primary,
            Reason::SessionState,
        ),
        (
            demand(session(), Demand::Scanned(&Need::Unknown)),
            R::Fit,
            Primary,
            Reason::Unknown,
        ),
        (
            demand(session(), Demand::Refused),
            R::Fit,
            Primary,
            Reason::ReadOnlyRefused,
        ),
        (
            Facts {
                session_state: true,
                ..session()
            },
            R::Fit,
            Primary,
            Reason::SessionState,
        ),
        // 3: asked for
        (
            Facts {
                forced: true,
                ..outside()
            },
            R::Fit,
            Primary,
            Reason::Forced,
        ),
        (
            Facts {
                forced: true,
                ..session()
            },
            R::Fit,
            Primary,
            Reason::Forced,
        ),
        (block(Strong), R::Fit, Primary, Reason::Forced),
        (block(PrimaryPreferred), R::Fit, Primary, Reason::Forced),
        // 4: not in a block
        (outside(), R::Fit, Primary, Reason::PrimaryMode),
        // 5: the block has used the primary
        (stuck(Session), R::Fit, Primary, Reason::Stuck),
        (stuck(Eventual), R::Fit, Primary, Reason::Stuck),
        // 6, 7: the block has a replica
        (
            pinned(Session, PinFacts::Current),
            R::None,
            Replica,
            Reason::Pinned,
        ),
        (
            pinned(Session, PinFacts::Behind),
            R::Fit,
            Primary,
            Reason::NotCaughtUp,
        ),
        (
            pinned(Eventual, PinFacts::Behind),
            R::Fit,
            Replica,
            Reason::Pinned,
        ),
        // 8, 9, 10: a replica is looked for
        (session(), R::Fit, Replica, Reason::Distributed),
        (session(), R::Behind, Primary, Reason::NotCaughtUp),
        (block(Eventual), R::Behind, Replica, Reason::Distributed),
        (session(), R::None, Primary, Reason::NoReplica),
        (block(Eventual), R::None, Primary, Reason::NoReplica),
        (block(lag), R::Fit, Replica, Reason::Distributed),
        (block(lag), R::Late, Primary, Reason::Lagging),
        (session(), R::Late, Primary, Reason::Lagging),
        (block(Eventual), R::Late, Primary, Reason::Lagging),
        (block(lag), R::Behind, Primary, Reason::NotCaughtUp),
        (
            pinned(lag, PinFacts::Current),
            R::Fit,
            Replica,
            Reason::Pinned,
        ),
        (
            pinned(lag, PinFacts::Late),
            R::Fit,
            Primary,
            Reason::Lagging,
        ),
        (
            pinned(Session, PinFacts::Gone),
            R::Fit,
            Primary,
            Reason::NoReplica,
        ),
        (
            pinned(Eventual, PinFacts::Gone),
            R::Fit,
            Replica,
            Reason::Distributed,
        ),
    ];
    for (facts, replicas, target, reason) in table {
        let expected = Decision { target, reason };
        assert_eq!(
            decide(&facts, || replicas),
            expected,
            "{facts:?} with {replicas:?}"
        );
    }
}

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
            Rule::Transaction,
        ),
        (
            Facts {
                transaction: Transaction::ReadOnly(Replica),
                ..stuck(Session)
            },
            R::None,
            Replica,
            Rule::ReadOnlyTransaction,
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
            Rule::ReadOnlyTransaction,
        ),
        // 2: what needs the primary
        (
            demand(session(), Demand::Scanned(&Need::Write)),
            R::Fit,
            Primary,
            Rule::Write,
        ),
        (
            demand(session(), Demand::Scanned(&Need::Locking)),
            R::Fit,
            Primary,
            Rule::Locking,
        ),
        (
            demand(session(), Demand::Scanned(&Need::SessionState)),
            R::Fit,
            Primary,
            Rule::SessionState,
        ),
        (
            demand(session(), Demand::Scanned(&Need::Unknown)),
            R::Fit,
            Primary,
            Rule::Unknown,
        ),
        (
            demand(session(), Demand::Refused),
            R::Fit,
            Primary,
            Rule::ReadOnlyRefused,
        ),
        (
            Facts {
                session_state: true,
                ..session()
            },
            R::Fit,
            Primary,
            Rule::SessionState,
        ),
        // 3: asked for
        (
            Facts {
                forced: true,
                ..outside()
            },
            R::Fit,
            Primary,
            Rule::Forced,
        ),
        (
            Facts {
                forced: true,
                ..session()
            },
            R::Fit,
            Primary,
            Rule::Forced,
        ),
        (block(Strong), R::Fit, Primary, Rule::Forced),
        (block(PrimaryPreferred), R::Fit, Primary, Rule::Forced),
        // 4: not in a block
        (outside(), R::Fit, Primary, Rule::PrimaryMode),
        // 5: the block has used the primary
        (stuck(Session), R::Fit, Primary, Rule::Stuck),
        (stuck(Eventual), R::Fit, Primary, Rule::Stuck),
        // 6, 7: the block has a replica
        (
            pinned(Session, PinFacts::Current),
            R::None,
            Replica,
            Rule::Pinned,
        ),
        (
            pinned(Session, PinFacts::Behind),
            R::Fit,
            Primary,
            Rule::NotCaughtUp,
        ),
        (
            pinned(Eventual, PinFacts::Behind),
            R::Fit,
            Replica,
            Rule::Pinned,
        ),
        // 8, 9, 10: a replica is looked for
        (session(), R::Fit, Replica, Rule::Distributed),
        (session(), R::Behind, Primary, Rule::NotCaughtUp),
        (block(Eventual), R::Behind, Replica, Rule::Distributed),
        (session(), R::None, Primary, Rule::NoReplica),
        (block(Eventual), R::None, Primary, Rule::NoReplica),
        (block(lag), R::Fit, Replica, Rule::Distributed),
        (block(lag), R::Late, Primary, Rule::Lagging),
        (session(), R::Late, Primary, Rule::Lagging),
        (block(Eventual), R::Late, Primary, Rule::Lagging),
        (block(lag), R::Behind, Primary, Rule::NotCaughtUp),
        (
            pinned(lag, PinFacts::Current),
            R::Fit,
            Replica,
            Rule::Pinned,
        ),
        (pinned(lag, PinFacts::Late), R::Fit, Primary, Rule::Lagging),
        (
            pinned(Session, PinFacts::Gone),
            R::Fit,
            Primary,
            Rule::NoReplica,
        ),
        (
            pinned(Eventual, PinFacts::Gone),
            R::Fit,
            Replica,
            Rule::Distributed,
        ),
    ];
    for (facts, replicas, target, rule) in table {
        let expected = Course { target, rule };
        assert_eq!(
            decide(&facts, || replicas),
            expected,
            "{facts:?} with {replicas:?}"
        );
    }
}

//! What a client does in one request, drawn from a seed.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// How a client writes its next version.
#[derive(Debug, Clone, Copy)]
pub enum Write {
    InTransaction,
    ByStatements,
    Returning,
    /// Inside a block that reads before and after.
    InBlock,
    /// By another handle, while a block reads.
    DuringBlock,
    OnAnotherThread,
    /// In a context of its own, which ends before the request does.
    InContextWithin,
}

/// How a client reads what it has written.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    Block,
    BlockWithin,
    WithLimit,
    Snapshot,
    OnAnotherThread,
    /// Not in a block, and so on the primary.
    Outside,
}

#[derive(Debug, Clone, Copy)]
pub enum Step {
    Write(Write),
    RollBack,
    Read(Read),
}

/// Which handle a step uses.
#[derive(Debug, Clone, Copy)]
pub enum Hand {
    /// The one that the request keeps until its end.
    Kept,
    New,
}

/// When a request asks for its token.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// The handle is asked.
    OfHandle,
    /// The context is asked while the handle may still hold what was written last.
    WhileHandleIsOut,
    /// The context is asked after everything.
    AtEnd,
}

/// One request.
#[derive(Debug)]
pub struct Plan {
    pub steps: Vec<(Step, Hand)>,
    pub moment: Moment,
}

/// Whether a request may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// How far no read shows less than one before it, as the pool that serves a request has it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Monotonic {
    Nowhere,
    /// From replica to replica.
    WithinRequest,
    AcrossRequests,
}

const READS: &[Read] = &[
    Read::Block,
    Read::Block,
    Read::Block,
    Read::BlockWithin,
    Read::WithLimit,
    Read::Snapshot,
    Read::OnAnotherThread,
    Read::Outside,
];

const WRITES: &[Write] = &[
    Write::InTransaction,
    Write::InTransaction,
    Write::ByStatements,
    Write::Returning,
    Write::InBlock,
    Write::DuringBlock,
    Write::OnAnotherThread,
];

impl Plan {
    /// Draws a request; each begins with a read, which is what may miss something.
    pub fn draw(dice: &mut StdRng, access: Access) -> Self {
        let more = dice.random_range(0..3);
        let mut steps = vec![(Step::Read(one_of(dice, READS)), hand(dice))];
        for _ in 0..more {
            let step = match dice.random_range(0..20) {
                0 if access == Access::ReadWrite => Step::RollBack,
                // only time ends what was written there, in minutes
                1 if access == Access::ReadWrite && dice.random_ratio(1, 6) => {
                    Step::Write(Write::InContextWithin)
                }
                2..9 if access == Access::ReadWrite => Step::Write(one_of(dice, WRITES)),
                _ => Step::Read(one_of(dice, READS)),
            };
            steps.push((step, hand(dice)));
        }
        let moment = match dice.random_range(0..100) {
            // seldom, for the same reason
            0 => Moment::WhileHandleIsOut,
            1..50 => Moment::OfHandle,
            _ => Moment::AtEnd,
        };
        Self { steps, moment }
    }
}

pub fn dice(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn one_of<T: Copy>(dice: &mut StdRng, all: &[T]) -> T {
    *all.choose(dice).expect("there are some")
}

fn hand(dice: &mut StdRng) -> Hand {
    match dice.random_ratio(2, 3) {
        true => Hand::Kept,
        false => Hand::New,
    }
}

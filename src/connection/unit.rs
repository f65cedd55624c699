//! What a handle has on its hands: its block, its transaction, its marks.

use std::time::{Duration, Instant};

use crate::cluster::{Affinity, Consistency, Terms};
use crate::context::{Context, Need, Place, WriteMark};
use crate::decision::{BlockFacts, PinFacts, Transaction};
use crate::node::Era;
use crate::position::Position;
use crate::statement::{Statement, TransactionEffect};

/// Whether statements on the primary leave marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marking {
    On,
    /// Inside `without_sticking`.
    Off,
}

/// One `distributed` closure.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) consistency: Consistency,
    pub(super) affinity: Affinity,
    pub(super) used_primary: bool,
    pub(super) pin: Option<Pin>,
}

/// The replica that a block reads from, and what its context had written by then.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    /// The node's place in the cluster.
    pub(super) node: usize,
    pub(super) context: Context,
    /// `None` if it missed something even then, as `Eventual` allows.
    pub(super) epoch: Option<u64>,
}

impl Block {
    pub(super) fn new(consistency: Consistency, affinity: Affinity) -> Self {
        Self {
            consistency,
            affinity,
            used_primary: false,
            pin: None,
        }
    }

    /// A block inside this one goes on where this one is, so that it sees nothing older.
    ///
    /// `Eventual` asks for less and starts anew.
    pub(super) fn nested(
        outer: Option<&Self>,
        consistency: Consistency,
        affinity: Affinity,
    ) -> Self {
        match (outer, consistency) {
            (None, _) | (_, Consistency::Eventual) => Self::new(consistency, affinity),
            (Some(outer), _) => Self {
                consistency,
                ..outer.clone()
            },
        }
    }

    /// Takes over what a block nested in this one has done.
    pub(super) fn absorb(&mut self, inner: Self) {
        self.used_primary |= inner.used_primary;
        self.pin = self.pin.take().or(inner.pin);
    }

    /// Tells whether all its reads go to the replica that answers the first.
    #[inline]
    fn is_pinned(&self) -> bool {
        self.affinity == Affinity::Block
    }

    #[inline]
    pub(super) fn facts(&self, pin: PinFacts) -> BlockFacts {
        BlockFacts {
            consistency: self.consistency,
            used_primary: self.used_primary,
            pin,
        }
    }
}

/// In `Mode::Distributed` a handle is one block while it is in use.
#[derive(Debug)]
pub(super) struct Ambient {
    pub(super) block: Block,
    last_statement: Instant,
}

impl Ambient {
    pub(super) fn new(consistency: Consistency, affinity: Affinity) -> Self {
        Self {
            block: Block::new(consistency, affinity),
            last_statement: Instant::now(),
        }
    }
}

/// What a replica must be as long as nothing was looked up.
const ANY: Terms = Terms {
    limit: None,
    need: Need::Nothing,
};

/// The state of one use of a handle; a new one begins when the handle goes back.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) block: Option<Block>,
    pub(super) ambient: Option<Ambient>,
    pub(super) forced: bool,
    pub(super) marking: Marking,
    /// The transaction that Diesel knows of.
    pub(super) transaction: Transaction,
    /// How many savepoints are open in it.
    pub(super) savepoints: u32,
    /// A transaction opened by a statement (`BEGIN`), which Diesel does not know of.
    pub(super) raw_transaction: bool,
    /// The server has ended the transaction, the client has not.
    pub(super) transaction_lost: bool,
    /// Something ran in the transaction that may have ended it in between.
    pub(super) unprovable: bool,
    /// Tickets of the transaction that is open, one for each context that wrote in it.
    pub(super) marks: Vec<WriteMark>,
    /// The contexts in which this unit has written, of those that will be written down.
    pub(super) wrote: Vec<Context>,
    /// What the primary was last found to have reached.
    pub(super) proven: Option<Option<Position>>,
    /// What the context had written when a replica was last looked for.
    seen: Option<(Context, Option<u64>)>,
    /// What a replica must be, as of then; idle handles have none.
    terms: Option<Box<Terms>>,
    /// The handle's own context, used outside any other.
    own: Option<Context>,
}

impl Unit {
    pub(super) fn new(ambient: Option<Ambient>) -> Self {
        Self {
            block: None,
            ambient,
            forced: false,
            marking: Marking::On,
            transaction: Transaction::None,
            savepoints: 0,
            raw_transaction: false,
            transaction_lost: false,
            unprovable: false,
            marks: Vec::new(),
            wrote: Vec::new(),
            proven: None,
            seen: None,
            terms: None,
            own: None,
        }
    }

    /// Notes that the handle is in use; tells for how long it was not, where that makes a block.
    pub(super) fn touch(&mut self, now: Instant) -> Option<Duration> {
        let ambient = self.ambient.as_mut()?;
        let last = std::mem::replace(&mut ambient.last_statement, now);
        Some(now.duration_since(last))
    }

    /// Ends the block that the use of the handle makes, and begins another one.
    pub(super) fn begin_anew(&mut self) {
        if let Some(Ambient { block, .. }) = &mut self.ambient {
            *block = Block::new(block.consistency, block.affinity);
        }
    }

    /// The context of the thread, or else the handle's own.
    pub(super) fn context(&mut self) -> Context {
        Context::current().unwrap_or_else(|| self.own.get_or_insert_with(Context::new).clone())
    }

    /// The position that the context waits for, unless this process has written it to the primary
    /// whose history has this era. Without one there is a write all the same, nobody knows where.
    pub(super) fn unproven(
        &self,
        cluster: &Place,
        era: Era,
    ) -> Option<(Context, Option<Position>)> {
        Context::with_current(|current| {
            let marked = |context: &&Context| !context.is_blank();
            let context = current.or(self.own.as_ref()).filter(marked)?;
            let now = Instant::now();
            let position = context.need_for(cluster, now).unproven(era);
            let is_unproven = position.is_some() || context.wrote_elsewhere(cluster, now);
            is_unproven.then(|| (context.clone(), position))
        })
    }

    /// Looks up what a replica must have to serve the block.
    ///
    /// The epoch is noted first: a mark that arrives in between is then seen by the next read.
    pub(super) fn look(&mut self, cluster: &Place) {
        let context = self.context();
        let epoch = context.epoch();
        let (limit, now) = (self.limit(), Instant::now);
        let need = match self.affinity() {
            _ if context.is_blank() => Need::Nothing,
            Affinity::Block => context.demand_for(cluster, now()),
            Affinity::Query => context.need_for(cluster, now()),
        };
        let missed_nothing = need == Need::Nothing;
        let asks_for_nothing = self.goes_on_anywhere();
        self.terms = match (limit, missed_nothing || asks_for_nothing) {
            (None, true) => None,
            (_, true) => Some(Box::new(Terms { limit, ..ANY })),
            (_, false) => Some(Box::new(Terms { limit, need })),
        };
        let keeps_epoch = missed_nothing || !asks_for_nothing;
        self.seen = Some((context, keeps_epoch.then_some(epoch)));
    }

    /// What a replica must be to serve the block, as last looked up.
    #[inline]
    pub(super) fn terms(&self) -> &Terms {
        self.terms.as_deref().unwrap_or(const { &ANY })
    }

    /// The place of the replica that the block reads from.
    #[inline]
    pub(super) fn pinned(&self) -> Option<usize> {
        Some(self.block()?.pin.as_ref()?.node)
    }

    /// Whether the reads of the block stay on one replica.
    #[inline]
    pub(super) fn affinity(&self) -> Affinity {
        self.block().map_or(Affinity::Block, |block| block.affinity)
    }

    /// How old the data may be that the block reads, if it says so.
    #[inline]
    pub(super) fn limit(&self) -> Option<Duration> {
        match self.block()?.consistency {
            Consistency::MaxLag(limit) => Some(limit),
            _ => None,
        }
    }

    /// Tells whether something was written since the block chose its replica.
    #[inline]
    pub(super) fn pin_facts(&self, cluster: &Place, has: impl Fn(&Need) -> bool) -> PinFacts {
        let Some(pin) = self.block().and_then(|block| block.pin.as_ref()) else {
            return PinFacts::None;
        };
        if self.is_unchanged_since(pin) {
            return PinFacts::Current;
        }
        let behind = Context::with_current(|current| match current.or(self.own.as_ref()) {
            Some(context) => match context.demand_for(cluster, Instant::now()) {
                Need::Nothing => false,
                need => !has(&need),
            },
            None => false,
        });
        match behind {
            true => PinFacts::Behind,
            false => PinFacts::Current,
        }
    }

    /// Tells whether the context is the one in which the replica was chosen, and nothing was written
    /// in it since.
    #[inline]
    pub(super) fn is_unchanged_since(&self, pin: &Pin) -> bool {
        Context::with_current(|current| {
            let same =
                |context: &Context| context.is(&pin.context) && Some(context.epoch()) == pin.epoch;
            current.or(self.own.as_ref()).is_some_and(same)
        })
    }

    /// Notes the replica that has answered a read of the block.
    #[inline]
    pub(super) fn pin(&mut self, node: usize) {
        let Some((context, epoch)) = self.seen.take() else {
            return;
        };
        let is_free = |block: &&mut Block| block.is_pinned() && block.pin.is_none();
        if let Some(block) = self.block_mut().filter(is_free) {
            block.pin = Some(Pin {
                node,
                context,
                epoch,
            });
        }
    }

    /// Keeps the ticket of a write until its transaction ends; outside one it counts from now.
    pub(super) fn keep(&mut self, mark: Option<WriteMark>) {
        if self.in_transaction() {
            self.marks.extend(mark);
        }
    }

    #[inline]
    pub(super) fn block(&self) -> Option<&Block> {
        let ambient = || self.ambient.as_ref().map(|ambient| &ambient.block);
        self.block.as_ref().or_else(ambient)
    }

    /// The block that a statement runs in now.
    #[inline]
    pub(super) fn block_mut(&mut self) -> Option<&mut Block> {
        match (&mut self.block, &mut self.ambient) {
            (Some(block), _) => Some(block),
            (None, Some(ambient)) => Some(&mut ambient.block),
            (None, None) => None,
        }
    }

    #[inline]
    pub(super) fn in_transaction(&self) -> bool {
        self.transaction != Transaction::None || self.raw_transaction
    }

    /// Tells whether a statement ends the transaction that a statement has opened.
    pub(super) fn is_closed_by(&self, statement: &Statement) -> bool {
        self.transaction == Transaction::None
            && statement.transaction_effect() == TransactionEffect::Closes
    }

    pub(super) fn close_raw_transaction(&mut self) {
        self.raw_transaction = false;
        self.transaction_lost = false;
        self.marks.clear();
    }

    /// Notes that a statement ran on the primary.
    pub(super) fn used_primary(&mut self) {
        if self.marking == Marking::On {
            if let Some(block) = self.block_mut() {
                block.used_primary = true;
                block.pin = None;
            }
        }
    }
}

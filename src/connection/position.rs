//! Positions of what was written: read for a token, and checked on the primary.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use diesel::result::QueryResult;

use super::RoutedConnection;
use super::lend::{Borrower, Leases};
use super::run::admission;
use super::unit::{Block, Unit};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Consistency, MonotonicReads, Role, Wait};
use crate::context::{Context, Floor, Need, Seen};
use crate::decision::Rule;
use crate::node::{Lease, Tenancy};
use crate::position::{Coverage, Position};
use crate::report::{Access, ErrorClass, Following, Report};

/// How long the end of a unit waits for the position; without it time decides.
const PATIENCE: Duration = Duration::from_secs(1);

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Ends the unit of work, and writes down what was written in the present context: the token
    /// with which the client's next request, in whichever process, reads it.
    ///
    /// The primary is asked once for its position, so that replicas serve the next request as soon
    /// as they have reached it. `None` if nothing was written, or every replica is known to have
    /// it. See [`Context::token`] for what the text is.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// assert_eq!(conn.token(), None, "nothing was written");
    /// diesel::insert_into(posts::table).values(posts::title.eq("second")).execute(&mut conn)?;
    /// let token = conn.token().unwrap();
    ///
    /// // in another request, perhaps of another process
    /// let read = || conn.distributed(|conn| posts::table.count().get_result::<i64>(conn));
    /// assert_eq!(Context::resume(&token).run(read)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn token(&mut self) -> Option<String> {
        let context = self.unit.context();
        if !self.unit.in_transaction() {
            self.read_position(std::slice::from_ref(&context));
        }
        context.token()
    }

    /// Reads the position at the end of a unit, for the contexts that will be written down.
    pub(super) fn read_position_for_tokens(&mut self) {
        let contexts = std::mem::take(&mut self.unit.wrote);
        if !contexts.is_empty() && !self.unit.in_transaction() {
            self.read_position(&contexts);
        }
    }

    /// Asks the primary for its position, and notes it in the contexts.
    ///
    /// Not for longer than `PATIENCE`, whatever the server does: on a thread of its own, which the
    /// connection is left to if it takes longer.
    fn read_position(&mut self, contexts: &[Context]) {
        let place = self.cluster.place();
        let now = Instant::now();
        let waits = |context: &Context| {
            let need = context.need_for(place, now);
            matches!(need, Need::Data { ended: Some(_), .. } | Need::Primary)
        };
        if !self.cluster.has_replicas() || !contexts.iter().any(waits) {
            return;
        }
        self.leases.tidy();
        let clean = |lease: &mut Lease<C>| lease.tenancy != Tenancy::Broken && !lease.is_retired();
        let Some(lease) = self.leases.primary.take_if(clean) else {
            return;
        };
        let Some((lease, asked, position)) = ask(lease, C::committed_position) else {
            return;
        };
        self.leases.primary = Some(lease);
        if let Some(position) = position.flatten() {
            for context in contexts {
                context.reach(place, position.clone(), asked);
            }
        }
    }
}

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Notes in the context of a block that has ended what the block has read.
    pub(super) fn note_seen(&mut self, block: Option<Block>) {
        let in_transaction = self.unit.in_transaction();
        // who asks for nothing may have been shown something older than before
        let counts = |block: &Block| block.consistency != Consistency::Eventual && !in_transaction;
        let Some(block) = block.filter(counts) else {
            return;
        };
        let across = self.cluster.settings().monotonic_reads == MonotonicReads::AcrossRequests;
        let primary = self.leases.primary.as_ref();
        let (node, context) = match (block.pin, primary) {
            (Some(pin), _) => (pin.node, pin.context),
            (None, Some(lease)) if across && block.used_primary => {
                (lease.node().place(), self.unit.context())
            }
            _ => return,
        };
        let now = Instant::now();
        let until = now + self.cluster.sticky_for();
        let seen = Seen {
            node: Some(node),
            by: self.cluster.instant(now, until),
            floor: across.then(|| self.floor_of(node)).flatten().map(Arc::new),
            until,
        };
        context.saw(self.cluster.place(), seen);
    }

    /// Asks the node that a block has read from how much it had at most.
    fn floor_of(&mut self, node: usize) -> Option<Floor> {
        self.leases.tidy();
        let is_it = |lease: &mut Lease<C>| {
            lease.node().place() == node && lease.tenancy != Tenancy::Broken && !lease.is_retired()
        };
        let Leases {
            primary, replicas, ..
        } = &mut *self.leases;
        let slots = [primary, &mut replicas[0].lease];
        let (mut lease, slot) = slots
            .into_iter()
            .find_map(|slot| Some((slot.take_if(is_it)?, slot)))?;
        let server = lease.inner().identity.as_ref()?.tag();
        let question = match lease.role() {
            Role::Primary => C::committed_position,
            Role::Replica => C::received_position,
        };
        let (lease, _, position) = ask(lease, question)?;
        *slot = Some(lease);
        Some(Floor {
            server,
            position: position.flatten(),
        })
    }
}

/// Makes sure that the primary has what the context waits for, before anything runs there: one that
/// was replaced without our knowing would miss it.
///
/// Asked once by each handle, and never inside a transaction. What no server has reached was invented,
/// or is lost, and is waited for no longer.
pub(super) fn check_primary<C: ReplicatedConnection>(
    slot: &mut Option<Lease<C>>,
    borrower: Borrower<'_, C>,
    unit: &mut Unit,
    rule: Rule,
) -> QueryResult<()> {
    let cluster = borrower.cluster;
    if unit.in_transaction() {
        return Ok(());
    }
    let Some((context, position)) = unit.unproven(cluster.place(), cluster.era()) else {
        return Ok(());
    };
    if slot.is_some() && unit.proven.as_ref() == Some(&position) {
        return Ok(());
    }
    let mut has = proves(slot, borrower, rule, position.as_ref())?;
    if has != Some(true) {
        cluster.check();
        drop(slot.take_if(Lease::is_to_be_replaced));
        has = proves(slot, borrower, rule, position.as_ref())?;
    }
    match has {
        Some(true) => unit.proven = Some(position),
        Some(false) => context.void(cluster.place()),
        // the statement will tell what is wrong
        None => {}
    }
    Ok(())
}

/// Tells whether the primary has reached a position, or is the primary at all if none is known;
/// `None` if it does not say.
fn proves<C: ReplicatedConnection>(
    slot: &mut Option<Lease<C>>,
    borrower: Borrower<'_, C>,
    rule: Rule,
    position: Option<&Position>,
) -> QueryResult<Option<bool>> {
    let admission = || admission(borrower, rule);
    let lease = borrower.primary(slot, Wait::UntilCheckoutTimeout, admission)?;
    let known = |position: &Position| lease.node().known().covers(position) == Coverage::Yes;
    if position.is_some_and(known) {
        return Ok(Some(true));
    }
    let answer = match position {
        Some(position) => lease
            .run(C::committed_position)
            .map(|own| own.is_some_and(|own| own.covers(position) == Coverage::Yes)),
        None => lease.run(C::probe).map(|report| takes_writes(&report)),
    };
    match answer {
        Ok(proven) => Ok(Some(proven)),
        Err(error) => {
            let stateless = lease.tenancy != Tenancy::Session;
            if stateless && C::class_of(&error) == ErrorClass::Death {
                lease.lose();
                *slot = None;
            }
            Ok(None)
        }
    }
}

fn takes_writes(report: &Report) -> bool {
    report.access == Access::ReadWrite && report.following != Following::Somebody
}

/// Asks on a thread of its own; `None` if it takes too long.
fn ask<C: ReplicatedConnection, R: Send + 'static>(
    mut lease: Lease<C>,
    question: impl FnOnce(&mut C) -> QueryResult<R> + Send + 'static,
) -> Option<(Lease<C>, Instant, Option<R>)> {
    let (sender, receiver) = mpsc::channel();
    let asking = thread::Builder::new().name("routed position".to_owned());
    let spawned = asking.spawn(move || {
        let asked = Instant::now();
        let answer = lease.run(question);
        if answer
            .as_ref()
            .is_err_and(|error| C::class_of(error) == ErrorClass::Death)
        {
            lease.lose();
        }
        // nobody listens any more if it took too long, and the connection is given back here
        let _ = sender.send((lease, asked, answer.ok()));
    });
    spawned.ok()?;
    receiver.recv_timeout(PATIENCE).ok()
}

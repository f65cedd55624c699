//! Where reads are distributed without being asked, the use of a handle is one block.

use std::time::Instant;

use super::RoutedConnection;
use crate::backend::ReplicatedConnection;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Notes that the handle is in use. Its block begins anew when nothing has happened for as long as
    /// a write sticks, or its replica has become late; an open transaction is use enough.
    pub(super) fn touch(&mut self) {
        // the clock is read only for those who have such a block
        if self.unit.ambient.is_none() {
            return;
        }
        let now = Instant::now();
        let idle = self.unit.touch(now).unwrap_or_default();
        if self.unit.in_transaction() {
            return;
        }
        // a block inside it keeps its own replica until it ends
        let alone = self.unit.block.is_none();
        let late = alone && self.has_late_replica(now);
        if late || idle > self.cluster.sticky_for() {
            self.unit.begin_anew();
            if alone {
                self.leases.give_back_replicas();
            }
        }
    }

    /// Tells whether the replica that the block reads from answers, but is later than any replica may
    /// be: whichever other one is not shows nothing older.
    fn has_late_replica(&mut self, now: Instant) -> bool {
        let pinned = self.unit.pinned();
        self.leases.replica().is_some_and(|lease| {
            let node = lease.node();
            Some(node.place()) == pinned && !node.is_gone() && !node.admits(None, now)
        })
    }
}

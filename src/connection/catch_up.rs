//! Waiting a moment for a replica rather than going to the primary.

use std::thread;
use std::time::{Duration, Instant};

use diesel::result::QueryResult;

use super::RoutedConnection;
use crate::backend::ReplicatedConnection;
use crate::cluster::Role;
use crate::decision::{Decision, Reason};
use crate::statement::Statement;

/// How often the nodes are asked while somebody waits for a replica to catch up.
const PAUSE: Duration = Duration::from_millis(5);

/// How often the nodes are asked for a block that wants fresher data than regular probes show: what
/// the primary says first is compared with what the replicas say next.
const LOOKS: u32 = 2;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Has the nodes asked whether a replica will do after all, where that is worth the time.
    pub(super) fn catch_up(
        &mut self,
        statement: &Statement,
        mut decision: Decision,
    ) -> QueryResult<Decision> {
        let settings = self.cluster.settings();
        let (wait, mut looks, pause) = match (&decision.reason, self.unit.limit()) {
            (Reason::NotCaughtUp, _) => (settings.catch_up_wait, u32::MAX, PAUSE),
            (Reason::Lagging, Some(limit)) if !settings.resolves(limit) => {
                (limit, LOOKS, Duration::ZERO)
            }
            _ => return Ok(decision),
        };
        if wait.is_zero() {
            return Ok(decision);
        }
        self.leases.give_back_replicas();
        let reason = decision.reason.clone();
        let (_, _, borrower) = self.parts();
        let until = borrower.wait(|deadline| deadline.min(Instant::now() + wait));
        while decision.target == Role::Primary && decision.reason == reason && looks > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.cluster.ask_anew(until);
            decision = self.decide(statement)?;
            if decision.target == Role::Primary {
                thread::sleep(pause.min(left));
            }
            looks -= 1;
        }
        Ok(decision)
    }
}

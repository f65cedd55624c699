//! Waiting a moment for a replica rather than going to the primary.

use std::thread;
use std::time::{Duration, Instant};

use diesel::result::QueryResult;

use super::RoutedConnection;
use crate::backend::ReplicatedConnection;
use crate::cluster::Role;
use crate::decision::{Course, Rule};
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
        mut course: Course,
    ) -> QueryResult<Course> {
        let settings = self.cluster.settings();
        let (wait, mut looks, pause) = match (course.rule, self.unit.limit()) {
            (Rule::NotCaughtUp, _) => (settings.catch_up_wait, u32::MAX, PAUSE),
            (Rule::Lagging, Some(limit)) if !settings.resolves(limit) => {
                (limit, LOOKS, Duration::ZERO)
            }
            _ => return Ok(course),
        };
        if wait.is_zero() {
            return Ok(course);
        }
        self.leases.give_back_replicas();
        let rule = course.rule;
        let (_, _, borrower) = self.parts();
        let until = borrower.wait(|deadline| deadline.min(Instant::now() + wait));
        while course.target == Role::Primary && course.rule == rule && looks > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.cluster.ask_anew(until);
            course = self.decide(statement)?;
            if course.target == Role::Primary {
                thread::sleep(pause.min(left));
            }
            looks -= 1;
        }
        Ok(course)
    }
}

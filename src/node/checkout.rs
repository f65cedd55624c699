//! Lending a connection: one that is there, or a new one, and only if it is good.

use std::sync::Arc;
use std::time::Instant;

use diesel::r2d2::PooledConnection;

use super::Node;
use super::dialer::DialError;
use super::health::{Dialler, Event};
use super::lease::{Acquaintance, Lease};
use super::manager::{Fate, NodeConnection, NodeManager};
use super::permits::Permit;
use crate::backend::ReplicatedConnection;

/// Why a node lent no connection although it had a permit to give.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The server refuses or is silent.
    NotAnswering(DialError),
    /// None was opened in time, which was not long enough to tell more.
    OutOfTime,
    /// It has to be dialled, and may not be yet.
    NotNow,
}

#[derive(Debug)]
pub(super) enum Admission {
    Lend(Acquaintance),
    Discard,
    Failed(DialError),
}

impl<C: ReplicatedConnection> Node<C> {
    /// Lends a connection under a permit, which was `asked` for just now, before `deadline`.
    pub(crate) fn lend(
        self: &Arc<Self>,
        permit: Permit,
        asked: Instant,
        deadline: Instant,
    ) -> Result<Lease<C>, Denial> {
        let mut heard = asked;
        loop {
            let mut pooled = match self.wait_for_one(deadline, &mut heard)? {
                Some(pooled) => pooled,
                None => continue,
            };
            match self.admit(&mut pooled, asked) {
                Admission::Lend(acquaintance) => {
                    if pooled.opened >= asked {
                        self.note(Event::Dialled, Instant::now());
                    }
                    return Ok(Lease::new(Arc::clone(self), pooled, permit, acquaintance));
                }
                Admission::Discard => pooled.fate = Fate::Close,
                Admission::Failed(error) => {
                    pooled.fate = Fate::Close;
                    let began = pooled.opened;
                    drop(pooled);
                    return Err(Denial::NotAnswering(self.unreachable(began, error)));
                }
            }
        }
    }

    /// Takes a connection of the pool, or waits for one to be dialled; `None`: ask again.
    fn wait_for_one(
        &self,
        deadline: Instant,
        heard: &mut Instant,
    ) -> Result<Option<PooledConnection<NodeManager<C>>>, Denial> {
        if let Some(pooled) = self.pool.try_get() {
            return Ok(Some(pooled));
        }
        let began = Instant::now();
        if !self.known.lock().health.may_dial(Dialler::Caller, began) {
            return Err(Denial::NotNow);
        }
        let patience = deadline.min(*heard + self.timing.connect_timeout);
        let left = patience.saturating_duration_since(began);
        if let Ok(pooled) = self.dialer.dials.wait(|| self.pool.get_timeout(left)) {
            return Ok(Some(pooled));
        }
        let now = Instant::now();
        let answered = self.dialer.dials.succeeded_since(*heard);
        if answered && now < deadline {
            *heard = now;
            return Ok(None);
        }
        // only silence for a whole `connect_timeout` says that the server is gone
        let timeout = self.timing.connect_timeout;
        if answered || heard.elapsed() < timeout {
            return Err(Denial::OutOfTime);
        }
        let error = DialError::death(format!("no answer within {timeout:?}"));
        Err(Denial::NotAnswering(self.unreachable(*heard, error)))
    }

    pub(super) fn admit(
        &self,
        pooled: &mut PooledConnection<NodeManager<C>>,
        asked: Instant,
    ) -> Admission {
        let now = Instant::now();
        let NodeConnection {
            link,
            identity,
            term,
            opened,
            proven,
            used,
            expires,
            fate,
            ..
        } = &mut ***pooled;
        let conn = match link {
            Ok(conn) => conn,
            // it was not dialled at all
            Err(_) if *fate == Fate::Close => return Admission::Discard,
            Err(error) if *opened >= asked => return Admission::Failed(error.clone()),
            Err(error) => {
                self.hear_late(error, *opened, *used);
                return Admission::Discard;
            }
        };
        if now >= *expires || *term != self.term() {
            return Admission::Discard;
        }
        let (lost, acquaintance) = {
            let mut known = self.known.lock();
            (known.last_loss, known.meet(identity.as_ref()))
        };
        let doubtful = now.duration_since(*used) >= self.timing.validate_after
            || lost.is_some_and(|lost| *proven <= lost);
        *used = now;
        if doubtful {
            if conn.ping().is_err() {
                self.lost();
                return Admission::Discard;
            }
            *proven = now;
            *used = Instant::now();
        }
        Admission::Lend(acquaintance)
    }

    /// Takes in a failure of which nobody was told: whoever wanted the connection had given up before.
    ///
    /// An old one says nothing of the node now.
    fn hear_late(&self, error: &DialError, began: Instant, failed: Instant) {
        let is_old = failed.elapsed() >= self.timing.connect_timeout
            || self.dialer.dials.succeeded_since(began);
        if !is_old {
            self.unreachable(began, error.clone());
        }
    }
}

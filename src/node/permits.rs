//! Counted permits: how many connections of a node may be out at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// Rung whenever a permit of any node of the cluster comes back, and when it has become known who
/// may be asked.
///
/// One for all nodes, so that a caller can wait for the first free connection of several.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    waiting: AtomicUsize,
    /// Protects nothing but the moment between a last look and going to sleep.
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Tries `attempt` now and after each ring, until it gives something or `deadline` passes.
    ///
    /// `attempt` runs under the bell's lock: it may take a permit and nothing else.
    pub(crate) fn wait_for<T>(
        &self,
        deadline: Instant,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        // announced before the first look: whoever gives back after it will ring
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock();
        let got = loop {
            if let Some(value) = attempt() {
                break Some(value);
            }
            if self.rung.wait_until(&mut guard, deadline).timed_out() {
                break attempt();
            }
        };
        drop(guard);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        got
    }

    /// Wakes those who wait, to look again.
    pub(crate) fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // a waiter that has looked but does not sleep yet holds the lock
            drop(self.lock.lock());
            self.rung.notify_all();
        }
    }
}

/// A number of permits and the bell that tells when one comes back.
#[derive(Debug)]
pub(crate) struct Permits {
    limit: AtomicU32,
    taken: AtomicU32,
    bell: Arc<Bell>,
}

impl Permits {
    pub(crate) fn new(limit: u32, bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self {
            limit: AtomicU32::new(limit),
            taken: AtomicU32::new(0),
            bell,
        })
    }

    /// Changes how many there are; those that are out stay out.
    pub(crate) fn resize(&self, limit: u32) {
        self.limit.store(limit, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Takes a permit if one is free.
    pub(crate) fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let limit = self.limit.load(Ordering::SeqCst);
        let more = |taken| (taken < limit).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .ok()
            .map(|_| Permit(Arc::clone(self)))
    }

    /// Waits for a permit until `deadline`.
    pub(crate) fn acquire(self: &Arc<Self>, deadline: Instant) -> Option<Permit> {
        self.try_acquire()
            .or_else(|| self.bell.wait_for(deadline, || self.try_acquire()))
    }

    /// Tells whether one is free, which may have changed by the time it is asked for.
    pub(crate) fn any_free(&self) -> bool {
        self.taken.load(Ordering::SeqCst) < self.limit.load(Ordering::SeqCst)
    }

    /// How many permits are out.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// The right to one connection of a node; comes back when dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        self.0.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn no_more_permits_are_out_than_there_are() {
        let permits = Permits::new(2, Arc::default());
        let first = permits.try_acquire().unwrap();
        let _second = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none(), "both are out");
        drop(first);
        assert!(permits.try_acquire().is_some(), "one came back");
        assert_eq!(permits.taken(), 1);
    }

    #[test]
    fn fewer_permits_than_are_out_are_free_again_when_enough_came_back() {
        let permits = Permits::new(2, Arc::default());
        let (first, second) = (
            permits.try_acquire().unwrap(),
            permits.try_acquire().unwrap(),
        );
        permits.resize(1);
        drop(first);
        assert!(
            permits.try_acquire().is_none(),
            "one is out, and one there is"
        );
        drop(second);
        assert!(permits.try_acquire().is_some());
    }

    #[test]
    fn a_waiter_is_served_by_the_first_of_several_nodes() {
        let bell = Arc::new(Bell::default());
        let (one, two) = (
            Permits::new(1, Arc::clone(&bell)),
            Permits::new(1, Arc::clone(&bell)),
        );
        let (held, _other) = (one.try_acquire().unwrap(), two.try_acquire().unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                bell.wait_for(deadline, || two.try_acquire().or_else(|| one.try_acquire()))
            });
            drop(held);
            assert!(
                waiter.join().unwrap().is_some(),
                "the free permit was found"
            );
        });
    }

    #[test]
    fn many_threads_lose_no_permit() {
        let permits = Permits::new(3, Arc::default());
        let deadline = Instant::now() + Duration::from_secs(60);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let permit = permits.acquire(deadline);
                        assert!(permit.is_some(), "nobody starves");
                        assert!(permits.taken() <= 3, "never more than there are");
                    }
                });
            }
        });
        assert_eq!(permits.taken(), 0, "all came back");
    }
}

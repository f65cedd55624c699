//! From one request to the next, by a token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::resumed::Resumed;
use super::seen::Floor;
use super::stickiness::Need;
use super::token::keys::TokenKeys;
use super::token::{self, UnixMillis, Viewed, Written};
use super::{Context, Inner, Marks, Place, Replicas};

impl Context {
    /// Takes up what an earlier request has written, as its [token](Self::token) says: what was
    /// written there is read here, in whichever process.
    ///
    /// Whatever is no token makes a context in which nothing was written. Positions are read at
    /// the end of each unit of work that writes, so that [`token`](Self::token) can tell exactly.
    ///
    /// ```
    /// # use diesel_routed::Context;
    /// let request = Context::resume("garbage");
    /// assert!(!request.is_sticky());
    /// ```
    pub fn resume(token: &str) -> Self {
        Self::resume_all([token], None, vec![])
    }

    /// As [`resume`](Self::resume), for tokens that [`token_signed`](Self::token_signed) has made.
    ///
    /// One that was altered is ignored; one that was signed with a key that is not among `keys`
    /// counts as if something had just been written.
    #[cfg(feature = "signed")]
    pub fn resume_signed(token: &str, keys: &TokenKeys) -> Self {
        Self::resume_all([token], Some(keys), vec![])
    }

    /// Takes up all the tokens that a client has sent, in cookies of these names.
    pub(crate) fn resume_all<'a>(
        tokens: impl IntoIterator<Item = &'a str>,
        keys: Option<&TokenKeys>,
        cookies: Vec<u32>,
    ) -> Self {
        let now = Instant::now();
        let read = |token| Resumed::of(token::read(token, keys), now);
        let resumed = tokens.into_iter().map(read);
        let resumed = resumed.fold(Resumed::default(), Resumed::and);
        Self(Arc::new(Inner {
            bears_token: true,
            cookies,
            is_noted: AtomicBool::new(!resumed.is_empty()),
            has_resumed: AtomicBool::new(!resumed.is_empty()),
            resumed: Mutex::new(resumed),
            ..Inner::default()
        }))
    }

    /// Writes down what was written here and may be missing on a replica, for the client's next
    /// request; `None` if nothing is.
    ///
    /// A text of at most 1 kB that is safe in cookies, headers and URLs. Who holds it can read the
    /// positions in it and write another one; [`token_signed`](Self::token_signed) lets nobody else
    /// write. While a unit of work still runs the token knows no position, and time decides;
    /// [`RoutedConnection::token`](crate::RoutedConnection::token) ends the unit first.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let context = Context::new();
    /// context.run(|| diesel::delete(posts::table).execute(&mut conn))?;
    /// let token = context.token().unwrap();
    /// assert!(Context::resume(&token).is_sticky());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn token(&self) -> Option<String> {
        self.written_token(None).map(|(token, _)| token)
    }

    /// As [`token`](Self::token), signed with the first of `keys`.
    #[cfg(feature = "signed")]
    pub fn token_signed(&self, keys: &TokenKeys) -> Option<String> {
        self.written_token(Some(keys)).map(|(token, _)| token)
    }

    /// The token, and for how long it is of use.
    pub(crate) fn written_token(&self, keys: Option<&TokenKeys>) -> Option<(String, Duration)> {
        let wall = wall();
        let written = self.written(wall);
        let last = written.iter().map(|written| written.end().0).max()?;
        let left = Duration::from_millis(last.saturating_sub(wall.0));
        Some((token::write(&written, keys)?, left))
    }

    fn written(&self, wall: UnixMillis) -> Vec<Written> {
        let now = Instant::now();
        let copy = |marks: &Marks| {
            let seen = marks.seen.clone().filter(|seen| now < seen.until);
            (marks.stickiness.clone(), seen, marks.place.clone())
        };
        let all: Vec<_> = self.0.marks.lock().iter().map(copy).collect();
        let mut written = self.0.resumed.lock().written().to_vec();
        for (stickiness, seen, place) in all {
            let replicas = place.replicas.upgrade();
            let is_missed = |need: &Need| {
                let all_have = |replicas: &Arc<dyn Replicas>| replicas.all_have(need);
                *need != Need::Nothing && !replicas.as_ref().is_some_and(all_have)
            };
            let after = |left: Duration| {
                let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                UnixMillis(wall.0.saturating_add(left))
            };
            let (until, position) = match is_missed(&stickiness.need(now)) {
                true => {
                    let (left, position) = stickiness.carried(now, place.sticky_for);
                    (after(left), position)
                }
                false => (UnixMillis(0), None),
            };
            let seen = seen.filter(|seen| is_missed(&Need::Nothing.after(Some(seen.clone()))));
            let viewed = seen.and_then(|seen| {
                Some(Viewed {
                    until: after(seen.until.saturating_duration_since(now)),
                    floor: Floor::clone(seen.floor.as_ref()?),
                })
            });
            if until > UnixMillis(0) || viewed.is_some() {
                written.push(Written {
                    cluster: place.tag,
                    until,
                    position,
                    viewed,
                });
            }
        }
        written
    }

    /// The names of the cookies whose tokens were taken up.
    #[cfg(feature = "signed")]
    pub(crate) fn cookies(&self) -> &[u32] {
        &self.0.cookies
    }

    /// Tells whether anything was written since the tokens were taken up.
    #[cfg(feature = "signed")]
    pub(crate) fn moved_since_resume(&self) -> bool {
        self.epoch() > 0 || self.0.has_viewed.load(Ordering::Acquire)
    }

    /// Notes that the client gets what it gets: nothing written from now on is in its token.
    #[cfg(feature = "signed")]
    pub(crate) fn answer(&self) {
        self.0.answered.store(true, Ordering::Release);
    }

    /// Tells whether a write that begins now comes too late for the client's token.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.answered.load(Ordering::Acquire)
    }

    /// Tells whether positions are to be read for a token.
    pub(crate) fn bears_token(&self) -> bool {
        self.0.bears_token
    }

    /// Tells whether an earlier request has written something, nobody knows on which server.
    pub(crate) fn wrote_elsewhere(&self, place: &Place, now: Instant) -> bool {
        let marks = self.0.marks.lock();
        marks
            .of(place.id)
            .is_some_and(|marks| marks.stickiness.is_elsewhere(now))
    }

    /// Hands what tokens said of a cluster over to its marks.
    pub(super) fn take_up(&self, place: &Place) {
        if !self.0.has_resumed.load(Ordering::Acquire) {
            return;
        }
        let mut all = self.0.marks.lock();
        if all.of(place.id).is_some() {
            return;
        }
        let (wall, now) = (wall(), Instant::now());
        let mut resumed = self.0.resumed.lock();
        let (stickiness, seen) = resumed.marks_of(place.tag, place.sticky_for, wall, now);
        self.0
            .has_resumed
            .store(!resumed.is_empty(), Ordering::Release);
        let marks = Marks {
            seen,
            ..Marks::new(stickiness, place)
        };
        all.add(marks);
    }
}

/// The time that processes agree on.
pub(super) fn wall() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    UnixMillis(u64::try_from(millis).unwrap_or(u64::MAX))
}

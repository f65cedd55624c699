//! What a request has done: the sticky state that lets it read its own writes.

mod carry;
mod mark;
mod marks;
mod resumed;
mod scope;
mod seen;
mod stickiness;
pub(crate) mod token;

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::carry::wall;
pub(crate) use self::mark::WriteMark;
use self::marks::{AllMarks, Marks};
use self::resumed::Resumed;
pub use self::scope::Scope;
pub(crate) use self::seen::{Floor, Seen, Who};
pub(crate) use self::stickiness::{Ended, Has, Need};
pub(crate) use self::token::ClusterTag;
#[cfg(feature = "signed")]
pub use self::token::keys::TokenKeys;
use crate::node::Era;
use crate::position::Position;

thread_local! {
    /// The contexts entered on this thread, innermost last. The number tells entries apart,
    /// because one context may be entered twice.
    static ENTERED: RefCell<Vec<(u64, Context)>> = const { RefCell::new(Vec::new()) };
}

static NEXT_ENTRY: AtomicU64 = AtomicU64::new(0);

/// Which cluster a mark belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClusterId(pub(crate) u64);

/// The sticky state of one request: what it wrote, it will read.
///
/// Enter one for each request, job or message, on the thread that handles it. Every handle used
/// on that thread then shares it: a write through one handle is seen by a block of another. A
/// clone is the same context, for parts of a request that run on several threads. A new thread starts
/// without one. In async code [`scope`](Self::scope) keeps a future in its context, whichever thread
/// runs it.
///
/// Outside any context each handle has its own, which ends when the handle goes back to the pool.
///
/// ```
/// use diesel_routed::Context;
///
/// let context = Context::new();
/// context.run(|| {
///     assert!(Context::current().is_some());
/// });
/// assert!(Context::current().is_none());
/// assert!(!context.is_sticky(), "nothing was written");
/// ```
#[derive(Clone, Default)]
pub struct Context(Arc<Inner>);

/// A cluster, as contexts know it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) id: ClusterId,
    pub(crate) tag: ClusterTag,
    pub(crate) sticky_for: Duration,
    pub(crate) replicas: Weak<dyn Replicas>,
}

/// The replicas of a cluster, as far as a token is concerned.
pub(crate) trait Replicas: Send + Sync + fmt::Debug {
    /// Tells whether every node that is not drained is known to miss nothing of this.
    fn all_have(&self, need: &Need) -> bool;
}

#[derive(Default)]
struct Inner {
    /// Positions are read at the end of each unit that writes, for the token that will be made.
    bears_token: bool,
    /// The names of the cookies that the tokens came in.
    #[cfg_attr(not(feature = "signed"), allow(dead_code))]
    cookies: Vec<u32>,
    /// What tokens said is not all handed over to the clusters yet.
    has_resumed: AtomicBool,
    resumed: Mutex<Resumed>,
    /// The client has its token, or will get none.
    answered: AtomicBool,
    /// Advances with every mark: an unchanged number means that nothing was written since.
    epoch: AtomicU64,
    /// Something was read that the requests which follow are to see.
    has_viewed: AtomicBool,
    /// Something was written or read, or a token told of it: most contexts begin without, and are asked
    /// without a lock until then.
    is_noted: AtomicBool,
    /// Protects the marks of all clusters; held for a few instructions, never over I/O.
    marks: Mutex<AllMarks>,
}

// no user code runs under the lock, so that a panic finds nothing half done
impl RefUnwindSafe for Inner {}

impl Context {
    /// Creates a context in which nothing was written yet; it is not entered by this.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the innermost context entered on this thread, if there is one.
    pub fn current() -> Option<Self> {
        // a thread that is ending has no context
        ENTERED
            .try_with(|stack| stack.borrow().last().map(|(_, context)| context.clone()))
            .ok()
            .flatten()
    }

    /// Runs `f` with the current context, without a clone of it.
    ///
    /// `f` is the router's own and enters no context.
    #[inline]
    pub(crate) fn with_current<R>(f: impl Fn(Option<&Self>) -> R) -> R {
        // a thread that is ending has no context
        ENTERED
            .try_with(|stack| f(stack.borrow().last().map(|(_, context)| context)))
            .unwrap_or_else(|_| f(None))
    }

    /// Runs `f` inside this context.
    ///
    /// What `f` writes also marks the context around this one, if there is one. The context
    /// around is back afterwards, also after a panic.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*;
    /// let (pool, request) = (pool(), Context::new());
    /// request.run(|| {
    ///     let write = diesel::insert_into(posts::table).values(posts::title.eq("second"));
    ///     write.execute(&mut pool.get()?)?;
    ///     // another handle, the same request
    ///     let mut conn = pool.get()?;
    ///     let count = conn.distributed(|conn| posts::table.count().get_result::<i64>(conn))?;
    ///     assert_eq!((count, conn.last_route().unwrap().reason), (2, Reason::NotCaughtUp));
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = self.enter();
        f()
    }

    /// Enters this context until the guard is dropped.
    ///
    /// Guards may be dropped in any order. Do not hold one over an `.await`: the executor may run
    /// another request on this thread meanwhile.
    ///
    /// ```
    /// # use diesel_routed::Context;
    /// let entered = Context::new().enter();
    /// assert!(Context::current().is_some());
    /// drop(entered);
    /// assert!(Context::current().is_none());
    /// ```
    ///
    /// ```compile_fail
    /// let entered = diesel_routed::Context::new().enter();
    /// std::thread::spawn(move || drop(entered)); // the guard belongs to its thread
    /// ```
    #[must_use = "the context is left as soon as the guard is dropped"]
    pub fn enter(&self) -> Entered {
        let entry = NEXT_ENTRY.fetch_add(1, Ordering::Relaxed);
        // on a thread that is ending there is nothing to enter
        let _ = ENTERED.try_with(|stack| stack.borrow_mut().push((entry, self.clone())));
        Entered {
            entry,
            _not_send: PhantomData,
        }
    }

    /// Forgets what was written to any cluster, so that blocks may use any replica again.
    ///
    /// Writes that still run keep their marks.
    pub fn unstick(&self) {
        for marks in self.0.marks.lock().iter_mut() {
            marks.stickiness.unstick();
        }
    }

    /// Tells whether something written in this context may still be missing on a replica, of
    /// whichever cluster.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let context = Context::new();
    /// context.run(|| diesel::delete(posts::table).execute(&mut conn))?;
    /// assert!(context.is_sticky());
    /// context.unstick();
    /// assert!(!context.is_sticky());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_sticky(&self) -> bool {
        let now = Instant::now();
        let sticky = |marks: &Marks| marks.stickiness.is_sticky(now);
        let all = self.0.marks.lock();
        all.iter().any(sticky) || self.0.resumed.lock().is_sticky(wall())
    }

    /// Tells what a replica of the cluster must have to miss nothing that was written here.
    pub(crate) fn need_for(&self, place: &Place, now: Instant) -> Need {
        self.take_up(place);
        let marks = self.0.marks.lock();
        marks
            .of(place.id)
            .map_or(Need::Nothing, |marks| marks.stickiness.need(now))
    }

    pub(crate) fn unstick_for(&self, place: &Place) {
        self.take_up(place);
        if let Some(marks) = self.0.marks.lock().of_mut(place.id) {
            marks.stickiness.unstick();
        }
    }

    /// Takes a ticket for a write that is about to run, on a server whose history is in this era.
    pub(crate) fn begin_write(&self, place: &Place, era: Option<Era>) -> WriteMark {
        let ticket = self.change(place, |marks| marks.begin(era));
        WriteMark {
            context: self.clone(),
            cluster: place.id,
            ticket,
        }
    }

    /// Marks as if a write had ended now.
    pub(crate) fn mark(&self, place: &Place) {
        let now = Instant::now();
        self.change(place, |marks| marks.mark(now, place.sticky_for));
    }

    /// Notes the position that was read, beginning at `asked`, from the server that has run the
    /// writes.
    pub(crate) fn reach(&self, place: &Place, position: Position, asked: Instant) {
        self.change(place, |marks| marks.reach(position, asked));
    }

    /// Drops the position that is waited for, which no server has reached.
    pub(crate) fn void(&self, place: &Place) {
        if let Some(marks) = self.0.marks.lock().of_mut(place.id) {
            marks.stickiness.void();
        }
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("sticky", &self.is_sticky())
            .finish_non_exhaustive()
    }
}

/// Keeps a [`Context`] entered on this thread; made by [`Context::enter`].
#[must_use = "the context is left as soon as the guard is dropped"]
#[derive(Debug)]
pub struct Entered {
    entry: u64,
    /// The guard belongs to the thread that entered.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = ENTERED.try_with(|stack| {
            let mut stack = stack.borrow_mut();
            let at = stack.iter().rposition(|(entry, _)| *entry == self.entry)?;
            let (_, inner) = stack.remove(at);
            let outer = at.checked_sub(1).map(|below| stack[below].1.clone());
            Some((inner, outer))
        });
        if let Ok(Some((inner, Some(outer)))) = left {
            outer.absorb(&inner, Instant::now());
        }
    }
}

/// For the fuzz target: reads a token and writes what it says.
#[doc(hidden)]
pub fn rewritten_token(text: &str) -> Option<String> {
    match token::read(text, None) {
        token::Read::Written(list) => token::write(&list, None),
        token::Read::Nothing | token::Read::JustWrote => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;

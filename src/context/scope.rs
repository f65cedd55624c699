//! A context around a future, whichever threads poll it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use super::Context;

impl Context {
    /// Runs a future inside this context, on whichever threads it is polled.
    ///
    /// The context is entered at each poll and left before the executor goes on, so that nothing
    /// else on that thread is inside it. It is entered for the last time when the future is
    /// dropped. A task spawned by the future starts with none: give it a scope of its own, and a
    /// blocking one `route::spawn_blocking`.
    ///
    /// The future is boxed: one allocation for each call. It is dropped with the scope, not
    /// before.
    ///
    /// ```
    /// # use diesel_routed::Context;
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let request = Context::new();
    /// request.scope(async { assert!(Context::current().is_some()) }).await;
    /// assert!(Context::current().is_none());
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> Scope<F> {
        self.around(future)
    }

    /// Puts anything that is polled inside this context.
    pub(crate) fn around<T>(&self, polled: T) -> Scope<T> {
        Scope {
            context: self.clone(),
            polled: Some(Box::pin(polled)),
        }
    }
}

/// A future that runs inside a [`Context`]; made by [`Context::scope`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Scope<F> {
    context: Context,
    /// There until it is dropped. A box pins it without code that the compiler cannot check.
    polled: Option<Pin<Box<F>>>,
}

impl<T> Scope<T> {
    #[cfg(feature = "tower")]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    #[cfg(feature = "tower")]
    pub(crate) fn get(&self) -> &T {
        self.polled.as_ref().expect(PRESENT)
    }

    /// Polls what is inside, inside the context.
    pub(crate) fn enter<R>(&mut self, poll: impl FnOnce(Pin<&mut T>) -> R) -> R {
        let polled = self.polled.as_mut().expect(PRESENT);
        self.context.run(|| poll(polled.as_mut()))
    }
}

const PRESENT: &str = "only a drop takes it";

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        self.enter(|future| future.poll(cx))
    }
}

impl<F> Drop for Scope<F> {
    fn drop(&mut self) {
        let _entered = self.context.enter();
        self.polled = None;
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    use std::thread;

    use super::*;
    use crate::context::tests::cluster;

    /// Polls once, by an executor that wakes nobody.
    fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        struct Deaf;
        impl Wake for Deaf {
            fn wake(self: Arc<Self>) {}
        }
        let waker = Waker::from(Arc::new(Deaf));
        Pin::new(future).poll(&mut task::Context::from_waker(&waker))
    }

    /// Is pending once.
    async fn pause() {
        let mut paused = false;
        poll_fn(|_| match std::mem::replace(&mut paused, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    fn is_inside(context: &Context) -> bool {
        Context::current().is_some_and(|current| current.is(context))
    }

    #[test]
    fn a_future_keeps_its_context_from_thread_to_thread() {
        let context = Context::new();
        let inside = context.clone();
        let mut scope = context.scope(async move {
            for _ in 0..3 {
                assert!(is_inside(&inside), "on this thread");
                pause().await;
            }
            is_inside(&inside)
        });
        for _ in 0..3 {
            scope = thread::spawn(move || {
                assert!(poll(&mut scope).is_pending());
                assert!(Context::current().is_none(), "left after the poll");
                scope
            })
            .join()
            .unwrap();
        }
        assert_eq!(poll(&mut scope), Poll::Ready(true));
    }

    #[test]
    fn futures_on_one_thread_do_not_see_each_others_context() {
        let contexts = [Context::new(), Context::new()];
        let [mut one, mut two] = contexts.clone().map(|context| {
            context.clone().scope(async move {
                drop(context.begin_write(&cluster(), None));
                pause().await;
                is_inside(&context)
            })
        });
        assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
        assert_eq!(poll(&mut two), Poll::Ready(true));
        assert_eq!(poll(&mut one), Poll::Ready(true));
    }

    #[test]
    fn an_inner_scope_ends_with_its_future_and_marks_the_outer_context() {
        let (outer, inner) = (Context::new(), Context::new());
        let (around, within) = (outer.clone(), inner.clone());
        let mut scope = outer.scope(async move {
            let write = async {
                assert!(is_inside(&within));
                drop(within.begin_write(&cluster(), None));
                pause().await;
            };
            within.scope(write).await;
            assert!(is_inside(&around), "back in the outer one");
        });
        assert!(poll(&mut scope).is_pending());
        assert!(
            outer.is_sticky(),
            "marked as soon as the inner one was left"
        );
        assert!(poll(&mut scope).is_ready());
    }

    #[test]
    fn a_panic_leaves_the_context() {
        let context = Context::new();
        let mut scope = context.scope(async { panic!("expected") });
        let panicked = catch_unwind(AssertUnwindSafe(|| poll(&mut scope)));
        assert!(panicked.is_err());
        assert!(Context::current().is_none());
        drop(scope);
    }

    /// Remembers whether it was dropped inside the context.
    struct Dropped(Context, Arc<Mutex<Option<bool>>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = Some(is_inside(&self.0));
        }
    }

    #[test]
    fn what_an_unfinished_future_holds_is_dropped_inside_the_context() {
        let (context, seen) = (Context::new(), Arc::default());
        let held = Dropped(context.clone(), Arc::clone(&seen));
        let mut scope = context.scope(async move {
            let _held = held;
            pending::<()>().await;
        });
        assert!(poll(&mut scope).is_pending());
        drop(scope);
        assert_eq!(*seen.lock().unwrap(), Some(true));
        assert!(Context::current().is_none());
        drop(Context::new().scope(ready(())));
    }

    #[test]
    fn workers_of_tokio_keep_the_context_and_spawned_tasks_start_without() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .build()
            .unwrap();
        let requests = (0..50).map(|_| {
            let context = Context::new();
            let inside = context.clone();
            runtime.spawn(context.scope(async move {
                for _ in 0..20 {
                    assert!(is_inside(&inside));
                    tokio::task::yield_now().await;
                }
                let spawned = tokio::spawn(async { Context::current().is_some() });
                assert!(!spawned.await.unwrap(), "a task of its own");
                is_inside(&inside)
            }))
        });
        let requests: Vec<_> = requests.collect();
        for request in requests {
            assert!(runtime.block_on(request).unwrap());
        }
    }
}

use super::*;

const CLUSTER: ClusterId = ClusterId(1);
const OTHER: ClusterId = ClusterId(2);
const STICKY: Duration = Duration::from_secs(60);

#[test]
fn marks_are_kept_apart_by_cluster_and_shared_by_clones() {
    let context = Context::new();
    let clone = context.clone();
    std::thread::spawn(move || drop(clone.begin_write(CLUSTER, STICKY)))
        .join()
        .unwrap();
    let now = Instant::now();
    assert!(context.is_sticky_for(CLUSTER, now), "written by the clone");
    assert!(!context.is_sticky_for(OTHER, now), "another database");
}

#[test]
fn only_a_given_back_mark_leaves_no_trace() {
    let context = Context::new();
    context.begin_write(CLUSTER, STICKY).give_back();
    assert!(!context.is_sticky());
    drop(context.begin_write(CLUSTER, STICKY));
    assert!(context.is_sticky(), "an unsettled write counts as done");
}

#[test]
fn every_mark_advances_the_epoch() {
    let context = Context::new();
    let before = context.epoch();
    drop(context.begin_write(CLUSTER, STICKY));
    assert!(context.epoch() > before);
}

#[test]
fn the_context_around_is_back_after_a_panic() {
    let outer = Context::new();
    outer.run(|| {
        let inner = Context::new();
        let panicked = std::panic::catch_unwind(|| inner.run(|| panic!("expected")));
        assert!(panicked.is_err());
        assert!(Context::current().unwrap().is(&outer));
    });
    assert!(Context::current().is_none());
}

#[test]
fn marks_of_an_inner_context_reach_the_outer_one_on_exit() {
    let outer = Context::new();
    outer.run(|| {
        let inner = Context::new();
        inner.run(|| drop(inner.begin_write(CLUSTER, STICKY)));
        assert!(outer.is_sticky());
    });
    assert!(outer.is_sticky_for(CLUSTER, Instant::now()));
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    let (first, second) = (Context::new(), Context::new());
    let (one, two) = (first.enter(), second.enter());
    drop(one);
    assert!(Context::current().unwrap().is(&second));
    drop(two);
    assert!(Context::current().is_none());
}

#[test]
fn a_new_thread_starts_without_a_context() {
    Context::new().run(|| {
        let current = std::thread::spawn(|| Context::current().is_some());
        assert!(!current.join().unwrap());
    });
}

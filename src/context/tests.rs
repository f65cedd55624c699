use super::*;

#[derive(Debug)]
struct Late;

impl Replicas for Late {
    fn all_have(&self, _: &Need) -> bool {
        false
    }
}

fn place(id: u64, name: &str) -> Place {
    Place {
        id: ClusterId(id),
        tag: ClusterTag::of(name),
        sticky_for: Duration::from_secs(60),
        replicas: Weak::<Late>::new(),
    }
}

pub(crate) fn cluster() -> Place {
    place(1, "one")
}

fn other() -> Place {
    place(2, "two")
}

#[test]
fn marks_are_kept_apart_by_cluster_and_shared_by_clones() {
    let context = Context::new();
    let clone = context.clone();
    std::thread::spawn(move || drop(clone.begin_write(&cluster(), None)))
        .join()
        .unwrap();
    let now = Instant::now();
    assert_eq!(
        context.need_for(&cluster(), now),
        Need::Primary,
        "written by the clone"
    );
    assert_eq!(
        context.need_for(&other(), now),
        Need::Nothing,
        "another database"
    );
}

#[test]
fn only_a_given_back_mark_leaves_no_trace() {
    let context = Context::new();
    context.begin_write(&cluster(), None).give_back();
    assert!(!context.is_sticky());
    drop(context.begin_write(&cluster(), None));
    assert!(context.is_sticky(), "an unsettled write counts as done");
}

#[test]
fn every_mark_advances_the_epoch() {
    let context = Context::new();
    let before = context.epoch();
    drop(context.begin_write(&cluster(), None));
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
        inner.run(|| drop(inner.begin_write(&cluster(), None)));
        assert!(outer.is_sticky());
    });
    assert_eq!(outer.need_for(&cluster(), Instant::now()), Need::Primary);
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

//! Classifying allocates nothing. A binary of its own: the counter sees every allocation of the process.
use diesel_routed::statement::{Dialect, Rules, UnknownFunctions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // a thread that is ending has no counter any more
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn classifying_and_cloning_a_kind_allocate_nothing() {
    let long = format!("SELECT {} FROM t", "f(a, 'b', \"c\"), ".repeat(1000));
    for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
        let rules = Rules::new(dialect)
            .primary_functions(["register", "audit.log"])
            .replica_functions(["vouched"])
            .unknown_functions(UnknownFunctions::Primary);
        for sql in [
            "SELECT lower(a), vouched(b) FROM t WHERE c IN (1, 2)",
            "SELECT register(1)",
            "SELECT a_function_on_no_list_with_a_rather_long_name(1)",
            "SELECT nextval('s'); SET x = 1; /*! SELECT @a */",
            "INSERT INTO t VALUES ('a', 1)",
            "SELECT 'open",
            &long,
        ] {
            let before = ALLOCATIONS.get();
            let kind = rules.classify(sql);
            let copy = kind.clone();
            let allocations = ALLOCATIONS.get() - before;
            assert_eq!(
                allocations, 0,
                "{dialect:?} allocates nothing for {sql:.40}"
            );
            assert_eq!(kind, copy, "a clone is equal");
        }
    }
}

//! An allocator that counts, for binaries that are about nothing else.
#![allow(dead_code)] // each takes what it needs

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

static BYTES: AtomicIsize = AtomicIsize::new(0);

/// How often this thread has allocated.
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}

/// How many bytes the process has allocated and not freed.
pub fn bytes() -> isize {
    BYTES.load(Ordering::SeqCst)
}

fn count(freed: usize, allocated: usize) {
    BYTES.fetch_add(allocated as isize - freed as isize, Ordering::SeqCst);
    if allocated > 0 {
        // a thread that is ending has no counter any more
        let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

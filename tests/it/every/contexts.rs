//! Contexts inside one process: who is stuck to the primary, since when, and until when.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use diesel_routed::{Context, Reason, RoutedConnectionManager, RoutedPool};

use super::backend::*;
use crate::support::wait_until;

/// Where a block of a new handle reads now.
fn next_block(db: &Db) -> String {
    block_reads_from(&mut db.pool.get().unwrap())
}

fn write_anew(db: &Db) {
    write(&mut db.pool.get().unwrap(), "note");
}

#[test]
fn what_one_handle_writes_a_later_handle_of_the_context_reads() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        write_anew(&db);
        let mut conn = db.pool.get().unwrap();
        assert_eq!(conn.distributed(bodies), ["note"]);
        assert_eq!(reason(&conn), Reason::NotCaughtUp);
    });
    assert_eq!(next_block(&db), "n1", "outside it nobody is stuck");
    {
        let _entered = context.enter();
        assert_eq!(next_block(&db), "n0", "the guard enters the same context");
    }
    assert_eq!(next_block(&db), "n1", "and leaves it");
    assert_eq!(Context::new().run(|| next_block(&db)), "n1", "another one");
}

#[test]
fn clones_share_the_context_across_threads_and_other_threads_stay_free() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| write_anew(&db));
    std::thread::scope(|scope| {
        let clone = context.clone();
        let inside = scope.spawn(|| {
            let clone = clone;
            clone.run(|| next_block(&db))
        });
        let outside = scope.spawn(|| next_block(&db));
        let other = scope.spawn(|| Context::new().run(|| next_block(&db)));
        assert_eq!(
            inside.join().unwrap(),
            "n0",
            "the clone is the same context"
        );
        assert_eq!(outside.join().unwrap(), "n1", "a new thread has none");
        assert_eq!(other.join().unwrap(), "n1", "another request is not stuck");
    });
}

#[test]
fn a_nested_context_hands_its_marks_to_the_outer_one_as_it_ends() {
    let db = paused_db(1);
    let outer = Context::new();
    outer.run(|| {
        Context::new().run(|| write_anew(&db));
        assert_eq!(next_block(&db), "n0", "the request has written");
        let sibling = Context::new().run(|| next_block(&db));
        assert_eq!(sibling, "n1", "marks go outwards, not inwards");
    });
    assert!(outer.is_sticky());
}

#[test]
fn outside_any_context_a_handle_has_its_own_until_it_is_given_back() {
    let db = paused_db(1);
    let manager = RoutedConnectionManager::new(crate::kit::config(&db.cluster)).unwrap();
    let one: Pool = RoutedPool::builder().max_size(1).build(manager).unwrap();
    let mut conn = one.get().unwrap();
    write(&mut conn, "mine");
    assert_eq!(conn.distributed(bodies), ["mine"], "own write seen");
    drop(conn);
    let mut conn = one.get().unwrap();
    assert_eq!(conn.last_route(), None, "the same handle, used anew");
    assert_eq!(block_reads_from(&mut conn), "n1", "and unstuck");
}

#[test]
fn sticky_for_ends_it_where_nothing_else_does() {
    let sticky_for = Duration::from_millis(400);
    let db = paused_db_with(1, |config| config.max_lag(None).sticky_for(sticky_for));
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        // of this no server can tell whether it has it
        conn.stick_to_primary();
        let written = Instant::now();
        wait_until("blocks use replicas again", Duration::from_secs(10), || {
            // asked before the time is taken, so that it is not too late
            let from = block_reads_from(&mut conn);
            let early = written.elapsed() < sticky_for - Duration::from_millis(50);
            assert!(!early || from == "n0", "stuck for sticky_for");
            from == "n1"
        });
        let again = written.elapsed();
        assert!(again >= sticky_for - Duration::from_millis(50), "{again:?}");
    });
}

#[test]
fn it_counts_from_the_end_of_a_transaction() {
    let sticky_for = Duration::from_millis(300);
    let db = paused_db_with(1, |config| config.max_lag(None).sticky_for(sticky_for));
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let done = diesel::Connection::transaction(&mut *conn, |conn| {
            write(conn, "mine");
            let since = Instant::now();
            wait_until("time passes", sticky_for * 4, || {
                since.elapsed() > sticky_for * 2
            });
            assert!(context.is_sticky(), "a write that runs never expires");
            diesel::QueryResult::Ok(())
        });
        done.unwrap();
        assert_eq!(conn.distributed(bodies), ["mine"]);
    });
}

#[test]
fn stick_to_primary_marks_and_unstick_forgets() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        conn.stick_to_primary();
        assert_eq!(block_reads_from(&mut conn), "n0");
        assert_eq!(next_block(&db), "n0", "the whole context is marked");
        conn.unstick();
        assert_eq!(block_reads_from(&mut conn), "n1");
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            conn.stick_to_primary();
            assert_eq!(who(conn), "n0", "also inside a block");
            conn.unstick();
            assert_eq!(who(conn), "n1");
        });
    });
    let mut conn = db.pool.get().unwrap();
    conn.stick_to_primary();
    assert_eq!(block_reads_from(&mut conn), "n0", "without a context, too");
    assert_eq!(next_block(&db), "n1", "where it is the handle's alone");
}

#[test]
fn unstick_of_the_context_forgets_what_all_its_handles_wrote() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        write_anew(&db);
        write_anew(&db);
        context.unstick();
        assert_eq!(next_block(&db), "n1");
    });
}

#[test]
fn without_sticking_writes_leave_no_mark_and_older_marks_hold_on() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        conn.without_sticking(|conn| write(conn, "a counter"));
        assert_eq!(block_reads_from(&mut conn), "n1");
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            conn.without_sticking(|conn| write(conn, "a counter"));
            assert_eq!(who(conn), "n1", "the block reads on where it was");
        });
        write(&mut conn, "mine");
        conn.without_sticking(|conn| write(conn, "a counter"));
        assert_eq!(block_reads_from(&mut conn), "n0", "marks from before hold");
        assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "4");
    });
}

#[test]
fn a_handle_dropped_in_another_context_marks_the_one_it_wrote_in() {
    let db = paused_db(1);
    let (writer, bystander) = (Context::new(), Context::new());
    let mut conn = db.pool.get().unwrap();
    writer.run(|| {
        unprepared(&mut conn, "BEGIN").unwrap();
        write(&mut conn, "mine");
    });
    bystander.run(|| {
        sql(&mut conn, "COMMIT").unwrap();
        drop(conn);
        assert_eq!(next_block(&db), "n1", "not the context of the drop");
    });
    assert!(!bystander.is_sticky());
    writer.run(|| assert_eq!(next_block(&db), "n0", "but of the write"));
}

#[test]
fn a_pooled_thread_is_never_left_stuck() {
    let db = paused_db(1);
    for _ in 0..3 {
        let request = catch_unwind(AssertUnwindSafe(|| {
            Context::new().run(|| {
                write_anew(&db);
                assert_eq!(next_block(&db), "n0");
                panic!("the request ends so");
            })
        }));
        assert!(request.is_err());
        assert_eq!(next_block(&db), "n1", "the next request on this thread");
        assert_eq!(Context::new().run(|| next_block(&db)), "n1");
    }
}

#[test]
fn no_request_is_made_sticky_by_another_at_the_same_time() {
    let db = paused_db(1);
    std::thread::scope(|scope| {
        let request = |writes: bool| {
            let db = &db;
            scope.spawn(move || {
                for _ in 0..20 {
                    Context::new().run(|| {
                        if writes {
                            write_anew(db);
                        }
                        let expected = if writes { "n0" } else { "n1" };
                        assert_eq!(next_block(db), expected);
                    });
                }
            })
        };
        let all = [request(true), request(false), request(true), request(false)];
        all.into_iter().for_each(|one| one.join().unwrap());
    });
}

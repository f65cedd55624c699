//! Two handles of one request: what one writes, a block of the other sees.

use diesel_routed::{Context, ImplicitContext, Reason, RoutedError};

use super::backend::*;

#[test]
fn a_block_that_has_read_sees_what_a_second_handle_of_the_context_writes() {
    let db = paused_db(1);
    Context::new().run(|| {
        let (mut conn, mut other) = (db.pool.get().unwrap(), db.pool.get().unwrap());
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1", "nothing was written yet");
            write(&mut other, "mine");
            assert_eq!(bodies(conn), ["mine"], "own write seen");
            assert_eq!(reason(conn), Reason::NotCaughtUp);
            db.cluster.resume_replication(1);
            db.cluster.wait_replicated();
            assert_eq!(who(conn), "n0", "the block stays on the primary");
            assert_eq!(reason(conn), Reason::Stuck);
        });
    });
}

#[test]
fn a_block_that_has_read_sees_what_a_clone_of_its_context_writes_on_another_thread() {
    let db = paused_db(1);
    let context = Context::new();
    let mut conn = db.pool.get().unwrap();
    let _entered = context.enter();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1", "nothing was written yet");
        let (context, pool) = (context.clone(), db.pool.clone());
        let writer = std::thread::spawn(move || {
            context.run(|| write(&mut pool.get().unwrap(), "mine"));
        });
        writer.join().unwrap();
        assert_eq!(bodies(conn), ["mine"], "own write seen");
        assert_eq!(reason(conn), Reason::NotCaughtUp);
        assert_eq!(who(conn), "n0", "the block stays on the primary");
    });
}

#[test]
fn a_nested_block_sees_it_too_and_the_outer_one_stays_on_the_primary() {
    let db = paused_db(1);
    Context::new().run(|| {
        let (mut conn, mut other) = (db.pool.get().unwrap(), db.pool.get().unwrap());
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            conn.distributed(|conn| {
                assert_eq!(who(conn), "n1", "the block around has chosen");
                write(&mut other, "mine");
                assert_eq!(bodies(conn), ["mine"]);
            });
            assert_eq!(bodies(conn), ["mine"]);
            assert_eq!(reason(conn), Reason::Stuck);
        });
    });
}

#[test]
fn without_a_context_handles_are_independent() {
    let db = paused_db(1);
    let (mut conn, mut other) = (db.pool.get().unwrap(), db.pool.get().unwrap());
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        write(&mut other, "somebody's");
        assert_eq!(who(conn), "n1", "the other handle is another request");
    });
    assert_eq!(block_reads_from(&mut other), "n0", "the writer itself");
    assert_eq!(block_reads_from(&mut conn), "n1");
}

#[test]
fn forbid_finds_the_block_without_a_context() {
    let db = db_with(1, |config| config.implicit_context(ImplicitContext::Forbid));
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "outside blocks nothing is forbidden");
    conn.distributed(|conn| {
        for sql_text in [
            "SELECT name FROM node_name",
            "INSERT INTO note (body) VALUES ('x')",
        ] {
            let error = sql(conn, sql_text).unwrap_err();
            assert_eq!(RoutedError::downcast(&error), Some(RoutedError::NoContext));
        }
    });
    let refused = conn.read_only_transaction(|conn| sql(conn, "SELECT 1"));
    let error = refused.expect_err("a read-only transaction reads as a block does");
    assert_eq!(RoutedError::downcast(&error), Some(RoutedError::NoContext));
    Context::new().run(|| {
        assert_eq!(block_reads_from(&mut conn), "n1", "with one it works");
    });
    assert_eq!(bodies(&mut conn).len(), 1, "nothing ran in the block");
}

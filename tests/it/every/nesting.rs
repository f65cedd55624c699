//! Blocks in blocks, contexts in transactions, and what is caught in between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use diesel::connection::{InstrumentationEvent, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{
    Consistency, Context, Mode, RoutedConnectionManager, RoutedTransactionManager,
};

use super::backend::*;
use crate::support::wait_until;

diesel_routed::define_route!(mod here for Plain);

fn let_pass(time: Duration) {
    let since = Instant::now();
    wait_until("time passes", time * 10, || since.elapsed() > time);
}

#[test]
fn a_block_in_or_around_an_eventual_one_sees_own_writes_all_the_same() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "mine");
        conn.distributed(|conn| {
            assert_eq!(conn.distributed_with(Consistency::Eventual, who), "n1");
            assert_eq!(bodies(conn), ["mine"], "around it");
        });
        conn.distributed_with(Consistency::Eventual, |conn| {
            assert_eq!(who(conn), "n1");
            assert_eq!(conn.distributed(bodies), ["mine"], "in it");
        });
    });
}

#[test]
fn a_bounded_lag_is_not_taken_over_from_the_block_around() {
    let db = paused_db(1);
    db.cluster
        .sql(0, "INSERT INTO note (body) VALUES ('somebody else''s')");
    let limit = Duration::from_millis(50);
    let_pass(limit);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(who(conn), "n1");
        let lag = Consistency::MaxLag(limit);
        // where lag can be told it is more, and elsewhere nothing is believed
        assert_eq!(conn.distributed_with(lag, who), "n0", "it is too late");
        assert_eq!(who(conn), "n0", "the block has seen newer");
    });
}

#[test]
fn a_test_transaction_that_is_over_hinders_nobody() {
    let db = db(1);
    let manager = RoutedConnectionManager::new(crate::kit::config(&db.cluster)).unwrap();
    let pool = Pool::builder().max_size(1).build(manager).unwrap();
    here::install(&pool);
    let mut conn = pool.get().unwrap();
    conn.begin_test_transaction().unwrap();
    let inside = here::distributed(|conn| QueryResult::Ok(who(conn)));
    assert!(inside.is_err(), "another handle cannot see into it");
    RoutedTransactionManager::rollback_transaction(&mut *conn).unwrap();
    let after = here::distributed(|conn| QueryResult::Ok(who(conn)));
    assert_eq!(after, Ok("n1".into()));
}

#[test]
fn a_test_transaction_does_not_begin_inside_another_one() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    conn.read_only_transaction(|conn| {
        assert_eq!(
            conn.begin_test_transaction(),
            Err(Error::AlreadyInTransaction)
        );
        assert_eq!(who(conn), "n1", "it goes on where it was");
        QueryResult::Ok(())
    })
    .unwrap();
}

#[test]
fn a_transaction_keeps_the_block_of_a_distributed_handle_alive() {
    let sticky_for = Duration::from_millis(200);
    let db = paused_db_with(1, |config| {
        let config = config.default_mode(Mode::Distributed);
        config.max_lag(None).sticky_for(sticky_for)
    });
    let mut conn = db.pool.get().unwrap();
    assert_eq!(who(&mut conn), "n1");
    let inside = conn.transaction(|conn| {
        let_pass(sticky_for * 2);
        QueryResult::Ok(who(conn))
    });
    assert_eq!(inside, Ok("n0".into()));
    assert_eq!(who(&mut conn), "n0", "nothing older than a moment ago");
}

#[test]
fn a_context_left_inside_a_transaction_sticks_until_after_its_end() {
    let sticky_for = Duration::from_millis(200);
    let db = paused_db_with(1, |config| config.max_lag(None).sticky_for(sticky_for));
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        let done = conn.transaction(|conn| {
            Context::new().run(|| write(conn, "mine"));
            let_pass(sticky_for * 2);
            QueryResult::Ok(())
        });
        assert_eq!(done, Ok(()));
        assert_eq!(conn.distributed(bodies), ["mine"]);
    });
}

#[test]
fn a_connection_on_which_a_caught_panic_cut_a_begin_short_is_not_lent_again() {
    let db = db(0);
    let mut conn = db.pool.get().unwrap();
    who(&mut conn);
    conn.set_instrumentation(|event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::FinishQuery { query, .. } = event {
            assert!(!query.to_string().starts_with("BEGIN"), "as planned");
        }
    });
    let begin = AssertUnwindSafe(|| conn.transaction(|_| QueryResult::Ok(())));
    assert!(catch_unwind(begin).is_err());
    drop(conn);
    let mut next = db.pool.get().unwrap();
    next.set_instrumentation(|_: InstrumentationEvent<'_>| {});
    write(&mut next, "mine");
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "1");
}

//! Transactions end as they do on a plain Diesel connection, inside a block and outside.

use diesel::connection::{LoadConnection, TransactionManager};
use diesel::prelude::*;
use diesel::result::Error;

use super::backend::*;

type DB = <Plain as Connection>::Backend;

/// A connection to this database, plain or routed.
trait Either: Connection<Backend = DB> + LoadConnection {}
impl<C: Connection<Backend = DB> + LoadConnection> Either for C {}

type Manager<C> = <C as Connection>::TransactionManager;

fn add(conn: &mut impl Either, body: &str) -> QueryResult<()> {
    let insert = diesel::insert_into(note::table).values(note::body.eq(body));
    insert.execute(conn).map(drop)
}

/// Fails: the id is taken.
fn fail<C: Either>(conn: &mut C) -> QueryResult<()> {
    let taken = (note::id.eq(-1), note::body.eq("twice"));
    diesel::insert_into(note::table)
        .values(taken)
        .execute(conn)
        .map(drop)
}

fn depth<C: Either>(conn: &mut C) -> String {
    let status = Manager::<C>::transaction_manager_status_mut(conn);
    format!("{:?}", status.transaction_depth())
}

fn commits<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| add(conn, "a"))
}

fn rolls_back<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        Err(Error::RollbackTransaction)
    })
}

fn fails<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        fail(conn)
    })
}

fn nests<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        conn.transaction(|conn| add(conn, "b"))?;
        conn.transaction(|conn| conn.transaction(|conn| add(conn, "c")))
    })
}

fn rolls_a_savepoint_back<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        let inner: QueryResult<()> = conn.transaction(|conn| {
            add(conn, "b")?;
            Err(Error::RollbackTransaction)
        });
        assert_eq!(inner, Err(Error::RollbackTransaction));
        add(conn, "c")
    })
}

fn recovers_by_a_savepoint<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        let inner = conn.transaction(fail);
        assert!(matches!(inner, Err(Error::DatabaseError(..))), "{inner:?}");
        add(conn, "b")
    })
}

fn swallows_an_error<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        let _ = fail(conn);
        Ok(())
    })
}

fn goes_on_after_an_error<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        let _ = fail(conn);
        add(conn, "a")
    })
}

fn swallows_an_error_in_a_savepoint<C: Either>(conn: &mut C) -> QueryResult<()> {
    conn.transaction(|conn| {
        add(conn, "a")?;
        conn.transaction(|conn| {
            let _ = fail(conn);
            QueryResult::Ok(())
        })?;
        add(conn, "b")
    })
}

fn ends_what_was_not_begun<C: Either>(conn: &mut C) -> QueryResult<()> {
    let committed = Manager::<C>::commit_transaction(conn);
    assert!(
        matches!(committed, Err(Error::NotInTransaction)),
        "{committed:?}"
    );
    Manager::<C>::rollback_transaction(conn)
}

fn rolls_back_twice<C: Either>(conn: &mut C) -> QueryResult<()> {
    Manager::<C>::begin_transaction(conn)?;
    add(conn, "a")?;
    Manager::<C>::rollback_transaction(conn)?;
    Manager::<C>::rollback_transaction(conn)
}

fn goes_by_hand<C: Either>(conn: &mut C) -> QueryResult<()> {
    Manager::<C>::begin_transaction(conn)?;
    add(conn, "a")?;
    Manager::<C>::begin_transaction(conn)?;
    add(conn, "b")?;
    Manager::<C>::rollback_transaction(conn)?;
    Manager::<C>::commit_transaction(conn)
}

fn tests<C: Either>(conn: &mut C) -> QueryResult<()> {
    let added = conn.test_transaction(|conn| {
        add(conn, "a")?;
        note::table.count().get_result::<i64>(conn)
    });
    assert_eq!(added, 2);
    Ok(())
}

fn tells_its_depth<C: Either>(conn: &mut C) -> QueryResult<()> {
    assert_eq!(depth(conn), "Ok(None)");
    conn.transaction(|conn| {
        assert_eq!(depth(conn), "Ok(Some(1))");
        conn.transaction(|conn| {
            assert_eq!(depth(conn), "Ok(Some(2))");
            QueryResult::Ok(())
        })?;
        assert_eq!(depth(conn), "Ok(Some(1))");
        QueryResult::Ok(())
    })?;
    assert_eq!(depth(conn), "Ok(None)");
    Ok(())
}

/// What a scenario returns, what it leaves, and whether the connection can be used afterwards.
fn outcome<C: Either>(conn: &mut C, scenario: fn(&mut C) -> QueryResult<()>) -> String {
    let cleared = diesel::delete(note::table).execute(conn);
    let first = (note::id.eq(-1), note::body.eq("first"));
    let filled = diesel::insert_into(note::table).values(first).execute(conn);
    let result = scenario(conn);
    let left = note::table
        .select(note::body)
        .order(note::id)
        .load::<String>(conn);
    let broken = Manager::<C>::is_broken_transaction_manager(conn);
    format!(
        "{cleared:?} {filled:?}, then {result:?}, left {left:?}, at {}, broken: {broken}",
        depth(conn)
    )
}

type Scenario = (
    &'static str,
    fn(&mut Plain) -> QueryResult<()>,
    fn(&mut Conn) -> QueryResult<()>,
);

macro_rules! scenarios {
    ($($scenario:ident),+ $(,)?) => {
        [$((stringify!($scenario), $scenario::<Plain>, $scenario::<Conn>)),+]
    };
}

const SCENARIOS: [Scenario; 14] = {
    scenarios![
        commits,
        rolls_back,
        fails,
        nests,
        rolls_a_savepoint_back,
        recovers_by_a_savepoint,
        swallows_an_error,
        goes_on_after_an_error,
        swallows_an_error_in_a_savepoint,
        ends_what_was_not_begun,
        rolls_back_twice,
        goes_by_hand,
        tests,
        tells_its_depth,
    ]
};

#[test]
fn a_transaction_ends_as_without_the_router() {
    let db = db(1);
    let mut plain = Plain::establish(&db.cluster.url(0)).unwrap();
    for (name, on_plain, on_routed) in SCENARIOS {
        // how many rows are cleared depends on what ran before: start from none
        diesel::delete(note::table).execute(&mut plain).unwrap();
        let expected = outcome(&mut plain, on_plain);
        diesel::delete(note::table).execute(&mut plain).unwrap();
        let mut conn = db.pool.get().unwrap();
        assert_eq!(outcome(&mut *conn, on_routed), expected, "{name}");
        diesel::delete(note::table).execute(&mut plain).unwrap();
        let in_block = conn.distributed(|conn| outcome(conn, on_routed));
        assert_eq!(in_block, expected, "{name}, in a block");
    }
}

#[test]
fn a_handle_that_has_opened_nothing_is_in_no_transaction() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    assert_eq!(depth(&mut *conn), "Ok(None)");
    assert!(!Manager::<Conn>::is_broken_transaction_manager(&mut conn));
    conn.distributed(|conn| {
        who(conn);
        assert_eq!(depth(conn), "Ok(None)");
    });
    conn.read_only_transaction(|conn| {
        assert_eq!(who(conn), "n1");
        assert_eq!(depth(conn), "Ok(Some(1))", "that of the node it runs on");
        QueryResult::Ok(())
    })
    .unwrap();
    let open: Vec<u32> = conn
        .cluster()
        .status()
        .nodes
        .iter()
        .map(|node| node.open)
        .collect();
    assert_eq!(open, [0, 1], "and nothing of it opened the primary");
}

#[test]
fn a_transaction_that_fails_leaves_the_handle_as_good_as_new() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    batch(
        &mut conn,
        "INSERT INTO note (id, body) VALUES (-1, 'first')",
    );
    db.cluster.wait_replicated();
    let failed: QueryResult<()> = conn.distributed(|conn| conn.transaction(fail));
    assert!(failed.is_err());
    assert_eq!(depth(&mut *conn), "Ok(None)");
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    assert_eq!(conn.distributed(who), "n1");
    assert_eq!(bodies(&mut conn), ["first"]);
}

#[test]
fn a_write_in_a_read_only_transaction_fails_and_is_sent_nowhere_else() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let written: QueryResult<()> = conn.read_only_transaction(|conn| add(conn, "never"));
    let error = written.unwrap_err();
    assert!(
        matches!(error, Error::DatabaseError(..)),
        "the server's own: {error:?}"
    );
    assert_eq!(
        conn.distributed(who),
        "n1",
        "nothing was written, and the handle goes on"
    );
    assert!(bodies(&mut conn).is_empty());
    // and the same on the primary, whose session writes again afterwards
    let written: QueryResult<()> =
        conn.primary(|conn| conn.read_only_transaction(|conn| add(conn, "never")));
    assert!(
        matches!(written, Err(Error::DatabaseError(..))),
        "{written:?}"
    );
    write(&mut conn, "written");
    assert_eq!(bodies(&mut conn), ["written"]);
}

#[test]
fn a_panic_in_a_transaction_leaves_nothing_behind() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _: QueryResult<()> = conn.distributed(|conn| {
            conn.transaction(|conn| {
                add(conn, "never")?;
                panic!("expected")
            })
        });
    }));
    assert!(panicked.is_err());
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    assert!(
        bodies(&mut conn).is_empty(),
        "the transaction went with its connection"
    );
    assert_eq!(conn.distributed(who), "n1");
}

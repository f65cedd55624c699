//! Read-only transactions: on a replica, where a block would read.

use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::statement::Dialect;
use diesel_routed::{Context, Reason, ReplicatedConnection, RoutedError};

use super::backend::*;

type Outcome<T = ()> = QueryResult<T>;

#[test]
fn it_runs_on_a_replica() {
    let db = db(2);
    let mut conn = db.pool.get().unwrap();
    let (first, second) = conn
        .read_only_transaction(|conn| Outcome::Ok((who(conn), who(conn))))
        .unwrap();
    assert!(first == "n1" || first == "n2", "{first}");
    assert_eq!(first, second, "the whole transaction on one node");
    assert_eq!(reason(&conn), Reason::ReadOnlyTransaction);
    assert_eq!(who(&mut conn), "n0", "and is over afterwards");
    let open = conn.cluster().status().nodes[0].open;
    assert_eq!(open, 1, "the primary was opened only now");
}

#[test]
fn it_sees_one_state_although_replication_goes_on() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    conn.read_only_transaction(|conn| {
        assert_eq!(bodies(conn), [""; 0]);
        db.cluster.sql(0, "INSERT INTO note (body) VALUES ('late')");
        if Plain::DIALECT != Dialect::Sqlite {
            db.cluster.wait_replicated();
        }
        // PostgreSQL's default isolation shows what is committed between two statements
        let late = usize::from(Plain::DIALECT == Dialect::Postgres);
        assert_eq!(bodies(conn).len(), late);
        Outcome::Ok(())
    })
    .unwrap();
}

#[test]
fn after_an_own_write_it_runs_on_the_primary() {
    let db = paused_db(1);
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "mine");
        let seen = conn.read_only_transaction(|conn| Outcome::Ok((who(conn), bodies(conn))));
        assert_eq!(seen, Ok(("n0".into(), vec!["mine".into()])));
        let seen = conn.distributed(|conn| {
            conn.read_only_transaction(|conn| Outcome::Ok((who(conn), bodies(conn))))
        });
        assert_eq!(seen, Ok(("n0".into(), vec!["mine".into()])), "in a block");
    });
}

#[test]
fn in_a_block_it_runs_where_the_block_reads() {
    let db = db(2);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let replica = who(conn);
        let inside = conn.read_only_transaction(|conn| Outcome::Ok(who(conn)));
        assert_eq!(inside, Ok(replica.clone()));
        assert_eq!(who(conn), replica, "and the block goes on there");
        write(conn, "mine");
        let inside = conn.read_only_transaction(|conn| Outcome::Ok(who(conn)));
        assert_eq!(inside, Ok("n0".into()));
    });
}

#[test]
fn a_write_in_it_fails_as_the_server_says_and_is_not_sent_again() {
    for on in ["n1", "n0"] {
        let db = paused_db(1);
        let mut conn = db.pool.get().unwrap();
        if on == "n0" {
            conn.stick_to_primary();
        }
        let result = conn.read_only_transaction(|conn| {
            assert_eq!(who(conn), on);
            sql(conn, "INSERT INTO note (body) VALUES ('x')")
        });
        let error = result.unwrap_err();
        assert!(matches!(error, Error::DatabaseError(..)), "{error:?}");
        assert_eq!(RoutedError::downcast(&error), None, "the server's own");
        for node in 0..=1 {
            let count = db.cluster.sql(node, "SELECT count(*) FROM note");
            assert_eq!(count, "0", "nothing on n{node}");
        }
        write(&mut conn, "the session writes again");
        assert_eq!(bodies(&mut conn).len(), 1);
    }
}

#[test]
fn a_transaction_inside_is_a_savepoint_of_it() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    conn.read_only_transaction(|conn| {
        let inner = conn.transaction(|conn| Outcome::Ok(who(conn)));
        assert_eq!(inner, Ok("n1".into()));
        let again = conn.read_only_transaction(|conn| Outcome::Ok(who(conn)));
        assert_eq!(again, Ok("n1".into()));
        let failed = conn.transaction(|_| Outcome::<()>::Err(Error::RollbackTransaction));
        assert_eq!(failed, Err(Error::RollbackTransaction));
        assert_eq!(who(conn), "n1", "and the transaction goes on");
        Outcome::Ok(())
    })
    .unwrap();
}

#[test]
fn the_primary_cannot_be_asked_for_inside() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let expected = Some(RoutedError::ReadOnlyTransaction { node: "n1".into() });
    conn.read_only_transaction(|conn| {
        let forced = conn.primary(|conn| sql(conn, "SELECT 1")).unwrap_err();
        assert_eq!(RoutedError::downcast(&forced), expected);
        let Err(real) = conn.primary_connection() else {
            panic!("there is no primary here");
        };
        assert_eq!(RoutedError::downcast(&real), expected);
        assert_eq!(who(conn), "n1", "the transaction is unharmed");
        Outcome::Ok(())
    })
    .unwrap();
    assert_eq!(conn.primary(who), "n0");
}

#[test]
fn on_the_primary_the_session_writes_again_afterwards() {
    let db = paused_db(1);
    for ending in [Ok(()), Err(Error::RollbackTransaction)] {
        let mut conn = db.pool.get().unwrap();
        let result = conn.primary(|conn| {
            conn.read_only_transaction(|conn| {
                assert_eq!(who(conn), "n0");
                match &ending {
                    Ok(()) => Ok(()),
                    Err(_) => Err(Error::RollbackTransaction),
                }
            })
        });
        assert_eq!(result, ending);
        write(&mut conn, "by the same handle");
        drop(conn);
        write(&mut db.pool.get().unwrap(), "by the next");
    }
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "4");
}

#[test]
fn it_leaves_no_mark() {
    let db = paused_db(1);
    let context = Context::new();
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        for _ in 0..2 {
            conn.read_only_transaction(|conn| Outcome::Ok(who(conn)))
                .unwrap();
            assert!(!context.is_sticky());
        }
        conn.primary(|conn| conn.read_only_transaction(|conn| Outcome::Ok(who(conn))))
            .unwrap();
        assert!(!context.is_sticky(), "nor does one on the primary");
    });
}

//! Transactions with options, as `build_transaction` makes them.

use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::Text;

use super::backend::*;
use super::reads::paused;

type Outcome = QueryResult<String>;
type Row = (&'static str, fn(&mut Conn) -> Outcome);

/// Where a transaction runs, at which level, and whether it only reads.
fn told(conn: &mut Conn) -> Outcome {
    let set = |conn: &mut Conn, name: &str| {
        let setting = diesel::dsl::sql::<Text>("current_setting(")
            .bind::<Text, _>(name)
            .sql(")");
        diesel::select(setting).get_result::<String>(conn)
    };
    let level = set(conn, "transaction_isolation")?;
    let reads = set(conn, "transaction_read_only")?;
    let deferred = set(conn, "transaction_deferrable")?;
    Ok(format!(
        "{}: {level}, read-only {reads}, deferrable {deferred}",
        who(conn)
    ))
}

#[test]
#[rustfmt::skip]
fn a_built_transaction_runs_as_it_says_on_a_replica_if_it_only_reads() {
    let table: &[Row] = &[
        ("n0: read committed, read-only off, deferrable off", |c| c.build_transaction().run(told)),
        ("n0: read committed, read-only off, deferrable off", |c| c.build_transaction().read_committed().read_write().run(told)),
        ("n0: repeatable read, read-only off, deferrable off", |c| c.build_transaction().repeatable_read().run(told)),
        ("n0: serializable, read-only off, deferrable off", |c| c.build_transaction().serializable().run(told)),
        ("n0: serializable, read-only on, deferrable on", |c| c.build_transaction().serializable().read_only().deferrable().run(told)),
        ("n0: serializable, read-only off, deferrable off", |c| c.distributed(|c| c.build_transaction().serializable().not_deferrable().run(told))),
        ("n1: read committed, read-only on, deferrable off", |c| c.build_transaction().read_only().run(told)),
        ("n1: repeatable read, read-only on, deferrable off", |c| c.build_transaction().repeatable_read().read_only().run(told)),
        ("n1: repeatable read, read-only on, deferrable on", |c| c.distributed(|c| c.build_transaction().deferrable().read_only().repeatable_read().run(told))),
        ("n0: read committed, read-only on, deferrable off", |c| c.primary(|c| c.build_transaction().read_only().run(told))),
        ("n0: read committed, read-only on, deferrable off", |c| { write(c, "x"); c.build_transaction().read_only().run(told) }),
    ];
    let db = paused();
    for (expected, run) in table {
        let mut conn = db.pool.get().unwrap();
        assert_eq!(run(&mut conn).as_deref(), Ok(*expected));
        assert_eq!(conn.distributed(|conn| conn.transaction(told)).unwrap(), "n0: read committed, read-only off, deferrable off", "nothing of it is left");
    }
}

#[test]
fn a_built_transaction_fails_as_without_the_router() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    let nested = conn.transaction(|conn| conn.build_transaction().run(|_| Ok(())));
    assert!(
        matches!(nested, Err::<(), _>(Error::AlreadyInTransaction)),
        "{nested:?}"
    );
    let nested =
        conn.read_only_transaction(|conn| conn.build_transaction().read_only().run(|_| Ok(())));
    assert!(
        matches!(nested, Err::<(), _>(Error::AlreadyInTransaction)),
        "{nested:?}"
    );
    let refused = conn
        .build_transaction()
        .read_only()
        .run(|conn| diesel::delete(note::table).execute(conn));
    let kind = |error: &Error| match error {
        Error::DatabaseError(kind, _) => format!("{kind:?}"),
        other => format!("{other:?}"),
    };
    assert_eq!(
        refused.map_err(|error| kind(&error)),
        Err(format!("{:?}", DatabaseErrorKind::ReadOnlyTransaction))
    );
    assert_eq!(conn.distributed(who), "n1", "a refused write marks nothing");
}

/// Two transactions that each read what the other one writes.
#[test]
fn a_serialization_failure_is_told_and_rolls_back() {
    let db = db(1);
    let (mut first, mut second) = (db.pool.get().unwrap(), db.pool.get().unwrap());
    let failed = first.build_transaction().serializable().run(|first| {
        note::table.count().get_result::<i64>(first)?;
        second.build_transaction().serializable().run(|second| {
            note::table.count().get_result::<i64>(second)?;
            write(second, "second");
            QueryResult::Ok(())
        })?;
        diesel::insert_into(note::table)
            .values(note::body.eq("first"))
            .execute(first)
    });
    let Err(Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) = failed else {
        panic!("a serialization failure: {failed:?}");
    };
    assert_eq!(bodies(&mut first), ["second"]);
}

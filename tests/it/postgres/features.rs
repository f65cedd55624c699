//! What Diesel offers on PostgreSQL alone.

use std::io::BufRead;

use diesel::pg::{Pg, PgConnection, PgRowByRowLoadingMode};
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::{Bool, Text};
use diesel_routed::{Reason, Role, RoutedError};

use super::backend::*;
use super::reads::paused;
use super::writes::ask;

#[derive(Debug, PartialEq, diesel::sql_types::SqlType, diesel::query_builder::QueryId)]
#[diesel(postgres_type(name = "mood"))]
pub struct MoodType;

#[derive(Debug, PartialEq, diesel::deserialize::FromSqlRow, diesel::expression::AsExpression)]
#[diesel(sql_type = MoodType)]
struct Mood(String);

impl diesel::serialize::ToSql<MoodType, Pg> for Mood {
    fn to_sql<'b>(
        &'b self,
        out: &mut diesel::serialize::Output<'b, '_, Pg>,
    ) -> diesel::serialize::Result {
        std::io::Write::write_all(out, self.0.as_bytes())?;
        Ok(diesel::serialize::IsNull::No)
    }
}

impl diesel::deserialize::FromSql<MoodType, Pg> for Mood {
    fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
        Ok(Self(String::from_utf8(value.as_bytes().to_vec())?))
    }
}

diesel::table! {
    use diesel::sql_types::Integer;
    use super::MoodType;
    day (id) {
        id -> Integer,
        mood -> MoodType,
    }
}

#[test]
fn a_type_of_ones_own_is_looked_up_on_the_node_that_needs_it() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    batch(
        &mut conn,
        "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TABLE day (id INTEGER PRIMARY KEY, mood mood NOT NULL)",
    );
    let mood = |text: &str| Mood(text.to_owned());
    let good = (day::id.eq(1), day::mood.eq(mood("good")));
    diesel::insert_into(day::table)
        .values(good)
        .execute(&mut conn)
        .unwrap();
    drop(conn);
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    let read = || {
        day::table
            .filter(day::mood.eq(mood("good")))
            .select(day::mood)
    };
    for _ in 0..2 {
        assert_eq!(
            conn.distributed(|conn| read().load::<Mood>(conn)).unwrap(),
            [mood("good")]
        );
        assert_eq!(&*conn.last_route().unwrap().node, "n1");
    }
    assert_eq!(read().load::<Mood>(&mut conn).unwrap(), [mood("good")]);
    assert_eq!(&*conn.last_route().unwrap().node, "n0");
}

#[test]
fn notifications_arrive_on_the_primary_connection_which_is_closed_afterwards() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "new");
    let primary: &mut PgConnection = conn.primary_connection().unwrap();
    diesel::sql_query("LISTEN news").execute(primary).unwrap();
    diesel::sql_query("NOTIFY news, 'it rains'")
        .execute(primary)
        .unwrap();
    let heard: Vec<_> = primary.notifications_iter().map(Result::unwrap).collect();
    assert_eq!(
        heard
            .iter()
            .map(|news| news.payload.as_str())
            .collect::<Vec<_>>(),
        ["it rains"]
    );
    assert_eq!(conn.distributed(who), "n0", "the handle stays there");
    let cluster = conn.cluster().clone();
    drop(conn);
    assert_eq!(
        cluster.status().nodes[0].open,
        0,
        "the connection is closed"
    );
    let mut conn = db.pool.get().unwrap();
    assert_eq!(conn.distributed(who), "n1");
}

/// Diesel leaves a connection in the middle of such a copy, where it answers no other statement: it is closed.
#[test]
fn a_copy_to_does_not_spoil_the_connection_of_the_next_request() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    let primary = conn.primary_connection().unwrap();
    let text = diesel::copy_to(note::table).load_raw(primary).unwrap();
    let copied: Vec<String> = text.lines().map(Result::unwrap).collect();
    assert!(
        copied.len() == 1 && copied[0].ends_with("\told"),
        "{copied:?}"
    );
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    let primary = conn.primary_connection().unwrap();
    let rows = diesel::copy_to(note::table)
        .load::<CopiedNote, _>(primary)
        .unwrap();
    let copied: Vec<String> = rows.map(|row| row.unwrap().body).collect();
    assert_eq!(copied, ["old"]);
    drop(conn);
    assert_eq!(bodies(&mut db.pool.get().unwrap()), ["old"]);
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = note)]
struct CopiedNote {
    body: String,
}

#[test]
fn the_primary_connection_counts_as_a_write_of_the_context() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    diesel_routed::Context::new().run(|| {
        conn.distributed(|conn| {
            conn.primary_connection().unwrap();
            assert_eq!(who(conn), "n0", "also in a block");
        });
        drop(conn);
        let mut conn = db.pool.get().unwrap();
        assert_eq!(conn.distributed(who), "n0");
        assert_eq!(conn.last_route().unwrap().reason, Reason::NotCaughtUp);
    });
}

#[test]
fn the_primary_connection_is_refused_inside_a_read_only_transaction_on_a_replica() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    let refused = conn.read_only_transaction(|conn| conn.primary_connection().map(drop));
    let error = refused.unwrap_err();
    let told = RoutedError::downcast(&error);
    assert!(
        matches!(told, Some(RoutedError::ReadOnlyTransaction { node }) if node == "n1"),
        "{error}"
    );
}

#[test]
fn a_copy_in_a_block_is_a_write() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let copy = diesel::copy_from(note::table).from_insertable(vec![(note::body.eq("copied"),)]);
        assert_eq!(copy.execute(conn), Ok(1));
        assert_eq!(bodies(conn), ["old", "copied"]);
    });
    assert_eq!(
        conn.distributed(bodies),
        ["old", "copied"],
        "later blocks see it"
    );
    let copy = diesel::copy_from(note::table).from_insertable(vec![(note::body.eq("pooled"),)]);
    assert_eq!(
        copy.execute(&mut *conn),
        Ok(1),
        "a pooled handle is dereferenced"
    );
    let refused = conn.read_only_transaction(|conn| {
        diesel::copy_from(note::table)
            .from_insertable(vec![(note::body.eq("never"),)])
            .execute(conn)
    });
    assert!(refused.is_err(), "a read-only transaction takes no copy");
}

#[test]
fn row_by_row_loading_may_stop_halfway() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    ["a", "b", "c"]
        .iter()
        .for_each(|body| write(&mut conn, body));
    drop(conn);
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        let query = note::table.select(note::body).order(note::id);
        let mut rows = query
            .load_iter::<String, PgRowByRowLoadingMode>(conn)
            .unwrap();
        assert_eq!(rows.next().unwrap().unwrap(), "a");
        drop(rows);
        assert_eq!(bodies(conn), ["a", "b", "c"]);
        assert_eq!(who(conn), "n1");
    });
}

/// An error that comes after rows were handed out is the caller's: nothing can be sent again.
#[test]
fn a_refusal_after_the_first_row_is_returned() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    batch(
        &mut conn,
        "CREATE FUNCTION late(n integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
        IF n = 3 THEN INSERT INTO note (body) VALUES ('late'); END IF; RETURN n; END $$",
    );
    drop(conn);
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    let (seen, error) = conn.distributed(|conn| {
        let query = diesel::select(diesel::dsl::sql::<Text>(
            "late(n)::text FROM generate_series(1, 5) AS n",
        ));
        let rows = query
            .load_iter::<String, PgRowByRowLoadingMode>(conn)
            .unwrap();
        let (seen, failed): (Vec<_>, Vec<_>) = rows.partition(Result::is_ok);
        (seen.len(), failed.into_iter().next().unwrap().unwrap_err())
    });
    assert_eq!(seen, 2);
    assert!(
        matches!(
            error,
            Error::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _)
        ),
        "{error:?}"
    );
    assert!(bodies(&mut conn).is_empty(), "nothing was written anywhere");
}

/// One pair of events for each time the statement was sent: a refusal on the replica, then the primary.
#[test]
fn instrumentation_is_told_of_both_tries_of_a_statement_that_was_sent_again() {
    use diesel::connection::InstrumentationEvent;
    use std::sync::{Arc, Mutex};
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    batch(
        &mut conn,
        "CREATE FUNCTION add_note(said text) RETURNS text LANGUAGE sql AS 'INSERT INTO note (body) VALUES (said) RETURNING body'",
    );
    drop(conn);
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
        told.lock().unwrap().push(match event {
            InstrumentationEvent::StartQuery { .. } => "start",
            InstrumentationEvent::FinishQuery { error: None, .. } => "finish",
            InstrumentationEvent::FinishQuery { .. } => "fail",
            _ => return,
        });
    });
    let mut add = |body: &str| {
        let query = format!("SELECT add_note('{body}') AS name");
        assert_eq!(conn.distributed(|conn| ask(conn, &query)), body);
        assert_eq!(conn.last_route().unwrap().reason, Reason::ReadOnlyRefused);
        std::mem::take(&mut *events.lock().unwrap())
    };
    assert_eq!(
        add("a"),
        ["start", "fail", "start", "finish"],
        "sent to the replica, then to the primary"
    );
    assert_eq!(add("a"), ["start", "finish"], "the second time it is known");
}

#[test]
fn the_role_of_a_route_is_that_of_the_node() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let recovering = || {
        diesel::select(diesel::dsl::sql::<Bool>(
            "current_setting('in_hot_standby')::bool",
        ))
    };
    for _ in 0..2 {
        let standby = conn
            .distributed(|conn| recovering().get_result::<bool>(conn))
            .unwrap();
        assert_eq!(
            (standby, conn.last_route().unwrap().role),
            (true, Role::Replica)
        );
        let standby = recovering().get_result::<bool>(&mut conn).unwrap();
        assert_eq!(
            (standby, conn.last_route().unwrap().role),
            (false, Role::Primary)
        );
    }
}

/// The error of a copy is the caller's own type, which tells the router nothing of the connection.
#[test]
fn a_connection_that_broke_in_a_copy_is_not_lent_again() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let copy = diesel::copy_from(note::table).from_raw_data((note::body,), |_| {
        let end =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'app'";
        db.cluster.sql(0, end);
        QueryResult::Ok(())
    });
    assert!(copy.execute(&mut *conn).is_err());
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    let read = note::table.count().get_result::<i64>(&mut conn);
    assert_eq!(read, Ok(0), "the next request has a connection that works");
}

//! What has to run on the primary in PostgreSQL's SQL alone.

use diesel::pg::PgRowByRowLoadingMode;
use diesel::prelude::*;
use diesel_routed::statement::Keeps;

use super::backend::*;
use super::writes::{
    Marks, N, W, Write, ask, connected, has_table, holds, nodes_with, on_primary, row, run,
};

pub(super) const UPSERT: &str = "INSERT INTO note (id, body) VALUES (1000, 'upserted') ON CONFLICT (id) DO UPDATE SET body = excluded.body";

/// What the statements need.
pub(super) const PREPARE: &[&str] = &[
    "CREATE FUNCTION add_note(said text) RETURNS text LANGUAGE sql AS 'INSERT INTO note (body) VALUES (said) RETURNING body'",
    "CREATE PROCEDURE say(said text) LANGUAGE sql AS 'INSERT INTO note (body) VALUES (said)'",
    "CREATE TABLE to_truncate AS SELECT 1 AS a",
];

const NONE: Marks = Marks::Nothing;
const STATE: Keeps = Keeps::State;

pub(super) fn own_writes() -> Vec<Write> {
    let mut all = rows();
    all.extend(locks());
    all.extend(functions());
    all.extend(sessions());
    all.extend(structure());
    all
}

#[rustfmt::skip]
fn rows() -> Vec<Write> {
    use note::{body, table};
    vec![
        row("insert returning, by sql_query", "write", W, N, |c| {
            assert_eq!(ask(c, "INSERT INTO note (body) VALUES ('a5') RETURNING body AS name"), "a5");
        }, |_, db| holds(db, "a5")),
        row("insert returning", "write", W, N, |c| {
            let made = diesel::insert_into(table).values(body.eq("p1")).returning(body);
            assert_eq!(made.get_result::<String>(c).unwrap(), "p1");
        }, |_, db| holds(db, "p1")),
        row("insert returning, row by row", "write", W, N, |c| {
            let made = diesel::insert_into(table).values(body.eq("p2")).returning(body);
            let rows = made.load_iter::<String, PgRowByRowLoadingMode>(c).unwrap();
            assert_eq!(rows.count(), 1);
        }, |_, db| holds(db, "p2")),
        row("update returning", "write", W, N, |c| {
            let changed = diesel::update(table.filter(body.eq("to update"))).set(body.eq("p3")).returning(body);
            assert_eq!(changed.load::<String>(c).unwrap(), ["p3"]);
        }, |_, db| holds(db, "p3")),
        row("delete returning nothing", "write", W, N, |c| {
            let gone = diesel::delete(table.filter(body.eq("none"))).returning(body);
            assert!(gone.load::<String>(c).unwrap().is_empty());
        }, connected),
        row("insert on conflict do nothing", "write", W, N, |c| {
            diesel::insert_into(table).values(body.eq("p4")).on_conflict_do_nothing().execute(c).unwrap();
        }, |_, db| holds(db, "p4")),
        row("common table expression that inserts", "write", W, N, |c| {
            assert_eq!(ask(c, "WITH w AS (INSERT INTO note (body) VALUES ('p5') RETURNING body) SELECT body AS name FROM w"), "p5");
        }, |_, db| holds(db, "p5")),
        row("common table expression that deletes, and a read", "write", W, N, |c| {
            on_primary(c, "WITH w AS (DELETE FROM note WHERE body = 'none' RETURNING 1) SELECT name FROM node_name");
        }, connected),
        row("insert behind a common table expression", "write", W, N, |c| run(c, "WITH w (b) AS (SELECT 'p6') INSERT INTO note (body) SELECT b FROM w"), |_, db| holds(db, "p6")),
        row("merge", "write", W, N, |c| {
            run(c, "MERGE INTO note USING (VALUES ('p7')) AS v (b) ON body = b WHEN NOT MATCHED THEN INSERT (body) VALUES (b)");
        }, |_, db| holds(db, "p7")),
        row("explain analyze of an insert", "write", W, N, |c| batch(c, "EXPLAIN (ANALYZE, COSTS OFF) INSERT INTO note (body) VALUES ('p8')"), |_, db| holds(db, "p8")),
        row("copy from rows", "write", W, N, |c| {
            let copy = diesel::copy_from(table).from_insertable(vec![(body.eq("p9"),)]);
            assert_eq!(copy.execute(c), Ok(1));
        }, |_, db| holds(db, "p9")),
        row("copy from text", "write", W, N, |c| {
            let copy = diesel::copy_from(table).from_raw_data((body,), |to| to.write_all(b"p10\n").map_err(|error| {
                diesel::result::Error::SerializationError(Box::new(error))
            }));
            assert_eq!(copy.execute(c), Ok(1));
        }, |_, db| holds(db, "p10")),
        row("anonymous block", "write", W, N, |c| run(c, "DO $$ BEGIN INSERT INTO note (body) VALUES ('p11'); END $$"), |_, db| holds(db, "p11")).by_routine(),
        row("call", "write", W, N, |c| run(c, "CALL say('p12')"), |_, db| holds(db, "p12")).by_routine(),
    ]
}

#[rustfmt::skip]
fn locks() -> Vec<Write> {
    use note::table;
    const L: &str = "locking read";
    macro_rules! typed {
        ($name:literal, $($lock:ident).+) => {
            row($name, L, NONE, N, |c| {
                let who = node_name::table.select(node_name::name).single_value();
                let locked = table.select(who).limit(1)$(.$lock())+.first::<Option<String>>(c);
                assert_eq!(locked.unwrap().as_deref(), Some("n0"));
            }, connected)
        };
    }
    macro_rules! text {
        ($name:literal) => {
            row($name, L, NONE, N, |c| {
                on_primary(c, concat!("SELECT (SELECT name FROM node_name) AS name FROM note WHERE body = 'old' ", $name));
            }, connected)
        };
    }
    vec![
        typed!("for_update()", for_update),
        typed!("for_update().skip_locked()", for_update.skip_locked),
        typed!("for_update().no_wait()", for_update.no_wait),
        typed!("for_no_key_update()", for_no_key_update),
        typed!("for_share()", for_share),
        typed!("for_share().skip_locked()", for_share.skip_locked),
        typed!("for_key_share()", for_key_share),
        text!("FOR UPDATE"),
        text!("for\n update;"),
        text!("FOR NO KEY UPDATE"),
        text!("FOR SHARE"),
        text!("FOR KEY SHARE"),
        text!("FOR UPDATE OF note"),
        text!("FOR KEY SHARE OF note NOWAIT"),
        text!("FOR SHARE SKIP LOCKED"),
        text!("FOR UPDATE /* all of it */ -- now"),
        row("for update in a subquery", L, NONE, N, |c| {
            on_primary(c, "SELECT name FROM node_name, (SELECT id FROM note LIMIT 1 FOR UPDATE) AS n");
        }, connected),
        row("lock table", "write", W, N, |c| batch(c, "BEGIN; LOCK TABLE note IN SHARE MODE; COMMIT"), connected),
    ]
}

#[rustfmt::skip]
fn functions() -> Vec<Write> {
    const U: fn(&mut Conn, &str) = on_primary;
    vec![
        row("nextval", "function nextval", W, N, |c| U(c, "SELECT name FROM node_name WHERE nextval('note_id_seq') > 0"), connected),
        row("nextval with a space and a schema", "function nextval", W, N, |c| U(c, "SELECT name FROM node_name WHERE pg_catalog.nextval ('public.note_id_seq') > 0"), connected),
        row("currval on the connection of nextval", "function currval", W, N, |c| {
            run(c, "SELECT nextval('note_id_seq')");
            U(c, "SELECT name FROM node_name WHERE currval('note_id_seq') > 0");
        }, connected),
        row("lastval on the connection that inserted", "function lastval", W, N, |c| {
            write(c, "f1");
            U(c, "SELECT name FROM node_name WHERE lastval() = (SELECT max(id) FROM note WHERE body = 'f1')");
        }, connected),
        row("setval", "function setval", W, N, |c| U(c, "SELECT name FROM node_name WHERE setval('note_id_seq', 5000) = 5000"), connected),
        row("pg_advisory_lock", "function pg_advisory_lock", W, STATE, |c| U(c, "SELECT name FROM node_name, pg_advisory_lock(1)"), |_, db| held(db, 1)),
        row("pg_try_advisory_lock", "function pg_try_advisory_lock", W, STATE, |c| U(c, "SELECT name FROM node_name WHERE pg_try_advisory_lock(2)"), |_, db| held(db, 2)),
        row("pg_advisory_lock_shared", "function pg_advisory_lock_shared", W, STATE, |c| U(c, "SELECT name FROM node_name, pg_advisory_lock_shared(1, 3)"), |_, db| held(db, 3)),
        row("pg_advisory_unlock_all", "function pg_advisory_unlock_all", W, STATE, |c| U(c, "SELECT name FROM node_name, pg_advisory_unlock_all()"), connected),
        row("pg_advisory_xact_lock", "function pg_advisory_xact_lock", W, N, |c| U(c, "SELECT name FROM node_name, pg_advisory_xact_lock(4)"), connected),
        row("set_config", "function set_config", W, STATE, |c| U(c, "SELECT name FROM node_name WHERE set_config('a.b', 'c', false) = 'c'"), |c, _| {
            ask(c, "SELECT name FROM node_name WHERE current_setting('a.b') = 'c'")
        }),
        row("pg_notify", "function pg_notify", W, N, |c| U(c, "SELECT name FROM node_name, pg_notify('a', 'b')"), connected),
        row("txid_current", "function txid_current", W, N, |c| U(c, "SELECT name FROM node_name WHERE txid_current() > 0"), connected),
        row("pg_backend_pid", "function pg_backend_pid", W, N, |c| U(c, "SELECT name FROM node_name WHERE pg_backend_pid() > 0"), connected),
        row("lo_create", "function lo_create", W, N, |c| U(c, "SELECT name FROM node_name WHERE lo_create(0) > 0"), connected),
        row("a function on no list that writes", "refused by a replica", W, N, |c| assert_eq!(ask(c, "SELECT add_note('f2') AS name"), "f2"), |_, db| holds(db, "f2")),
        row("the same again", "refused by a replica", W, N, |c| assert_eq!(ask(c, "SELECT add_note('f3') AS name"), "f3"), |_, db| holds(db, "f3")),
        row("a function that writes, typed", "refused by a replica", W, N, |c| {
            let added = diesel::select(add_note("f4")).get_result::<String>(c);
            assert_eq!(added.unwrap(), "f4");
        }, |_, db| holds(db, "f4")),
        row("a function that writes, row by row", "refused by a replica", W, N, |c| {
            let mut rows = diesel::select(add_note("f5")).load_iter::<String, PgRowByRowLoadingMode>(c).unwrap();
            assert_eq!(rows.next().unwrap().unwrap(), "f5");
            assert!(rows.next().is_none());
        }, |_, db| holds(db, "f5")),
        row("a function that writes, by execute", "refused by a replica", W, N, |c| run(c, "SELECT add_note('f6')"), |_, db| holds(db, "f6")),
    ]
}

#[diesel::declare_sql_function]
extern "SQL" {
    fn add_note(said: diesel::sql_types::Text) -> diesel::sql_types::Text;
}

/// Where a session holds an advisory lock.
fn held(db: &Db, lock: u32) -> String {
    let count =
        format!("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {lock}");
    nodes_with(db, &count)
}

#[rustfmt::skip]
fn sessions() -> Vec<Write> {
    const S: &str = "session state";
    vec![
        row("set", S, NONE, STATE, |c| run(c, "SET application_name = 'set'"), |c, _| {
            ask(c, "SELECT name FROM node_name WHERE current_setting('application_name') = 'set'")
        }),
        row("set search_path by batch_execute", S, NONE, STATE, |c| batch(c, "set search_path to public, pg_temp"), connected),
        row("set time zone", S, NONE, STATE, |c| run(c, "SET TIME ZONE 'Asia/Tokyo'"), connected),
        row("set local", S, NONE, N, |c| run(c, "SET LOCAL application_name = 'local'"), not_set),
        row("reset all", S, NONE, STATE, |c| run(c, "RESET ALL"), connected),
        row("prepare", S, NONE, STATE, |c| batch(c, "PREPARE mine AS SELECT name FROM node_name"), |c, _| ask(c, "SELECT n.name FROM node_name AS n, pg_prepared_statements AS p WHERE p.name = 'mine'")),
        row("listen", S, NONE, STATE, |c| run(c, "LISTEN news"), connected),
        row("notify", "write", W, N, |c| run(c, "NOTIFY news"), connected),
        row("cursor that is held", S, NONE, STATE, |c| batch(c, "DECLARE mine CURSOR WITH HOLD FOR SELECT name FROM node_name"), |c, _| ask(c, "SELECT n.name FROM node_name AS n, pg_cursors AS p WHERE p.name = 'mine'")),
        row("select into a temporary table", "write", W, STATE, |c| batch(c, "SELECT name INTO TEMP mine FROM node_name"), |c, _| ask(c, "SELECT name FROM mine")),
        row("object in pg_temp", "write", W, STATE, |c| batch(c, "CREATE TABLE pg_temp.mine AS SELECT name FROM node_name"), |c, _| ask(c, "SELECT name FROM pg_temp.mine")),
    ]
}

fn not_set(c: &mut Conn, _: &Db) -> String {
    ask(
        c,
        "SELECT name FROM node_name WHERE current_setting('application_name') <> 'local'",
    )
}

#[rustfmt::skip]
fn structure() -> Vec<Write> {
    vec![
        row("select into", "write", W, N, |c| run(c, "SELECT 1 AS a INTO selected"), |_, db| has_table(db, "selected")),
        row("truncate", "write", W, N, |c| run(c, "TRUNCATE to_truncate"), |_, db| {
            if db.cluster.sql(1, "SELECT a FROM to_truncate") == "1" && db.cluster.sql(0, "SELECT a FROM to_truncate").is_empty() { "n0" } else { "?" }.to_owned()
        }),
        row("create index concurrently", "write", W, N, |c| batch(c, "CREATE INDEX CONCURRENTLY ON note (body)"), connected),
        row("create a function", "write", W, N, |c| run(c, "CREATE FUNCTION one() RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT 1; END"), connected),
        row("comment", "write", W, N, |c| run(c, "COMMENT ON TABLE note IS 'notes'"), connected),
        row("grant", "write", W, N, |c| run(c, "GRANT SELECT ON note TO PUBLIC"), connected),
        row("vacuum", "write", W, N, |c| run(c, "VACUUM note"), connected),
        row("analyze", "write", W, N, |c| run(c, "ANALYZE note"), connected),
        row("reindex", "write", W, N, |c| run(c, "REINDEX TABLE note"), connected),
        row("refresh", "write", W, N, |c| batch(c, "CREATE MATERIALIZED VIEW m AS SELECT 1; REFRESH MATERIALIZED VIEW m"), connected),
    ]
}

//! What has to run on the primary in the SQL of MariaDB and MySQL.

use diesel::prelude::*;
use diesel_routed::statement::Keeps;

use super::backend::*;
use super::writes::{Marks, N, W, Write, ask, connected, holds, on_primary, row, run};

pub(super) const UPSERT: &str = "REPLACE INTO note (id, body) VALUES (1000, 'upserted')";

/// What the statements need.
pub(super) const ADD_NOTE: &str = "CREATE FUNCTION add_note(said TEXT) RETURNS TEXT MODIFIES SQL DATA BEGIN INSERT INTO note (body) VALUES (said); RETURN said; END";
pub(super) const SAY: &str =
    "CREATE PROCEDURE say(said TEXT) INSERT INTO note (body) VALUES (said)";
pub(super) const TO_TRUNCATE: &str = "CREATE TABLE to_truncate AS SELECT 1 AS a";

pub(super) const NONE: Marks = Marks::Nothing;
pub(super) const STATE: Keeps = Keeps::State;

pub(super) fn own_writes() -> Vec<Write> {
    let mut all = rows();
    all.extend(locks());
    all.extend(functions());
    all.extend(sessions());
    all.extend(super::alone::alone());
    all
}

#[rustfmt::skip]
fn rows() -> Vec<Write> {
    vec![
        row("replace, typed", "write", W, N, |c| {
            diesel::replace_into(note::table).values(note::body.eq("m1")).execute(c).unwrap();
        }, |_, db| holds(db, "m1")),
        row("insert ignore, typed", "write", W, N, |c| {
            diesel::insert_or_ignore_into(note::table).values(note::body.eq("m2")).execute(c).unwrap();
        }, |_, db| holds(db, "m2")),
        row("insert with set", "write", W, N, |c| run(c, "INSERT note SET body = 'm3'"), |_, db| holds(db, "m3")),
        row("insert in a comment that is run", "write", W, N, |c| run(c, "/*! INSERT INTO note (body) VALUES ('m4') */"), |_, db| holds(db, "m4")),
        row("call", "write", W, N, |c| batch(c, "CALL say('m5')"), |_, db| holds(db, "m5")).by_routine(),
        row("do", "write", W, N, |c| run(c, "DO SLEEP(0)"), connected).by_routine(),
        row("truncate", "write", W, N, |c| run(c, "TRUNCATE to_truncate"), |_, db| {
            if db.cluster.sql(1, "SELECT a FROM to_truncate") == "1" && db.cluster.sql(0, "SELECT a FROM to_truncate").is_empty() { "n0" } else { "?" }.to_owned()
        }),
        row("analyze table", "write", W, N, |c| batch(c, "ANALYZE TABLE note"), connected),
    ]
}

/// A locking read by its last clause.
macro_rules! locking {
    ($clause:literal) => {
        row(
            $clause,
            "locking read",
            NONE,
            N,
            |c| {
                on_primary(
                    c,
                    concat!(
                        "SELECT (SELECT name FROM node_name) AS name FROM note WHERE body = 'old' ",
                        $clause
                    ),
                );
            },
            connected,
        )
    };
}
pub(super) use locking;

#[rustfmt::skip]
fn locks() -> Vec<Write> {
    const L: &str = "locking read";
    vec![
        row("for_update()", L, NONE, N, |c| {
            let who = node_name::table.select(node_name::name).single_value();
            let locked = note::table.select(who).limit(1).for_update().first::<Option<String>>(c);
            assert_eq!(locked.unwrap().as_deref(), Some("n0"));
        }, connected),
        locking!("FOR UPDATE"),
        locking!("for\n update"),
        locking!("FOR UPDATE NOWAIT"),
        locking!("FOR UPDATE SKIP LOCKED"),
        locking!("LOCK IN SHARE MODE"),
        locking!("LOCK IN\nSHARE MODE # now"),
        row("lock tables", L, NONE, STATE, |c| batch(c, "LOCK TABLES note READ, node_name READ"), connected),
    ]
}

#[rustfmt::skip]
fn functions() -> Vec<Write> {
    const U: fn(&mut Conn, &str) = on_primary;
    vec![
        row("last_insert_id on the connection that inserted", "function last_insert_id", W, N, |c| {
            write(c, "f1");
            U(c, "SELECT name FROM node_name WHERE LAST_INSERT_ID() = (SELECT id FROM note WHERE body = 'f1')");
        }, connected),
        row("row_count", "function row_count", W, N, |c| run(c, "SELECT ROW_COUNT()"), connected),
        row("found_rows on the connection that counted", "function found_rows", W, N, |c| {
            run(c, "SELECT SQL_CALC_FOUND_ROWS id FROM note LIMIT 1");
            U(c, "SELECT name FROM node_name WHERE FOUND_ROWS() > 1");
        }, connected),
        row("get_lock", "function get_lock", W, STATE, |c| U(c, "SELECT name FROM node_name WHERE GET_LOCK('mine', 0) = 1"), |_, db| {
            let used = |node: &usize| db.cluster.sql(*node, "SELECT IS_USED_LOCK('mine') IS NOT NULL") == "1";
            (0..2).filter(used).map(|node| format!("n{node}")).collect()
        }),
        row("release_lock", "function release_lock", W, STATE, |c| run(c, "SELECT RELEASE_LOCK('mine')"), connected),
        row("is_free_lock", "function is_free_lock", W, N, |c| U(c, "SELECT name FROM node_name WHERE IS_FREE_LOCK('free') = 1"), connected),
        row("connection_id", "function connection_id", W, N, |c| U(c, "SELECT name FROM node_name WHERE CONNECTION_ID() > 0"), connected),
        row("a function on no list that writes", "refused by a replica", W, N, |c| assert_eq!(ask(c, "SELECT add_note('f2') AS name"), "f2"), |_, db| holds(db, "f2")),
        row("the same again", "refused by a replica", W, N, |c| assert_eq!(ask(c, "SELECT add_note('f3') AS name"), "f3"), |_, db| holds(db, "f3")),
        row("a function that writes, by execute", "refused by a replica", W, N, |c| run(c, "SELECT add_note('f4')"), |_, db| holds(db, "f4")),
    ]
}

#[rustfmt::skip]
fn sessions() -> Vec<Write> {
    const S: &str = "session state";
    vec![
        row("set of a user variable", S, NONE, STATE, |c| run(c, "SET @a = 1"), |c, _| ask(c, "SELECT name FROM node_name WHERE @a = 1")),
        row("set of a session variable", S, NONE, STATE, |c| batch(c, "SET SESSION sql_mode = 'ANSI_QUOTES'"), connected),
        row("select into a user variable", S, NONE, STATE, |c| run(c, "SELECT name INTO @who FROM node_name"), |c, _| ask(c, "SELECT @who AS name")),
        row("assignment in a select", S, NONE, STATE, |c| run(c, "SELECT @b := 1"), |c, _| ask(c, "SELECT name FROM node_name WHERE @b = 1")),
        row("user variable that is read", S, NONE, N, |c| run(c, "SELECT @c"), connected),
        row("last_insert_id as a variable", S, NONE, N, |c| run(c, "SELECT @@last_insert_id"), connected),
        row("use", S, NONE, STATE, |c| batch(c, "USE app"), connected),
        row("prepare", S, NONE, STATE, |c| batch(c, "PREPARE mine FROM 'SELECT 1'"), connected),
        row("handler", S, NONE, STATE, |c| batch(c, "HANDLER note OPEN"), connected),
    ]
}

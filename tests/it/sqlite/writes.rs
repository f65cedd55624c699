//! What has to run on the primary in SQLite's SQL alone.

use diesel::prelude::*;
use diesel_routed::statement::Keeps;

use super::backend::*;
use super::writes::{Marks, N, W, Write, ask, connected, holds, on_primary, row, run};

pub(super) const UPSERT: &str = "INSERT OR REPLACE INTO note (id, body) VALUES (1000, 'upserted')";

/// What the statements need.
pub(super) const PREPARE: &[&str] = &[];

#[rustfmt::skip]
pub(super) fn own_writes() -> Vec<Write> {
    const S: &str = "session state";
    use note::{body, table};
    vec![
        row("insert or ignore, typed", "write", W, N, |c| {
            diesel::insert_or_ignore_into(table).values(body.eq("l1")).execute(c).unwrap();
        }, |_, db| holds(db, "l1")),
        row("replace, typed", "write", W, N, |c| {
            diesel::replace_into(table).values(body.eq("l2")).execute(c).unwrap();
        }, |_, db| holds(db, "l2")),
        row("insert returning, by sql_query", "write", W, N, |c| {
            assert_eq!(ask(c, "INSERT INTO note (body) VALUES ('a5') RETURNING body AS name"), "a5");
        }, |_, db| holds(db, "a5")),
        row("upsert, typed", "write", W, N, |c| {
            diesel::insert_into(table).values(body.eq("l3")).on_conflict_do_nothing().execute(c).unwrap();
        }, |_, db| holds(db, "l3")),
        row("insert behind a common table expression", "write", W, N, |c| run(c, "WITH w (b) AS (SELECT 'l4') INSERT INTO note (body) SELECT b FROM w"), |_, db| holds(db, "l4")),
        row("last_insert_rowid on the connection that inserted", "function last_insert_rowid", W, N, |c| {
            write(c, "l5");
            on_primary(c, "SELECT name FROM node_name WHERE last_insert_rowid() = (SELECT id FROM note WHERE body = 'l5')");
        }, connected),
        row("changes", "function changes", W, N, |c| run(c, "SELECT changes()"), connected),
        row("total_changes", "function total_changes", W, N, |c| run(c, "SELECT total_changes()"), connected),
        row("pragma that sets", "write", W, Keeps::State, |c| batch(c, "PRAGMA user_version = 7"), |_, db| {
            let set = |node: &usize| db.cluster.sql(*node, "PRAGMA user_version") == "7";
            (0..2).filter(set).map(|node| format!("n{node}")).collect()
        }),
        row("pragma of the session", S, Marks::Nothing, N, |c| run(c, "PRAGMA cache_size"), connected),
        row("attach", S, Marks::Nothing, Keeps::State, |c| batch(c, "ATTACH ':memory:' AS beside"), |c, _| {
            ask(c, "SELECT name FROM main.node_name WHERE (SELECT count(*) FROM beside.sqlite_master) = 0")
        }),
        row("vacuum", "write", W, N, |c| batch(c, "VACUUM"), connected),
        row("analyze", "write", W, N, |c| run(c, "ANALYZE"), connected),
        row("trigger", "write", W, N, |c| batch(c, "CREATE TRIGGER more AFTER DELETE ON note BEGIN INSERT INTO note (body) VALUES ('a; b'); DELETE FROM note WHERE id < 0; END"), connected),
        row("begin immediate", "write", W, N, |c| batch(c, "BEGIN IMMEDIATE; INSERT INTO note (body) VALUES ('l6'); END"), |_, db| holds(db, "l6")),
    ]
}

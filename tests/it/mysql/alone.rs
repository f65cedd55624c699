//! What has to run on the primary in MySQL's SQL alone.

use super::own::{ADD_NOTE, NONE, SAY, STATE, TO_TRUNCATE, locking};
use super::writes::{N, W, Write, connected, holds, on_primary, row, run};

/// What the statements need.
pub(super) const PREPARE: &[&str] = &[ADD_NOTE, SAY, TO_TRUNCATE];

/// Inserts a note as only MySQL does.
pub(super) fn insert_in_its_way(body: &str) -> String {
    format!("INSERT INTO note (body) VALUES ROW('{body}')")
}

#[rustfmt::skip]
pub(super) fn alone() -> Vec<Write> {
    const S: &str = "session state";
    vec![
        row("insert of a row constructor", "write", W, N, |c| run(c, "INSERT INTO note (body) VALUES ROW('my1')"), |_, db| holds(db, "my1")),
        row("insert with an alias", "write", W, N, |c| run(c, "INSERT INTO note (id, body) VALUES (2000, 'my2') AS new ON DUPLICATE KEY UPDATE body = new.body"), |_, db| holds(db, "my2")),
        row("update after a common table expression", "write", W, N, |c| run(c, "WITH x AS (SELECT 2000 AS id) UPDATE note SET body = 'my3' WHERE id IN (SELECT id FROM x)"), |_, db| holds(db, "my3")),
        locking!("FOR SHARE"),
        locking!("for\n share"),
        locking!("FOR SHARE SKIP LOCKED"),
        locking!("FOR SHARE NOWAIT"),
        locking!("FOR UPDATE OF note"),
        locking!("FOR UPDATE OF note SKIP LOCKED"),
        locking!("FOR SHARE OF note NOWAIT"),
        row("into at the end", S, NONE, STATE, |c| run(c, "SELECT name FROM node_name INTO @late"), connected),
        row("setting of the session by its long name", S, NONE, STATE, |c| run(c, "SET @@SESSION.cte_max_recursion_depth = 900"), connected),
    ]
}

//! What a session of MariaDB can hold.

/// What it is, how it comes there, how it shows, and how it looks where it is not.
pub const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    (
        "a setting",
        "SET SESSION wait_timeout = 4321",
        "CAST(@@wait_timeout = 4321 AS CHAR)",
        "0",
    ),
    (
        "a setting in a transaction",
        "START TRANSACTION; SET SESSION wait_timeout = 4321; COMMIT",
        "CAST(@@wait_timeout = 4321 AS CHAR)",
        "0",
    ),
    (
        "no autocommit",
        "SET autocommit = 0",
        "CAST(@@autocommit = 1 AS CHAR)",
        "1",
    ),
    (
        "a default isolation",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "CAST(@@tx_isolation AS CHAR)",
        "REPEATABLE-READ",
    ),
    (
        "a variable set by a block",
        "BEGIN NOT ATOMIC SET @mine = 'a';\nEND",
        MINE,
        "",
    ),
    ("a variable", "SET @mine = 'a'", MINE, ""),
    (
        "a variable assigned by a SELECT",
        "SELECT @mine := 'a'",
        MINE,
        "",
    ),
    (
        "a variable selected into",
        "SELECT 'a' INTO @mine",
        MINE,
        "",
    ),
    (
        "a temporary table",
        "CREATE TEMPORARY TABLE note (id INT); INSERT INTO note VALUES (1)",
        NOTES,
        "0",
    ),
    (
        "a lock",
        "SELECT GET_LOCK('mine', 0)",
        "CAST(IS_FREE_LOCK('mine') AS CHAR)",
        "1",
    ),
    (
        "a lock done",
        "DO GET_LOCK('mine', 0)",
        "CAST(IS_FREE_LOCK('mine') AS CHAR)",
        "1",
    ),
    ("a locked table", "LOCK TABLES note WRITE", NOTES, "0"),
    (
        "an open transaction",
        "BEGIN; INSERT INTO note (body) VALUES ('lost')",
        NOTES,
        "0",
    ),
    (
        "an open transaction of the long form",
        "START TRANSACTION; INSERT INTO note (body) VALUES ('lost')",
        NOTES,
        "0",
    ),
];

const MINE: &str = "COALESCE(@mine, '')";
const NOTES: &str = "(SELECT CAST(COUNT(*) AS CHAR) FROM note)";

/// Runs at once if no lock was left.
pub const UNBLOCKED: &str = "SET SESSION lock_wait_timeout = 2; TRUNCATE note";

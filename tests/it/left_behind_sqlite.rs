//! What a connection to SQLite can hold.

/// What it is, how it comes there, how it shows, and how it looks where it is not.
pub const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    (
        "a setting",
        "PRAGMA cache_size = 4321",
        "(SELECT CAST(cache_size = 4321 AS TEXT) FROM pragma_cache_size)",
        "0",
    ),
    (
        "a temporary table",
        "CREATE TEMP TABLE note (id INT); INSERT INTO note VALUES (1)",
        NOTES,
        "0",
    ),
    (
        "a temporary view",
        "CREATE TEMPORARY VIEW note AS SELECT 1 AS id",
        NOTES,
        "0",
    ),
    (
        "an attached database",
        "ATTACH ':memory:' AS mine",
        "(SELECT CAST(count(*) AS TEXT) FROM pragma_database_list WHERE name = 'mine')",
        "0",
    ),
    (
        "an open transaction",
        "BEGIN; INSERT INTO note (body) VALUES ('lost')",
        NOTES,
        "0",
    ),
    (
        "an open transaction that locks",
        "BEGIN EXCLUSIVE; INSERT INTO note (body) VALUES ('lost')",
        NOTES,
        "0",
    ),
    (
        "an open savepoint",
        "SAVEPOINT mine; INSERT INTO note (body) VALUES ('lost')",
        NOTES,
        "0",
    ),
];

const NOTES: &str = "(SELECT CAST(count(*) AS TEXT) FROM note)";

/// The copies are made by the harness, which would be locked out, too.
pub const UNBLOCKED: &str = "";

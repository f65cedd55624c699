//! What a session of PostgreSQL can hold.

/// What it is, how it comes there, how it shows, and how it looks where it is not.
pub const LEFT_BEHIND: &[(&str, &str, &str, &str)] = &[
    ("a setting", "SET my.tenant = 'a'", TENANT, ""),
    (
        "set_config",
        "SELECT set_config('my.tenant', 'a', false)",
        TENANT,
        "",
    ),
    (
        "a setting in a transaction",
        "BEGIN; SET my.tenant = 'a'; COMMIT",
        TENANT,
        "",
    ),
    (
        "a setting in a DO",
        "DO 'BEGIN PERFORM set_config(''my.tenant'', ''a'', false);\nEND'",
        TENANT,
        "",
    ),
    (
        "a default isolation",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "current_setting('default_transaction_isolation')",
        "read committed",
    ),
    (
        "a temporary table",
        "CREATE TEMP TABLE note (id INT); INSERT INTO note VALUES (1)",
        NOTES,
        "0",
    ),
    (
        "a temporary table by SELECT INTO",
        "SELECT 1 AS id INTO TEMP note",
        NOTES,
        "0",
    ),
    ("a lock", "SELECT pg_advisory_lock(42)", LOCKS, "0"),
    (
        "a lock tried",
        "SELECT pg_try_advisory_lock(42)",
        LOCKS,
        "0",
    ),
    (
        "a channel",
        "LISTEN somebody",
        "(SELECT count(*)::text FROM pg_listening_channels())",
        "0",
    ),
    (
        "a prepared statement",
        "PREPARE mine AS SELECT 1",
        "(SELECT count(*)::text FROM pg_prepared_statements WHERE name = 'mine')",
        "0",
    ),
    (
        "a cursor that is held",
        "BEGIN; DECLARE mine CURSOR WITH HOLD FOR SELECT 1; COMMIT",
        "(SELECT count(*)::text FROM pg_cursors WHERE name = 'mine')",
        "0",
    ),
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

const TENANT: &str = "coalesce(current_setting('my.tenant', true), '')";
const NOTES: &str = "(SELECT count(*)::text FROM note)";
const LOCKS: &str = "(SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory')";

/// Runs at once if no lock was left.
pub const UNBLOCKED: &str = "SET lock_timeout = '2s'; TRUNCATE note";

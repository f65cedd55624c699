//! What a session of MariaDB or MySQL can hold.

/// What it is, how it comes there, how it shows, and how it looks where it is not.
pub type Row = (&'static str, &'static str, &'static str, &'static str);

/// What both can hold, and the rows that are given.
macro_rules! rows {
    (isolation: $isolation:literal $(, $own:expr)*) => {
        &[
            $($own,)*
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
                concat!("CAST(@@", $isolation, " AS CHAR)"),
                "REPEATABLE-READ",
            ),
            ("a variable", "SET @mine = 'a'", "COALESCE(@mine, '')", ""),
            (
                "a variable assigned by a SELECT",
                "SELECT @mine := 'a'",
                "COALESCE(@mine, '')",
                "",
            ),
            (
                "a variable selected into",
                "SELECT 'a' INTO @mine",
                "COALESCE(@mine, '')",
                "",
            ),
            (
                "a temporary table",
                "CREATE TEMPORARY TABLE note (id INT); INSERT INTO note VALUES (1)",
                "(SELECT CAST(COUNT(*) AS CHAR) FROM note)",
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
            ("a locked table", "LOCK TABLES note WRITE", "(SELECT CAST(COUNT(*) AS CHAR) FROM note)", "0"),
            (
                "an open transaction",
                "BEGIN; INSERT INTO note (body) VALUES ('lost')",
                "(SELECT CAST(COUNT(*) AS CHAR) FROM note)",
                "0",
            ),
            (
                "an open transaction of the long form",
                "START TRANSACTION; INSERT INTO note (body) VALUES ('lost')",
                "(SELECT CAST(COUNT(*) AS CHAR) FROM note)",
                "0",
            ),
        ]
    };
}
pub(crate) use rows;

pub const LEFT_BEHIND: &[Row] = rows!(
    isolation: "tx_isolation",
    (
        "a variable set by a block",
        "BEGIN NOT ATOMIC SET @mine = 'a';\nEND",
        "COALESCE(@mine, '')",
        "",
    )
);

/// Runs at once if no lock was left.
pub const UNBLOCKED: &str = "SET SESSION lock_wait_timeout = 2; TRUNCATE note";

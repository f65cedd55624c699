//! The words that steer the scanner. Everything else is a [`Keyword::Plain`] name.

macro_rules! keywords {
    ($($keyword:ident: $($text:literal)|+,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword {
            /// No keyword, or one used as a name.
            Plain,
            $($keyword,)*
        }

        const LONGEST: usize = {
            let mut longest = 0;
            $($(if $text.len() > longest { longest = $text.len(); })+)*
            longest
        };

        fn find(lower_case: &[u8]) -> Keyword {
            match lower_case {
                $($($text)|+ => Keyword::$keyword,)*
                _ => Keyword::Plain,
            }
        }
    };
}

keywords! {
    // reads
    Select: b"select",
    Values: b"values",
    Table: b"table",
    With: b"with",
    Show: b"show",
    Explain: b"explain",
    Describe: b"describe" | b"desc",
    Analyze: b"analyze" | b"analyse",
    Pragma: b"pragma",
    // rows
    Insert: b"insert",
    Update: b"update",
    Delete: b"delete",
    Merge: b"merge",
    Replace: b"replace",
    // routines
    Call: b"call",
    Do: b"do",
    Execute: b"execute",
    // transactions
    Begin: b"begin",
    Start: b"start",
    Commit: b"commit",
    End: b"end",
    Abort: b"abort",
    Rollback: b"rollback",
    Savepoint: b"savepoint",
    Release: b"release",
    Xa: b"xa",
    // the session
    Set: b"set",
    Reset: b"reset",
    Discard: b"discard",
    Listen: b"listen" | b"unlisten",
    Declare: b"declare",
    Prepare: b"prepare",
    Deallocate: b"deallocate",
    Lock: b"lock",
    Unlock: b"unlock",
    Use: b"use",
    Handler: b"handler",
    Attach: b"attach" | b"detach",
    Load: b"load",
    Flush: b"flush",
    Backup: b"backup",
    Get: b"get",
    // objects
    Create: b"create",
    Alter: b"alter",
    Verb: b"binlog" | b"cache" | b"change" | b"check" | b"checkpoint" | b"checksum" | b"clone" | b"close"
        | b"cluster" | b"comment" | b"copy" | b"drop" | b"fetch" | b"grant" | b"import" | b"install" | b"kill"
        | b"move" | b"notify" | b"optimize" | b"purge" | b"reassign" | b"refresh" | b"reindex" | b"rename"
        | b"repair" | b"resignal" | b"restart" | b"revoke" | b"security" | b"shutdown" | b"signal" | b"stop"
        | b"truncate" | b"uninstall" | b"vacuum",
    // inside statements
    As: b"as",
    Atomic: b"atomic",
    Autocommit: b"autocommit",
    CalcFoundRows: b"sql_calc_found_rows",
    Case: b"case",
    Chain: b"chain",
    Constraints: b"constraints",
    Default: b"default",
    Distinct: b"distinct",
    ExplainOption: b"verbose" | b"extended" | b"partitions" | b"format" | b"query" | b"plan",
    Export: b"export",
    For: b"for",
    Global: b"global" | b"persist" | b"persist_only",
    Hold: b"hold",
    If: b"if",
    In: b"in",
    Into: b"into",
    Key: b"key",
    Local: b"local",
    Loop: b"loop" | b"while" | b"repeat",
    Next: b"next" | b"previous",
    No: b"no",
    Not: b"not",
    On: b"on",
    Operator: b"operator",
    Password: b"password",
    Prepared: b"prepared",
    Recursive: b"recursive",
    Routine: b"trigger" | b"procedure" | b"function" | b"event" | b"package",
    Share: b"share",
    Statement: b"statement",
    Tables: b"tables",
    Temporary: b"temp" | b"temporary",
    To: b"to",
    Transaction: b"transaction",
    Value: b"value",
}

impl Keyword {
    pub(super) fn of(word: &str) -> Self {
        let word = word.as_bytes();
        if word.len() > LONGEST {
            return Self::Plain;
        }
        let mut lower_case = [0; LONGEST];
        let lower_case = &mut lower_case[..word.len()];
        lower_case.copy_from_slice(word);
        lower_case.make_ascii_lowercase();
        find(lower_case)
    }

    /// `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `REPLACE`.
    pub(super) fn changes_rows(self) -> bool {
        use Keyword::*;
        matches!(self, Insert | Update | Delete | Merge | Replace)
    }

    /// What a query begins with, once its `WITH` is over.
    pub(super) fn starts_query(self) -> bool {
        use Keyword::*;
        matches!(self, Select | Values | Table)
    }
}

//! The words that steer the scanner. Everything else is a [`Keyword::Plain`] name.
use super::spelling::Spelling;

macro_rules! keywords {
    ($($keyword:ident: $($text:literal)|+,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword {
            /// No keyword, or one used as a name.
            Plain,
            $($keyword,)*
        }

        static WORDS: &[(Spelling, Keyword)] =
            &[$($((Spelling::of($text.as_bytes()), Keyword::$keyword),)+)*];
    };
}

keywords! {
    // reads
    Select: "select",
    Values: "values",
    Table: "table",
    With: "with",
    Show: "show",
    Explain: "explain",
    Describe: "describe" | "desc",
    Analyze: "analyze" | "analyse",
    Pragma: "pragma",
    // rows
    Insert: "insert",
    Update: "update",
    Delete: "delete",
    Merge: "merge",
    Replace: "replace",
    // routines
    Call: "call",
    Do: "do",
    Execute: "execute",
    // transactions
    Begin: "begin",
    Start: "start",
    Commit: "commit",
    End: "end",
    Abort: "abort",
    Rollback: "rollback",
    Savepoint: "savepoint",
    Release: "release",
    Xa: "xa",
    // the session
    Set: "set",
    Reset: "reset",
    Discard: "discard",
    Listen: "listen" | "unlisten",
    Declare: "declare",
    Prepare: "prepare",
    Deallocate: "deallocate",
    Lock: "lock",
    Unlock: "unlock",
    Use: "use",
    Handler: "handler",
    Attach: "attach" | "detach",
    Load: "load",
    Flush: "flush",
    Backup: "backup",
    Get: "get",
    // objects
    Create: "create",
    Alter: "alter",
    Verb: "binlog" | "cache" | "change" | "check" | "checkpoint" | "checksum" | "clone" | "close"
        | "cluster" | "comment" | "copy" | "drop" | "fetch" | "grant" | "import" | "install" | "kill"
        | "move" | "notify" | "optimize" | "purge" | "reassign" | "refresh" | "reindex" | "rename"
        | "repair" | "resignal" | "restart" | "revoke" | "security" | "shutdown" | "signal" | "stop"
        | "truncate" | "uninstall" | "vacuum",
    // inside statements
    As: "as",
    Atomic: "atomic",
    Autocommit: "autocommit",
    CalcFoundRows: "sql_calc_found_rows",
    Case: "case",
    Chain: "chain",
    Clause: "and" | "from" | "or" | "where",
    Constraints: "constraints",
    Default: "default",
    Distinct: "distinct",
    ExplainOption: "verbose" | "extended" | "partitions" | "format" | "query" | "plan",
    Export: "export",
    For: "for",
    Global: "global" | "persist" | "persist_only",
    Hold: "hold",
    If: "if",
    In: "in",
    Into: "into",
    Key: "key",
    Local: "local",
    Loop: "loop" | "while" | "repeat",
    Next: "next",
    No: "no",
    Not: "not",
    On: "on",
    Operator: "operator",
    Password: "password",
    Prepared: "prepared",
    Previous: "previous",
    Recursive: "recursive",
    Routine: "trigger" | "procedure" | "function" | "event" | "package",
    Share: "share",
    Statement: "statement",
    Tables: "tables",
    Temporary: "temp" | "temporary",
    To: "to",
    Transaction: "transaction",
    Value: "value",
}

const SLOTS: usize = 1024;

/// Where each keyword stands in [`WORDS`], counted from one, at its slot or behind it.
static TABLE: [u8; SLOTS] = {
    let mut table = [0; SLOTS];
    let mut word = 0;
    while word < WORDS.len() {
        let mut slot = WORDS[word].0.slot(SLOTS);
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        word += 1;
        table[slot] = word as u8;
    }
    table
};

impl Keyword {
    /// Of a word without quotes.
    #[inline]
    pub(super) fn of(word: &[u8]) -> Self {
        let word = Spelling::of(word);
        let mut slot = word.slot(SLOTS);
        while let Some(index) = usize::from(TABLE[slot]).checked_sub(1) {
            let (spelling, keyword) = &WORDS[index];
            if *spelling == word {
                return *keyword;
            }
            slot = (slot + 1) % SLOTS;
        }
        Self::Plain
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

    /// Whether a parenthesis behind it holds no arguments in any dialect: most parentheses stand behind these.
    pub(super) fn is_never_called(self) -> bool {
        use Keyword::*;
        matches!(self, Clause | In | On | Values)
    }

    /// Whether it matters what comes next.
    pub(super) fn announces(self) -> bool {
        matches!(self, Self::Into | Self::End) || self.changes_rows()
    }
}

/// Whether a word is one of these, in any case.
pub(super) fn is_any(word: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|other| word.eq_ignore_ascii_case(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::Dialect;
    use super::super::functions::{Function, built_in};
    use super::super::rules::{Identifier, Quoting};
    use super::*;

    #[test]
    fn words_that_are_never_called_are_so_by_the_lists_of_each_dialect() {
        let words = ["and", "from", "in", "on", "or", "values", "where"];
        for word in words.map(str::as_bytes) {
            assert!(Keyword::of(word).is_never_called());
            let name = Identifier {
                text: word,
                quoting: Quoting::Bare,
            };
            for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
                let function = built_in(dialect, None, name);
                assert!(matches!(function, Function::Pure), "{dialect:?} {word:?}");
            }
        }
    }
}

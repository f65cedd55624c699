//! What the first words of a statement say.
use super::Dialect;
use super::keyword::Keyword;
use super::kind::{Form, Keeps, Need, QueryKind, TransactionEffect};
use super::scan::is_any;
use super::single::{Before, Body, Explained, Head, Single};

/// What a statement is that begins with this word; `None` if none does.
fn opening(dialect: Dialect, keyword: Keyword) -> Option<QueryKind> {
    use Dialect::*;
    use Keyword::*;
    let kind = match keyword {
        Select | Values | Table | With => QueryKind::new(Form::Read, Need::Read),
        Show if dialect != Sqlite => QueryKind::new(Form::Read, Need::Read),
        Insert | Update | Delete | Merge | Replace => QueryKind::new(Form::Dml, Need::Write),
        Call | Do | Execute => QueryKind::new(Form::Routine, Need::Write),
        Begin | Start => transaction(TransactionEffect::Opens),
        Savepoint if dialect == Sqlite => transaction(TransactionEffect::Opens),
        End | Abort if dialect == Mysql => return None,
        Commit | Rollback | End | Abort => transaction(TransactionEffect::Closes),
        Savepoint | Release | Xa => transaction(TransactionEffect::None),
        Lock if dialect == Mysql => keeping(Need::Locking),
        Lock => QueryKind::new(Form::Other, Need::Locking),
        Set | Reset | Discard | Listen | Prepare | Deallocate | Unlock | Use | Handler | Attach => {
            keeping(Need::SessionState)
        }
        Load if dialect == Postgres => keeping(Need::SessionState),
        Backup => keeping(Need::Write),
        Declare | Get | Pragma => QueryKind::new(Form::Other, Need::SessionState),
        Create | Alter | Verb | Flush | Analyze | Load => QueryKind::new(Form::Other, Need::Write),
        _ => return None,
    };
    Some(kind)
}

fn transaction(effect: TransactionEffect) -> QueryKind {
    let mut kind = QueryKind::new(Form::Transaction, Need::Write);
    kind.session.transaction = effect;
    kind
}

fn keeping(need: Need) -> QueryKind {
    let mut kind = QueryKind::new(Form::Other, need);
    kind.keep_state();
    kind
}

/// Before it is known what the statement does.
impl Single<'_> {
    /// The first word.
    pub(super) fn begin(&mut self, keyword: Keyword) {
        use Keyword::*;
        match keyword {
            Explain => self.head = Head::Explain,
            Describe if self.dialect == Dialect::Mysql => self.head = Head::Explain,
            _ => match opening(self.dialect, keyword) {
                Some(kind) => self.starts(keyword, kind),
                None => self.not_understood(),
            },
        }
    }

    /// A word behind `EXPLAIN` or `DESCRIBE`: an option of it, or what it explains.
    pub(super) fn explain(&mut self, keyword: Keyword) {
        use Keyword::*;
        let query = keyword.starts_query() || keyword == With;
        let in_options = self.depth > 0 && !(query && self.before == Before::Open);
        let option = matches!(keyword, Analyze | ExplainOption) || self.before.announces_value();
        if in_options || option {
            return;
        }
        self.explained = Explained::Yes;
        match opening(self.dialect, keyword) {
            Some(kind) => self.starts(keyword, kind),
            // MySQL describes a table so
            None if self.dialect == Dialect::Mysql && keyword != For => {
                self.starts(Describe, QueryKind::new(Form::Read, Need::Read));
            }
            None => self.not_understood(),
        }
    }
}

/// Words that say more about a statement than its first one.
impl Single<'_> {
    pub(super) fn follow(&mut self, head: Keyword, keyword: Keyword, text: &str) {
        use Keyword::*;
        match head {
            Set if self.before.is(Set) => self.set(keyword),
            Begin | Start | Commit | End | Abort | Rollback | Prepare | Xa => {
                self.control_transaction(head, keyword);
            }
            Create | Alter => self.create(keyword),
            Show if (self.before.is(Show) || self.before2.is(Show))
                && is_any(text, SHOWS_OF_ONE_SERVER) =>
            {
                self.kind.raise(Need::SessionState);
            }
            Pragma if self.before.is(Pragma) || self.before == Before::Dot => self.pragma(text),
            Declare if keyword == Hold && self.before.is(With) => self.kind.keep_state(),
            Flush if matches!(keyword, Lock | Export) => self.kind.keep_state(),
            _ => {}
        }
        if let Body::Open(open) = &mut self.body {
            if keyword == Begin || (keyword == Case && !self.before.is(End)) {
                *open += 1;
            }
        }
    }

    /// The word behind `SET`.
    fn set(&mut self, keyword: Keyword) {
        use Keyword::*;
        let postgres = self.dialect == Dialect::Postgres;
        match keyword {
            // until the end of the transaction
            Local | Transaction | Constraints if postgres => {
                self.kind.session.keeps = Keeps::Nothing;
            }
            // the server, and perhaps also the session: SET GLOBAL a = 1, b = 2
            Global if !postgres => self.kind.raise(Need::Write),
            // accounts, or for one statement
            Password | Default | Statement if !postgres => {
                self.kind = QueryKind::new(Form::Other, Need::Write);
            }
            _ => {}
        }
    }

    fn control_transaction(&mut self, head: Keyword, keyword: Keyword) {
        use Keyword::*;
        let effect = &mut self.kind.session.transaction;
        match (head, keyword) {
            // MariaDB's block without a name: BEGIN NOT ATOMIC .. END
            (Begin, Not) if self.before.is(Begin) => {
                self.kind = QueryKind::new(Form::Routine, Need::Write);
                self.body = Body::Open(1);
            }
            (Start, _) if self.before.is(Start) && keyword != Transaction => {
                self.kind = QueryKind::new(Form::Other, Need::Write);
            }
            (Commit | Rollback | End | Abort, To | Prepared) => *effect = TransactionEffect::None,
            (Commit | Rollback | End | Abort, Chain) if !self.before.is(No) => {
                *effect = TransactionEffect::None;
            }
            (Prepare, Transaction)
                if self.before.is(Prepare) && self.dialect == Dialect::Postgres =>
            {
                self.kind = transaction(TransactionEffect::Closes);
            }
            (Xa, Begin | Start) if self.before.is(Xa) => *effect = TransactionEffect::Opens,
            (Xa, Commit | Rollback) if self.before.is(Xa) => *effect = TransactionEffect::Closes,
            _ => {}
        }
    }

    /// Temporary objects, and routines, whose bodies hold semicolons.
    fn create(&mut self, keyword: Keyword) {
        use Keyword::*;
        let postgres = self.dialect == Dialect::Postgres;
        let before_kind = matches!(self.before, Before::Word(Create | Replace | Local | Global));
        match (keyword, self.body) {
            (Temporary, _) if before_kind => self.kind.keep_state(),
            (Routine, Body::None) if self.depth == 0 => self.body = Body::Awaited,
            (Begin, Body::Awaited) if !postgres && self.depth == 0 => {
                self.body = Body::Open(0);
            }
            (Atomic, Body::Awaited) if self.before.is(Begin) => {
                self.body = Body::Open(1);
            }
            _ => {}
        }
    }
}

/// SQLite's `PRAGMA`.
impl Single<'_> {
    fn pragma(&mut self, name: &str) {
        if is_any(name, PRAGMAS_THAT_TELL) || is_any(name, PRAGMAS_THAT_TELL_ABOUT) {
            self.kind = QueryKind::new(Form::Read, Need::Read);
        }
    }

    /// What stands behind `=` or in parentheses sets most pragmas.
    pub(super) fn pragma_argument(&mut self) {
        let sets = self.before.announces_value();
        let argument = self.before == Before::Open && !self.name.is_any(PRAGMAS_THAT_TELL_ABOUT);
        if sets || argument {
            self.kind = keeping(Need::Write);
        }
    }
}

/// Pragmas that only tell something of the database, unless they get an argument.
const PRAGMAS_THAT_TELL: &[&str] = &[
    "application_id",
    "collation_list",
    "compile_options",
    "database_list",
    "encoding",
    "freelist_count",
    "function_list",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "schema_version",
    "user_version",
];

/// Pragmas that also with an argument only tell something.
const PRAGMAS_THAT_TELL_ABOUT: &[&str] = &[
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// What `SHOW` tells of the caller's session, or of the one server that answers.
const SHOWS_OF_ONE_SERVER: &[&str] = &[
    "analyze",
    "binary",
    "binlog",
    "count",
    "errors",
    "explain",
    "master",
    "processlist",
    "profile",
    "profiles",
    "relaylog",
    "replica",
    "replicas",
    "slave",
    "slaves",
    "warnings",
];

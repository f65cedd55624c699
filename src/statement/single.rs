//! One statement: its parentheses and `WITH` lists, and what holds in every statement.
use super::Dialect;
use super::calls::Name;
use super::depths::Depths;
use super::keyword::{Keyword, is_any};
use super::kind::{Form, FunctionName, Need, QueryKind, TransactionEffect};
use super::lexer::{Scope, Token};
use super::rules::{Identifier, Quoting};

/// What a token means to those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    // names first: it is asked most often whether it was one
    Word(Keyword),
    Quoted,
    Start,
    Value,
    Open,
    Close,
    /// The end of `DISTINCT ON (..)` or `OPERATOR(..)`, behind which an expression may begin.
    CloseOfPrefix,
    Comma,
    Dot,
    Cast,
    Assign,
    Equals,
    Symbol,
}

impl Before {
    pub(super) fn is(self, keyword: Keyword) -> bool {
        self == Self::Word(keyword)
    }

    pub(super) fn is_name(self) -> bool {
        matches!(self, Self::Word(_) | Self::Quoted)
    }

    /// Behind `AS` and `::` a name with a parenthesis is a type, `varchar(10)`, or an alias, `t(a, b)`.
    pub(super) fn announces_type_or_alias(self) -> bool {
        self == Self::Cast || self.is(Keyword::As)
    }

    pub(super) fn announces_value(self) -> bool {
        matches!(self, Self::Assign | Self::Equals)
    }
}

/// What is known of the kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// At most parentheses have been seen.
    Awaited,
    /// `EXPLAIN` or `DESCRIBE` has been seen, but not what it explains.
    Explain,
    /// A `WITH` list has begun; what it is for has not.
    With,
    /// This word has said what the statement does, and later ones may say more.
    Is(Keyword),
    /// Nothing more is to be learned of the statement's kind.
    Settled,
}

/// The statement that is being read.
pub(super) struct Single<'a> {
    pub(super) dialect: Dialect,
    pub(super) kind: QueryKind,
    pub(super) head: Head,
    /// The last token, and the one before it.
    pub(super) before: Before,
    pub(super) before2: Before,
    pub(super) name: Name<'a>,
    pub(super) depth: u32,
    /// The depth of the head: a statement may stand in parentheses.
    base: u32,
    /// Where a `WITH` list has not come to its query yet.
    with_lists: Depths,
    /// The parentheses of prefixes, see [`Before::CloseOfPrefix`].
    prefixes: Depths,
    /// A part of a `WITH` list changes rows.
    part_changes_rows: bool,
    pub(super) explained: Explained,
    pub(super) body: Body,
}

/// Whether a statement is only explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Explained {
    No,
    Yes,
}

/// The body of a routine, in which semicolons end no statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    None,
    /// The statement makes a routine.
    Awaited,
    /// So many `BEGIN` and `CASE` are open.
    Open(u32),
}

impl<'a> Single<'a> {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            kind: QueryKind::new(Form::Other, Need::Read),
            head: Head::Awaited,
            before: Before::Start,
            before2: Before::Start,
            name: Name::new(Identifier::EMPTY, Before::Start),
            depth: 0,
            base: 0,
            with_lists: Depths::default(),
            prefixes: Depths::default(),
            part_changes_rows: false,
            explained: Explained::No,
            body: Body::None,
        }
    }

    /// A word behind a dot, or in a query behind `AS`, is a name whatever it spells.
    #[inline]
    pub(super) fn keyword(&self, word: &[u8]) -> Keyword {
        match self.before {
            Before::Dot => Keyword::Plain,
            Before::Word(Keyword::As) if self.kind.form == Form::Read => Keyword::Plain,
            _ => Keyword::of(word),
        }
    }

    pub(super) fn advance(&mut self, meaning: Before) {
        self.before2 = self.before;
        self.before = meaning;
    }

    /// A name stands here.
    pub(super) fn name(&mut self, text: &'a [u8], quoting: Quoting) {
        let identifier = Identifier { text, quoting };
        if self.before == Before::Dot && self.before2.is_name() {
            self.name.continue_with(identifier);
            self.name.sequence(self.dialect, &mut self.kind);
        } else {
            self.name = Name::new(identifier, self.before);
        }
    }

    /// The statement begins here with a word that says what it does.
    pub(super) fn starts(&mut self, keyword: Keyword, kind: QueryKind) {
        self.becomes(kind);
        self.base = self.depth;
        self.head = match keyword {
            Keyword::With => Head::With,
            _ if keyword.starts_query() || keyword.changes_rows() => Head::Settled,
            _ => Head::Is(keyword),
        };
        if keyword == Keyword::With {
            self.with_lists.set(self.depth);
        }
    }

    /// What could not be understood stays so.
    pub(super) fn becomes(&mut self, kind: QueryKind) {
        let earlier = std::mem::replace(&mut self.kind, kind);
        if earlier.need == Need::Unknown {
            self.kind.raise(Need::Unknown);
        }
    }

    pub(super) fn not_understood(&mut self) {
        self.kind.raise(Need::Unknown);
        self.kind.form = Form::Other;
        self.head = Head::Settled;
    }

    /// What the tokens before say of the one that comes now.
    #[inline]
    pub(super) fn expect(&mut self, token: Token, keyword: Keyword, text: &[u8]) {
        match self.before {
            Before::Word(word) if word.announces() => self.expect_behind(word, token, keyword),
            Before::Word(_) => {}
            _ if self.head == Head::Settled => {}
            _ => self.expect_in_head(token, keyword, text),
        }
    }

    fn expect_in_head(&mut self, token: Token, keyword: Keyword, text: &[u8]) {
        use Token::*;
        match self.head {
            Head::Awaited if !matches!(token, Word | Open | Close | Semicolon | End) => {
                self.not_understood();
            }
            Head::Is(Keyword::Set) => self.autocommit(token, keyword, text),
            Head::Is(Keyword::Pragma) => self.pragma_argument(),
            _ => {}
        }
    }

    fn expect_behind(&mut self, word: Keyword, token: Token, keyword: Keyword) {
        use Keyword::*;
        match word {
            Into if self.kind.form == Form::Read => self.select_into(token, keyword),
            Into => {}
            End => self.end_of_block(keyword),
            _ if self.before2 == Before::Open && matches!(token, Token::Word | Token::Quoted) => {
                self.part_changes_rows();
            }
            _ => {}
        }
    }

    /// `SELECT .. INTO` a variable of the session, else a table or a file.
    fn select_into(&mut self, token: Token, keyword: Keyword) {
        match token {
            Token::Variable(Scope::User) => {
                self.kind.raise(Need::SessionState);
                self.kind.keep_state();
            }
            _ => self.kind.raise(Need::Write),
        }
        if matches!(
            keyword,
            Keyword::Temporary | Keyword::Local | Keyword::Global
        ) {
            self.kind.keep_state();
        }
    }

    /// `WITH x AS (DELETE FROM ..)`
    fn part_changes_rows(&mut self) {
        self.part_changes_rows = true;
        self.kind.raise(Need::Write);
        self.kind.form = Form::Other;
    }

    /// `END` closes a block of a routine's body, but `END IF` and `END LOOP` do not.
    fn end_of_block(&mut self, keyword: Keyword) {
        if let Body::Open(open) = &mut self.body {
            if !matches!(keyword, Keyword::If | Keyword::Loop | Keyword::For) {
                *open = open.saturating_sub(1);
            }
        }
    }

    /// MySQL: every statement after `SET autocommit = 0` is in a transaction.
    fn autocommit(&mut self, token: Token, keyword: Keyword, text: &[u8]) {
        let stays_on = match token {
            Token::Number => text == b"1",
            Token::Word => keyword == Keyword::On || is_any(text, &["true", "default"]),
            _ => false,
        };
        if self.before.announces_value() && self.before2.is(Keyword::Autocommit) && !stays_on {
            self.kind.session.transaction = TransactionEffect::Opens;
        }
    }

    /// What a word means wherever it stands.
    pub(super) fn query_word(&mut self, keyword: Keyword) {
        use Keyword::*;
        let for_row_lock = matches!(keyword, Update | Share | No | Key) && self.before.is(For);
        let in_share_mode = keyword == Share && self.before.is(In) && self.before2.is(Lock);
        if for_row_lock || in_share_mode {
            self.kind.raise(Need::Locking);
        }
        match keyword {
            For if self.before.is(Value) => self.sequence_value(),
            CalcFoundRows => self.kind.raise(Need::SessionState),
            With if self.before == Before::Open => self.with_lists.set(self.depth),
            _ if keyword.starts_query() || keyword.changes_rows() => self.end_with_list(keyword),
            _ => {}
        }
    }

    /// MariaDB `NEXT VALUE FOR s`
    fn sequence_value(&mut self) {
        let name = match self.before2 {
            Before::Word(Keyword::Next) => "next value for",
            Before::Word(Keyword::Previous) => "previous value for",
            _ => return,
        };
        self.kind
            .raise(Need::Function(FunctionName::built_in(name)));
    }
}

/// Parentheses and `WITH` lists.
impl Single<'_> {
    /// In a `WITH` list names with a parenthesis are its parts: `WITH x (a, b) AS (..)`.
    pub(super) fn in_with_list(&self) -> bool {
        self.with_lists.has(self.depth)
    }

    /// The word that a `WITH` list is for, unless it only names a part of the list.
    fn end_with_list(&mut self, keyword: Keyword) {
        let names_part = self.before == Before::Comma
            || self.before.is(Keyword::With)
            || self.before.is(Keyword::Recursive);
        if !self.in_with_list() || names_part {
            return;
        }
        self.with_lists.clear(self.depth);
        let of_statement = self.head == Head::With && self.depth == self.base;
        if of_statement {
            self.head = Head::Settled;
        }
        if keyword.changes_rows() {
            self.kind.raise(Need::Write);
            self.part_changes_rows |= !of_statement;
            self.kind.form = if self.part_changes_rows {
                Form::Other
            } else {
                Form::Dml
            };
        }
    }

    #[inline]
    pub(super) fn open(&mut self) -> Before {
        if self.in_with_list() && !self.before.is_name() {
            // the query that the list is for stands in parentheses
            self.with_lists.clear(self.depth);
            if self.head == Head::With && self.depth == self.base {
                self.head = Head::Settled;
            }
        }
        self.depth += 1;
        if self.depth >= Depths::LIMIT {
            self.kind.raise(Need::Unknown);
        }
        self.with_lists.clear(self.depth);
        self.prefixes.clear(self.depth);
        let distinct_on = self.before.is(Keyword::On) && self.before2.is(Keyword::Distinct);
        if distinct_on || self.before.is(Keyword::Operator) {
            self.prefixes.set(self.depth);
        }
        Before::Open
    }

    pub(super) fn close(&mut self) -> Before {
        let prefix = self.prefixes.has(self.depth);
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None => self.kind.raise(Need::Unknown),
        }
        if prefix {
            Before::CloseOfPrefix
        } else {
            Before::Close
        }
    }

    /// Whether a semicolon here ends the statement: not in parentheses, nor in a routine's body.
    pub(super) fn ends_at_semicolon(&self) -> bool {
        self.depth == 0 && !matches!(self.body, Body::Open(1..))
    }

    /// A semicolon that does not end the statement has no place in parentheses, but in those of `CREATE RULE`.
    pub(super) fn inner_semicolon(&mut self) -> Before {
        if self.depth > 0 {
            self.kind.raise(Need::Unknown);
        }
        Before::Symbol
    }

    /// What the statement came to; `None` if there was none. Nothing is to be asked of it afterwards.
    pub(super) fn finish(&mut self) -> Option<QueryKind> {
        if self.before == Before::Start && self.kind.need == Need::Read {
            return None;
        }
        if !matches!(self.head, Head::Is(_) | Head::Settled) || self.depth != 0 {
            self.not_understood();
        }
        if self.explained == Explained::Yes && self.kind.form != Form::Read {
            self.kind.form = Form::Other;
        }
        let nothing = QueryKind::new(Form::Other, Need::Read);
        Some(std::mem::replace(&mut self.kind, nothing))
    }
}

//! Cuts SQL text into tokens: one pass, no allocation, every dialect's comments and quotes.
use super::Dialect;
use super::class::{CLASSES, Class, in_word};
use super::quotes::Escapes;
use super::seek::seek;

/// What one piece of SQL is; white space and comments are never handed out. [`Lexer::text`] has its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An unquoted keyword or identifier.
    Word,
    /// A quoted identifier; in MySQL also `".."`, which is text unless `ANSI_QUOTES` is on.
    Quoted,
    /// A string literal of any kind.
    Text,
    Number,
    /// MySQL `@name` or `@@name`.
    Variable(Scope),
    /// A bind parameter.
    Parameter,
    Open,
    Close,
    Semicolon,
    Comma,
    Dot,
    /// PostgreSQL `::`.
    Cast,
    /// `:=`
    Assign,
    Equals,
    /// Any other single byte.
    Symbol,
    /// Text that no server would take: an open quote or comment, or a NUL.
    Broken,
    End,
}

/// Whose variable a MySQL `@` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    System,
}

/// How to read the comments that a MySQL or MariaDB server runs if it is new enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conditional {
    Run,
    Skip,
}

pub(super) struct Lexer<'a> {
    pub(super) sql: &'a [u8],
    pub(super) at: usize,
    /// The last [`Token::Word`], [`Token::Number`], or inside of a [`Token::Quoted`] or [`Token::Variable`].
    pub(super) text: &'a [u8],
    dialect: Dialect,
    /// Those of text.
    escapes: Escapes,
    conditional: Conditional,
    inside_conditional: bool,
    saw_conditional: bool,
    saw_encoded_name: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(dialect: Dialect, sql: &'a str, conditional: Conditional) -> Self {
        Self {
            sql: sql.as_bytes(),
            at: 0,
            text: b"",
            dialect,
            escapes: match dialect {
                Dialect::Mysql => Escapes::Backslash,
                Dialect::Postgres | Dialect::Sqlite => Escapes::None,
            },
            conditional,
            inside_conditional: false,
            saw_conditional: false,
            saw_encoded_name: false,
        }
    }

    /// Whether the text so far depends on the server's version.
    pub(super) fn saw_conditional(&self) -> bool {
        self.saw_conditional
    }

    /// Whether a name so far was PostgreSQL's `U&".."`, in which escapes can hide any other name.
    pub(super) fn saw_encoded_name(&self) -> bool {
        self.saw_encoded_name
    }

    #[inline]
    pub(super) fn next(&mut self) -> Token {
        // the usual space between two words, without the branches below
        self.at += usize::from(self.peek(0) == Some(b' '));
        let sql = self.sql;
        while let Some(&byte) = sql.get(self.at) {
            let class = CLASSES[byte as usize];
            let passed = match class {
                Class::Space => {
                    self.at += 1;
                    Some(())
                }
                Class::Word => return self.word(),
                Class::Open => return self.single(Token::Open),
                Class::Close => return self.single(Token::Close),
                Class::Comma => return self.single(Token::Comma),
                Class::Digit => return self.number(),
                Class::Dot if self.starts_fraction() => return self.number(),
                Class::Dot => return self.single(Token::Dot),
                Class::Equals => return self.single(Token::Equals),
                Class::QuotationMark => return self.quoted(b'"', self.escapes),
                Class::Backtick if self.dialect != Dialect::Postgres => {
                    return self.quoted(b'`', Escapes::None);
                }
                Class::Apostrophe => return self.literal(self.escapes),
                Class::Other => return self.single(Token::Symbol),
                Class::Dash if self.starts_dash_comment() => self.line_comment(),
                Class::Hash if self.dialect == Dialect::Mysql => self.line_comment(),
                Class::Slash if self.peek(1) == Some(b'*') => self.block_comment(),
                Class::Star if self.inside_conditional && self.peek(1) == Some(b'/') => {
                    self.inside_conditional = false;
                    self.at += 2;
                    Some(())
                }
                _ => return self.token(class),
            };
            if passed.is_none() {
                return self.broken();
            }
        }
        if self.inside_conditional {
            return self.broken();
        }
        Token::End
    }

    fn token(&mut self, class: Class) -> Token {
        use Dialect::*;
        match (class, self.dialect) {
            (Class::Semicolon, _) => self.single(Token::Semicolon),
            (Class::Bracket, Sqlite) => self.quoted(b']', Escapes::None),
            (Class::Dollar, Postgres) => self.dollar(),
            (Class::Dollar, Mysql) => self.word(),
            (Class::At, Mysql) => self.variable(),
            (Class::Dollar | Class::At | Class::Question, Sqlite) => self.parameter(),
            (Class::Colon, _) => self.colon(),
            (Class::Question, _) => self.single(Token::Parameter),
            (Class::Nul, _) => self.broken(),
            _ => self.single(Token::Symbol),
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.sql.get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.sql[self.at..]
    }

    fn single(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }

    /// Nothing behind an open quote or comment can be told apart, so nothing more is read.
    pub(super) fn broken(&mut self) -> Token {
        self.text = b"";
        self.at = self.sql.len();
        self.inside_conditional = false;
        Token::Broken
    }

    #[inline]
    fn skip_word(&mut self) {
        let rest = self.rest().iter();
        self.at += rest.take_while(|&&byte| in_word(byte)).count();
    }

    #[inline]
    fn word(&mut self) -> Token {
        let start = self.at;
        self.skip_word();
        self.text = &self.sql[start..self.at];
        match (self.dialect, self.text, self.peek(0)) {
            (Dialect::Postgres, b"e" | b"E", Some(b'\'')) => self.escape_text(),
            (Dialect::Postgres, b"u" | b"U", Some(b'&')) if self.peek(1) == Some(b'"') => {
                self.saw_encoded_name = true;
                self.at += 1;
                self.quoted(b'"', Escapes::None)
            }
            _ => Token::Word,
        }
    }

    /// Whether the dot here begins a number, and does not part two names.
    fn starts_fraction(&self) -> bool {
        let before_digit = self.peek(1).is_some_and(|byte| byte.is_ascii_digit());
        let behind_name = || {
            let before = self.at.checked_sub(1).map(|before| self.sql[before]);
            before.is_some_and(|byte| in_word(byte) || matches!(byte, b'`' | b'"'))
        };
        before_digit && !behind_name()
    }

    /// Digits, a fraction, an exponent or a `0x` form. A MySQL identifier may begin with digits, but not with a
    /// fraction or an exponent: `1for` is a name, `1.for` and `1e2for` are a number and a keyword.
    fn number(&mut self) -> Token {
        let start = self.at;
        let mut may_be_name = self.dialect == Dialect::Mysql;
        if self.peek(0) == Some(b'0') && matches!(self.peek(1), Some(b'x' | b'X')) {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
        } else {
            self.skip_while(|byte| byte.is_ascii_digit());
            let integer = self.at;
            if self.peek(0) == Some(b'.') {
                self.at += 1;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
            self.exponent();
            may_be_name &= self.at == integer;
        }
        let name = may_be_name && self.peek(0).is_some_and(in_word);
        if name {
            self.skip_word();
        }
        self.text = &self.sql[start..self.at];
        if name { Token::Word } else { Token::Number }
    }

    fn exponent(&mut self) {
        if !matches!(self.peek(0), Some(b'e' | b'E')) {
            return;
        }
        let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
        if self
            .peek(1 + sign)
            .is_some_and(|byte| byte.is_ascii_digit())
        {
            self.at += 1 + sign;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
    }

    pub(super) fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn colon(&mut self) -> Token {
        let (token, length) = match (self.peek(1), self.dialect) {
            (Some(b':'), _) => (Token::Cast, 2),
            (Some(b'='), _) => (Token::Assign, 2),
            (_, Dialect::Sqlite) => return self.parameter(),
            _ => (Token::Symbol, 1),
        };
        self.at += length;
        token
    }

    fn parameter(&mut self) -> Token {
        self.at += 1;
        self.skip_word();
        Token::Parameter
    }

    fn variable(&mut self) -> Token {
        self.at += 1;
        let scope = if self.peek(0) == Some(b'@') {
            self.at += 1;
            Scope::System
        } else {
            Scope::User
        };
        let start = self.at;
        self.skip_while(|byte| in_word(byte) || byte == b'.');
        self.text = &self.sql[start..self.at];
        let name_follows = matches!(self.sql[self.at - 1], b'@' | b'.');
        match self.peek(0) {
            Some(quote @ (b'`' | b'\'' | b'"')) if name_follows => {
                match self.quoted(quote, Escapes::None) {
                    Token::Quoted => Token::Variable(scope),
                    broken => broken,
                }
            }
            _ => Token::Variable(scope),
        }
    }
}

/// Comments. `None` means that the comment is never closed.
impl Lexer<'_> {
    pub(super) fn starts_dash_comment(&self) -> bool {
        self.peek(1) == Some(b'-')
            && (self.dialect != Dialect::Mysql
                || self
                    .peek(2)
                    .is_none_or(|byte| byte == b' ' || byte.is_ascii_control()))
    }

    pub(super) fn line_comment(&mut self) -> Option<()> {
        let end = match self.dialect {
            Dialect::Postgres => seek([b'\n', b'\r'], self.sql, self.at),
            Dialect::Mysql | Dialect::Sqlite => seek([b'\n'], self.sql, self.at),
        };
        self.at = end.unwrap_or(self.sql.len());
        Some(())
    }

    fn block_comment(&mut self) -> Option<()> {
        let Some(introduction) = self.conditional_introduction() else {
            return self.skip_block(self.dialect == Dialect::Postgres);
        };
        self.saw_conditional = true;
        match self.conditional {
            Conditional::Skip => self.skip_block(true),
            Conditional::Run => {
                self.at += introduction;
                self.skip_while(|byte| byte.is_ascii_digit());
                self.inside_conditional = true;
                Some(())
            }
        }
    }

    /// The length of `/*!` or MariaDB's `/*M!`, whose content is SQL.
    fn conditional_introduction(&self) -> Option<usize> {
        match (self.dialect, self.peek(2)?) {
            (Dialect::Mysql, b'!') => Some(3),
            (Dialect::Mysql, b'M') if self.peek(3)? == b'!' => Some(4),
            _ => None,
        }
    }

    fn skip_block(&mut self, nested: bool) -> Option<()> {
        self.at += 2;
        let mut depth = 1;
        loop {
            self.at = seek([b'*', b'/'], self.sql, self.at)?;
            match (self.peek(0)?, self.peek(1)?) {
                (b'*', b'/') => {
                    self.at += 2;
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                (b'/', b'*') if nested => {
                    self.at += 2;
                    depth += 1;
                }
                _ => self.at += 1,
            }
        }
    }
}

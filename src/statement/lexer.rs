//! Cuts SQL text into tokens: one pass, no allocation, every dialect's comments and quotes.
use super::Dialect;

/// One piece of SQL; white space and comments are never handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An unquoted keyword or identifier.
    Word(&'a str),
    /// The inside of a quoted identifier; in MySQL also of `".."`, which is text unless `ANSI_QUOTES` is on.
    Quoted(&'a str),
    /// A string literal of any kind.
    Text,
    Number(&'a str),
    /// MySQL `@name` or `@@name`, without the signs.
    Variable(Scope, &'a str),
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
    /// Any other single byte.
    Symbol(u8),
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Word,
    Digit,
    Apostrophe,
    QuotationMark,
    Backtick,
    Bracket,
    Dollar,
    At,
    Colon,
    Question,
    Dash,
    Hash,
    Slash,
    Star,
    Open,
    Close,
    Semicolon,
    Comma,
    Dot,
    Nul,
    Other,
}

static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t'..=b'\r' => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Apostrophe,
            b'"' => Class::QuotationMark,
            b'`' => Class::Backtick,
            b'[' => Class::Bracket,
            b'$' => Class::Dollar,
            b'@' => Class::At,
            b':' => Class::Colon,
            b'?' => Class::Question,
            b'-' => Class::Dash,
            b'#' => Class::Hash,
            b'/' => Class::Slash,
            b'*' => Class::Star,
            b'(' => Class::Open,
            b')' => Class::Close,
            b';' => Class::Semicolon,
            b',' => Class::Comma,
            b'.' => Class::Dot,
            0 => Class::Nul,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
}

/// May stand inside an identifier: all servers allow `$` there, though not all at its start.
fn in_word(byte: u8) -> bool {
    matches!(
        CLASSES[byte as usize],
        Class::Word | Class::Digit | Class::Dollar
    )
}

pub(super) struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    dialect: Dialect,
    conditional: Conditional,
    inside_conditional: bool,
    saw_conditional: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(dialect: Dialect, sql: &'a str, conditional: Conditional) -> Self {
        Self {
            sql,
            at: 0,
            dialect,
            conditional,
            inside_conditional: false,
            saw_conditional: false,
        }
    }

    /// Whether the text so far depends on the server's version.
    pub(super) fn saw_conditional(&self) -> bool {
        self.saw_conditional
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        use Class::*;
        loop {
            let Some(byte) = self.peek(0) else {
                return if self.inside_conditional {
                    Token::Broken
                } else {
                    Token::End
                };
            };
            let mysql = self.dialect == Dialect::Mysql;
            let comment = match CLASSES[byte as usize] {
                Space => {
                    self.at += 1;
                    continue;
                }
                Dash if self.starts_dash_comment() => self.line_comment(),
                Hash if mysql => self.line_comment(),
                Slash if self.peek(1) == Some(b'*') => self.block_comment(),
                Star if self.inside_conditional && self.peek(1) == Some(b'/') => {
                    self.inside_conditional = false;
                    self.at += 2;
                    Some(())
                }
                class => return self.token(class, byte),
            };
            if comment.is_none() {
                return self.broken();
            }
        }
    }

    fn token(&mut self, class: Class, byte: u8) -> Token<'a> {
        use Dialect::*;
        match (class, self.dialect) {
            (Class::Word, _) | (Class::Dollar, Mysql) => self.word(),
            (Class::Digit, _) => self.number(),
            (Class::Apostrophe, Mysql) => self.text(Escapes::Backslash),
            (Class::Apostrophe, _) => self.text(Escapes::None),
            (Class::QuotationMark, Mysql) => self.quoted(b'"', Escapes::Backslash),
            (Class::QuotationMark, _) => self.quoted(b'"', Escapes::None),
            (Class::Backtick, Mysql | Sqlite) => self.quoted(b'`', Escapes::None),
            (Class::Bracket, Sqlite) => self.quoted(b']', Escapes::None),
            (Class::Dollar, Postgres) => self.dollar(),
            (Class::At, Mysql) => self.variable(),
            (Class::Dollar | Class::At | Class::Question, Sqlite) => self.parameter(),
            (Class::Colon, _) => self.colon(),
            (Class::Question, _) => self.single(Token::Parameter),
            (Class::Open, _) => self.single(Token::Open),
            (Class::Close, _) => self.single(Token::Close),
            (Class::Semicolon, _) => self.single(Token::Semicolon),
            (Class::Comma, _) => self.single(Token::Comma),
            (Class::Dot, _) => self.single(Token::Dot),
            (Class::Nul, _) => self.broken(),
            _ => self.single(Token::Symbol(byte)),
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.sql.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.sql.as_bytes()[self.at..]
    }

    fn single(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    /// Nothing behind an open quote or comment can be told apart, so nothing more is read.
    fn broken(&mut self) -> Token<'a> {
        self.at = self.sql.len();
        self.inside_conditional = false;
        Token::Broken
    }

    fn skip_word(&mut self) {
        let rest = self.rest();
        self.at += rest
            .iter()
            .position(|&byte| !in_word(byte))
            .unwrap_or(rest.len());
    }

    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_word();
        let word = &self.sql[start..self.at];
        let escapes = self.dialect == Dialect::Postgres && word.eq_ignore_ascii_case("e");
        if escapes && self.peek(0) == Some(b'\'') {
            return self.escape_text();
        }
        Token::Word(word)
    }

    /// Digits, a fraction, an exponent or a `0x` form. A MySQL identifier may begin with digits.
    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        if self.peek(0) == Some(b'0') && matches!(self.peek(1), Some(b'x' | b'X')) {
            self.at += 2;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
        } else {
            self.skip_while(|byte| byte.is_ascii_digit());
            if self.peek(0) == Some(b'.') {
                self.at += 1;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
            self.exponent();
        }
        if self.dialect == Dialect::Mysql && self.peek(0).is_some_and(in_word) {
            self.skip_word();
            return Token::Word(&self.sql[start..self.at]);
        }
        Token::Number(&self.sql[start..self.at])
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

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn colon(&mut self) -> Token<'a> {
        let (token, length) = match (self.peek(1), self.dialect) {
            (Some(b':'), _) => (Token::Cast, 2),
            (Some(b'='), _) => (Token::Assign, 2),
            (_, Dialect::Sqlite) => return self.parameter(),
            _ => (Token::Symbol(b':'), 1),
        };
        self.at += length;
        token
    }

    fn parameter(&mut self) -> Token<'a> {
        self.at += 1;
        self.skip_word();
        Token::Parameter
    }

    fn variable(&mut self) -> Token<'a> {
        self.at += 1;
        let scope = if self.peek(0) == Some(b'@') {
            self.at += 1;
            Scope::System
        } else {
            Scope::User
        };
        let start = self.at;
        if let Some(quote @ (b'`' | b'\'' | b'"')) = self.peek(0) {
            return match self.quoted(quote, Escapes::None) {
                Token::Quoted(name) => Token::Variable(scope, name),
                broken => broken,
            };
        }
        self.skip_while(|byte| in_word(byte) || byte == b'.');
        Token::Variable(scope, &self.sql[start..self.at])
    }
}

/// Comments. `None` means that the comment is never closed.
impl Lexer<'_> {
    fn starts_dash_comment(&self) -> bool {
        self.peek(1) == Some(b'-')
            && (self.dialect != Dialect::Mysql
                || self
                    .peek(2)
                    .is_none_or(|byte| byte == b' ' || byte.is_ascii_control()))
    }

    fn line_comment(&mut self) -> Option<()> {
        let carriage_return_ends = self.dialect == Dialect::Postgres;
        let rest = self.rest();
        self.at += rest
            .iter()
            .position(|&byte| byte == b'\n' || (byte == b'\r' && carriage_return_ends))
            .unwrap_or(rest.len());
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
            self.at += self
                .rest()
                .iter()
                .position(|&byte| byte == b'*' || byte == b'/')?;
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    Backslash,
}

/// Quotes.
impl<'a> Lexer<'a> {
    /// Skips to behind the closing quote; a doubled quote is a part of the text. `None`: never closed.
    fn skip_quoted(&mut self, quote: u8, escapes: Escapes) -> Option<()> {
        let backslash = escapes == Escapes::Backslash;
        self.at += 1;
        loop {
            self.at += self
                .rest()
                .iter()
                .position(|&byte| byte == quote || (byte == b'\\' && backslash))?;
            let escaped = self.peek(0) != Some(quote);
            if !escaped && self.peek(1) != Some(quote) {
                self.at += 1;
                return Some(());
            }
            self.at = (self.at + 2).min(self.sql.len());
        }
    }

    fn text(&mut self, escapes: Escapes) -> Token<'a> {
        match self.skip_quoted(b'\'', escapes) {
            Some(()) => Token::Text,
            None => self.broken(),
        }
    }

    fn quoted(&mut self, quote: u8, escapes: Escapes) -> Token<'a> {
        let start = self.at + 1;
        match self.skip_quoted(quote, escapes) {
            Some(()) => Token::Quoted(&self.sql[start..self.at - 1]),
            None => self.broken(),
        }
    }

    /// PostgreSQL `E'..'`: a literal that goes on after a line break keeps its backslash rule.
    fn escape_text(&mut self) -> Token<'a> {
        loop {
            if self.skip_quoted(b'\'', Escapes::Backslash).is_none() {
                return self.broken();
            }
            let end = self.at;
            if !self.skip_to_continuation() {
                self.at = end;
                return Token::Text;
            }
        }
    }

    fn skip_to_continuation(&mut self) -> bool {
        let mut line_break = false;
        loop {
            match self.peek(0) {
                Some(b'\n' | b'\r') => line_break = true,
                Some(byte) if CLASSES[byte as usize] == Class::Space => {}
                Some(b'-') if self.starts_dash_comment() => {
                    self.line_comment();
                    continue;
                }
                byte => return line_break && byte == Some(b'\''),
            }
            self.at += 1;
        }
    }

    /// PostgreSQL `$1`, `$$..$$` and `$tag$..$tag$`.
    fn dollar(&mut self) -> Token<'a> {
        let bytes = self.rest();
        let Some(tag) = dollar_tag(bytes) else {
            return self.parameter_number();
        };
        let mut from = tag.len();
        while let Some(next) = bytes[from..].iter().position(|&byte| byte == b'$') {
            from += next;
            if bytes[from..].starts_with(tag) {
                self.at += from + tag.len();
                return Token::Text;
            }
            from += 1;
        }
        self.broken()
    }

    fn parameter_number(&mut self) -> Token<'a> {
        self.at += 1;
        self.skip_while(|byte| byte.is_ascii_digit());
        Token::Parameter
    }
}

/// The opening `$tag$`, if there is one. A tag is an identifier without `$`, or nothing.
fn dollar_tag(bytes: &[u8]) -> Option<&[u8]> {
    let length = 1 + bytes[1..]
        .iter()
        .position(|&byte| !in_word(byte) || byte == b'$')?;
    let starts_with_digit = bytes[1].is_ascii_digit();
    (bytes[length] == b'$' && !starts_with_digit).then(|| &bytes[..=length])
}

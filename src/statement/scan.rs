//! One pass over a text: its statements, one after the other.
use super::Dialect;
use super::keyword::{Keyword, is_any};
use super::kind::{Form, Need, QueryKind};
use super::lexer::{Conditional, Lexer, Scope, Token};
use super::rules::{Quoting, Rules};
use super::single::{Before, Head, Single};

/// Tells what a text needs. Comments that only some servers run are read both ways, and the worse reading counts.
pub(super) fn scan(rules: &Rules, sql: &str) -> QueryKind {
    let (mut kind, depends_on_version) = Scanner::new(rules, sql, Conditional::Run).run();
    if depends_on_version {
        let (other, _) = Scanner::new(rules, sql, Conditional::Skip).run();
        if kind.form != other.form {
            kind.form = Form::Batch;
        }
        kind.absorb(other);
    }
    kind
}

struct Scanner<'a> {
    rules: &'a Rules,
    lexer: Lexer<'a>,
    single: Single<'a>,
    /// What the statements before this one came to.
    earlier: Option<QueryKind>,
}

impl<'a> Scanner<'a> {
    fn new(rules: &'a Rules, sql: &'a str, conditional: Conditional) -> Self {
        Self {
            rules,
            lexer: Lexer::new(rules.dialect(), sql, conditional),
            single: Single::new(rules.dialect()),
            earlier: None,
        }
    }

    /// The second answer is whether it depends on the server's version.
    fn run(&mut self) -> (QueryKind, bool) {
        loop {
            // every arm does by itself what is expected of its token: so what finds the token leads straight to the arm
            let token = self.lexer.next();
            let meaning = match token {
                Token::Word => self.word(),
                Token::Quoted => self.quoted(),
                Token::Open => self.open(),
                Token::Close => self.close(),
                Token::Comma => self.plain(token, Before::Comma),
                Token::Dot => self.dot(),
                Token::Cast => self.plain(token, Before::Cast),
                Token::Assign => self.assign(),
                Token::Variable(scope) => self.variable(scope),
                Token::Text | Token::Number | Token::Parameter => self.plain(token, Before::Value),
                Token::Equals => self.plain(token, Before::Equals),
                Token::Symbol => self.plain(token, Before::Symbol),
                Token::Semicolon => match self.semicolon() {
                    Some(meaning) => meaning,
                    None => continue,
                },
                Token::Broken | Token::End => return self.finish(token),
            };
            self.single.advance(meaning);
        }
    }

    #[inline]
    fn expect(&mut self, token: Token) {
        self.single.expect(token, Keyword::Plain, self.lexer.text);
    }

    /// A token that means nothing more than what it is.
    #[inline]
    fn plain(&mut self, token: Token, meaning: Before) -> Before {
        self.expect(token);
        meaning
    }

    #[inline]
    fn word(&mut self) -> Before {
        let text = self.lexer.text;
        let single = &mut self.single;
        let keyword = single.keyword(text);
        single.expect(Token::Word, keyword, text);
        single.name(text, Quoting::Bare);
        if single.head != Head::Settled {
            single.word_of_head(keyword, text);
        }
        if !matches!(keyword, Keyword::Plain | Keyword::Clause) {
            single.query_word(keyword);
        }
        Before::Word(keyword)
    }

    #[inline]
    fn quoted(&mut self) -> Before {
        self.expect(Token::Quoted);
        self.single.name(self.lexer.text, Quoting::Quoted);
        if self.single.head == Head::Explain {
            self.single.explain(Keyword::Plain);
        }
        Before::Quoted
    }

    #[inline]
    fn open(&mut self) -> Before {
        self.expect(Token::Open);
        let single = &mut self.single;
        let calls = match (single.before, single.head) {
            (_, Head::Awaited | Head::Explain | Head::Is(Keyword::Pragma)) => false,
            (Before::Word(word), _) if word.is_never_called() => self.rules.has_primary_functions(),
            (before, _) => before.is_name(),
        };
        if calls && !single.in_with_list() {
            single.name.call(self.rules, &mut single.kind);
        }
        single.open()
    }

    #[inline]
    fn close(&mut self) -> Before {
        self.expect(Token::Close);
        self.single.close()
    }

    /// Behind PostgreSQL's `pg_temp` stands an object of this session alone.
    fn dot(&mut self) -> Before {
        self.expect(Token::Dot);
        let single = &mut self.single;
        if self.rules.dialect() == Dialect::Postgres
            && single.before.is_name()
            && single.name.is("pg_temp")
        {
            single.kind.raise(Need::SessionState);
            single.kind.keep_state();
        }
        Before::Dot
    }

    /// MySQL sets a user variable; elsewhere it only passes an argument by name.
    fn assign(&mut self) -> Before {
        self.expect(Token::Assign);
        if self.rules.dialect() == Dialect::Mysql {
            self.single.kind.raise(Need::SessionState);
            self.single.kind.keep_state();
        }
        Before::Assign
    }

    fn variable(&mut self, scope: Scope) -> Before {
        self.expect(Token::Variable(scope));
        let name = self.lexer.text;
        let dot = name.iter().rposition(|&byte| byte == b'.');
        let (variable_of, last) =
            dot.map_or((&[][..], name), |dot| (&name[..dot], &name[dot + 1..]));
        if scope == Scope::User || is_any(last, SESSION_VARIABLES) {
            self.single.kind.raise(Need::SessionState);
        }
        let global = variable_of.eq_ignore_ascii_case(b"global");
        if scope == Scope::System && !global && last.eq_ignore_ascii_case(b"autocommit") {
            return Before::Word(Keyword::Autocommit);
        }
        Before::Value
    }

    /// `None`: the statement ends here.
    fn semicolon(&mut self) -> Option<Before> {
        self.expect(Token::Semicolon);
        if self.single.ends_at_semicolon() {
            self.end_statement();
            return None;
        }
        Some(self.single.inner_semicolon())
    }

    fn end_statement(&mut self) {
        let ended = self.single.finish();
        self.single = Single::new(self.rules.dialect());
        let Some(kind) = ended else {
            return;
        };
        match &mut self.earlier {
            Some(earlier) => {
                earlier.form = Form::Batch;
                earlier.absorb(kind);
            }
            None => self.earlier = Some(kind),
        }
    }

    fn finish(&mut self, last: Token) -> (QueryKind, bool) {
        self.expect(last);
        if last == Token::Broken {
            self.single.not_understood();
        }
        self.end_statement();
        let mut kind = self
            .earlier
            .take()
            .unwrap_or(QueryKind::new(Form::Other, Need::Unknown));
        if kind.form == Form::Batch || self.lexer.saw_encoded_name() {
            kind.raise(Need::Unknown);
        }
        (kind, self.lexer.saw_conditional())
    }
}

/// MySQL system variables that tell what this very connection did. A scope alone, or nothing behind its dot, means
/// that the name stands apart, `@@session . identity`, and may be any of these.
const SESSION_VARIABLES: &[&str] = &[
    "",
    "error_count",
    "gtid_next",
    "identity",
    "in_transaction",
    "insert_id",
    "last_gtid",
    "last_insert_id",
    "local",
    "pseudo_thread_id",
    "session",
    "warning_count",
];

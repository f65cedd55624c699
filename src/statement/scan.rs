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
    fn run(mut self) -> (QueryKind, bool) {
        loop {
            let token = self.lexer.next();
            let keyword = match token {
                Token::Word => self.single.keyword(self.lexer.text),
                _ => Keyword::Plain,
            };
            self.single.expect(token, keyword, &self.lexer);
            let meaning = match token {
                Token::Word => self.word(keyword),
                Token::Quoted => self.quoted(),
                Token::Open => self.open(),
                Token::Close => self.single.close(),
                Token::Comma => Before::Comma,
                Token::Dot => self.dot(),
                Token::Cast => Before::Cast,
                Token::Assign => self.assign(),
                Token::Variable(scope) => self.variable(scope),
                Token::Text | Token::Number | Token::Parameter => Before::Value,
                Token::Equals => Before::Equals,
                Token::Symbol => Before::Symbol,
                Token::Semicolon if self.single.ends_at_semicolon() => {
                    self.end_statement();
                    continue;
                }
                Token::Semicolon => self.single.inner_semicolon(),
                Token::Broken | Token::End => return self.finish(token),
            };
            self.single.advance(meaning);
        }
    }

    fn word(&mut self, keyword: Keyword) -> Before {
        let text = self.lexer.text;
        let single = &mut self.single;
        single.name(text, Quoting::Bare);
        if single.head != Head::Settled {
            single.word_of_head(keyword, text);
        }
        if keyword != Keyword::Plain {
            single.query_word(keyword);
        }
        Before::Word(keyword)
    }

    fn quoted(&mut self) -> Before {
        self.single.name(self.lexer.text, Quoting::Quoted);
        if self.single.head == Head::Explain {
            self.single.explain(Keyword::Plain);
        }
        Before::Quoted
    }

    fn open(&mut self) -> Before {
        let single = &mut self.single;
        let calls = match single.head {
            Head::Awaited | Head::Explain | Head::Is(Keyword::Pragma) => false,
            Head::With | Head::Is(_) | Head::Settled => {
                single.before.is_name() && !single.in_with_list()
            }
        };
        if calls {
            single.name.call(self.rules, &mut single.kind);
        }
        single.open()
    }

    /// Behind PostgreSQL's `pg_temp` stands an object of this session alone.
    fn dot(&mut self) -> Before {
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
        if self.rules.dialect() == Dialect::Mysql {
            self.single.kind.raise(Need::SessionState);
            self.single.kind.keep_state();
        }
        Before::Assign
    }

    fn variable(&mut self, scope: Scope) -> Before {
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

    fn end_statement(&mut self) {
        let single = std::mem::replace(&mut self.single, Single::new(self.rules.dialect()));
        let Some(kind) = single.finish() else {
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

    fn finish(mut self, last: Token) -> (QueryKind, bool) {
        if last == Token::Broken {
            self.single.not_understood();
        }
        self.end_statement();
        let mut kind = self
            .earlier
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

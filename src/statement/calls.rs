//! Which names before a parenthesis are calls, and what the calls mean.
use super::Dialect;
use super::functions::Function;
use super::keyword::is_any;
use super::kind::{FunctionName, Keeps, Need, Purity, QueryKind};
use super::rules::{Identifier, Rules, UnknownFunctions};
use super::single::Before;

/// The last name in the text, with its schema, and what stands before both.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    schema: Option<Identifier<'a>>,
    last: Identifier<'a>,
    before: Before,
}

impl<'a> Name<'a> {
    pub(super) fn new(last: Identifier<'a>, before: Before) -> Self {
        Self {
            schema: None,
            last,
            before,
        }
    }

    /// Behind a dot: what was the name is the schema.
    pub(super) fn continue_with(&mut self, last: Identifier<'a>) {
        self.schema = Some(self.last);
        self.last = last;
    }

    #[inline]
    pub(super) fn is(&self, text: &str) -> bool {
        self.last.text.eq_ignore_ascii_case(text.as_bytes())
    }

    pub(super) fn is_any(&self, names: &[&str]) -> bool {
        is_any(self.last.text, names)
    }

    /// MariaDB under `sql_mode = ORACLE`: `s.nextval`, else a column that few tables have.
    pub(super) fn sequence(&self, dialect: Dialect, kind: &mut QueryKind) {
        if dialect != Dialect::Mysql {
            return;
        }
        for sequence in ["nextval", "currval"] {
            if self.is(sequence) {
                kind.raise(Need::Function(FunctionName::built_in(sequence)));
            }
        }
    }

    /// Notes in `kind` what this name, with a parenthesis behind it, calls.
    pub(super) fn call(&self, rules: &Rules, kind: &mut QueryKind) {
        if self.before.announces_type_or_alias() {
            return;
        }
        match rules.function(self.schema, self.last) {
            Function::Pure => {}
            Function::Primary(name) => kind.raise(Need::Function(name)),
            Function::Session(name) => {
                kind.raise(Need::Function(name));
                kind.session.keeps = Keeps::State;
            }
            // behind a closed parenthesis stands no call, only an alias: `(VALUES (1)) t(a)`
            Function::Unknown if self.before == Before::Close => {}
            Function::Unknown => {
                kind.calls = Purity::Unproven;
                if rules.unknown() == UnknownFunctions::Primary {
                    kind.raise(Need::Function(FunctionName::seen(self.last.text)));
                }
            }
        }
    }
}

//! The functions of each dialect: those known to change nothing, and those that need the primary.
//!
//! The lists in `functions/` are written by `scripts/function-lists.sh`, which also gives the reasons.
use super::Dialect;
use super::kind::FunctionName;
use super::rules::{Identifier, Quoting};
use super::spelling::Spelling;
use std::ops::Range;

/// What calling a function means.
pub(super) enum Function {
    /// It changes nothing.
    Pure,
    /// It needs the primary.
    Primary(FunctionName),
    /// It needs the primary and leaves something behind in the session.
    Session(FunctionName),
    /// It is on no list.
    Unknown,
}

/// In the order in which they are asked: words of the grammar may also be on another list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Pure,
    /// Words of the grammar that may stand before a parenthesis.
    Syntax,
    Primary,
    Session,
}

macro_rules! names {
    ($dialect:literal) => {{
        const PURE: &str = include_str!(concat!("functions/", $dialect, ".pure.txt"));
        const SYNTAX: &str = include_str!(concat!("functions/", $dialect, ".syntax.txt"));
        const PRIMARY: &str = include_str!(concat!("functions/", $dialect, ".primary.txt"));
        const TEXT: &str = concat!(
            include_str!(concat!("functions/", $dialect, ".pure.txt")),
            include_str!(concat!("functions/", $dialect, ".syntax.txt")),
            include_str!(concat!("functions/", $dialect, ".primary.txt")),
            include_str!(concat!("functions/", $dialect, ".session.txt")),
        );
        const SYNTAX_AT: usize = PURE.len();
        const PRIMARY_AT: usize = SYNTAX_AT + SYNTAX.len();
        const SESSION_AT: usize = PRIMARY_AT + PRIMARY.len();
        static SLOTS: [u16; slot_count(TEXT)] = slots(TEXT);
        Names {
            text: TEXT,
            begins: [SYNTAX_AT, PRIMARY_AT, SESSION_AT],
            slots: &SLOTS,
        }
    }};
}

static POSTGRES: Names = names!("postgres");
static MYSQL: Names = names!("mysql");
static SQLITE: Names = names!("sqlite");

/// What the dialect's own lists say of a function.
pub(super) fn built_in(dialect: Dialect, schema: Option<Identifier>, name: Identifier) -> Function {
    let names = match dialect {
        Dialect::Postgres => &POSTGRES,
        Dialect::Mysql => &MYSQL,
        Dialect::Sqlite => &SQLITE,
    };
    let user_schema = schema.is_some_and(|schema| !is_catalog(dialect, schema));
    let applies = |list| match list {
        List::Pure => !user_schema,
        List::Syntax => schema.is_none() && name.quoting == Quoting::Bare,
        // whatever their schema: extensions are installed where their user likes
        List::Primary | List::Session => true,
    };
    let found = names.find(Spelling::of(name.text), |list, listed| {
        applies(list) && is_same(dialect, listed, name)
    });
    let Some((list, place)) = found else {
        return Function::Unknown;
    };
    let listed = || FunctionName::built_in(&names.text[place]);
    match list {
        List::Pure | List::Syntax => Function::Pure,
        List::Primary => Function::Primary(listed()),
        List::Session => Function::Session(listed()),
    }
}

/// Whether a listed name of the same spelling is meant. PostgreSQL takes quoted names as they are.
fn is_same(dialect: Dialect, lower_case: &[u8], name: Identifier) -> bool {
    match (name.quoting, dialect) {
        (Quoting::Bare, _) => true,
        (Quoting::Quoted, Dialect::Postgres) => lower_case == name.text,
        (Quoting::Quoted, _) => lower_case.eq_ignore_ascii_case(name.text),
    }
}

fn is_catalog(dialect: Dialect, schema: Identifier) -> bool {
    dialect == Dialect::Postgres && schema.text.eq_ignore_ascii_case(b"pg_catalog")
}

/// The lists of one dialect behind each other, one name a line, and where in the text each name begins: at the slot of
/// its spelling, or behind it.
struct Names {
    text: &'static str,
    /// Where the second list begins, the third one, and the last one.
    begins: [usize; 3],
    /// Counted from one; zero is an empty slot.
    slots: &'static [u16],
}

/// At least every second one is empty.
const fn slot_count(text: &str) -> usize {
    let (mut lines, mut at) = (0, 0);
    while at < text.len() {
        lines += (text.as_bytes()[at] == b'\n') as usize;
        at += 1;
    }
    lines * 2 + 1
}

const fn slots<const COUNT: usize>(text: &str) -> [u16; COUNT] {
    let bytes = text.as_bytes();
    assert!(
        bytes.len() < u16::MAX as usize,
        "every place in the text has a number"
    );
    let mut slots = [0; COUNT];
    let mut line = 0;
    while line < bytes.len() {
        let mut end = line;
        while bytes[end] != b'\n' {
            end += 1;
        }
        let (name, _) = bytes.split_at(line).1.split_at(end - line);
        let mut slot = Spelling::of(name).slot(COUNT);
        while slots[slot] != 0 {
            slot = (slot + 1) % COUNT;
        }
        slots[slot] = line as u16 + 1;
        line = end + 1;
    }
    slots
}

impl Names {
    /// The first list that has a name of this spelling, and is `wanted`; and where it has it.
    #[inline]
    fn find(
        &self,
        name: Spelling,
        wanted: impl Fn(List, &[u8]) -> bool,
    ) -> Option<(List, Range<usize>)> {
        let bytes = self.text.as_bytes();
        let mut slot = name.slot(self.slots.len());
        while let Some(line) = usize::from(self.slots[slot]).checked_sub(1) {
            let place = line..line + name.len();
            if bytes.get(place.end) == Some(&b'\n') {
                let (list, listed) = (self.list(line), &bytes[place.clone()]);
                if Spelling::of(listed) == name && wanted(list, listed) {
                    return Some((list, place));
                }
            }
            slot = (slot + 1) % self.slots.len();
        }
        None
    }

    /// The list with this place in the text.
    fn list(&self, at: usize) -> List {
        let [syntax, primary, session] = self.begins;
        match at {
            _ if at < syntax => List::Pure,
            _ if at < primary => List::Syntax,
            _ if at < session => List::Primary,
            _ => List::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_every_list_is_found_and_none_is_on_two_lists() {
        for names in [&POSTGRES, &MYSQL, &SQLITE] {
            let mut at = 0;
            for name in names.text.lines() {
                let list = names.list(at);
                let find = |wanted: &dyn Fn(List) -> bool| {
                    names.find(Spelling::of(name.as_bytes()), |list, _| wanted(list))
                };
                let found = find(&|other| other == list);
                assert_eq!(found, Some((list, at..at + name.len())), "{name} is found");
                assert_eq!(name, name.to_lowercase(), "{name} is in lower case");
                if list != List::Syntax {
                    let other = find(&|other| other != list && other != List::Syntax);
                    assert_eq!(other, None, "{name} is also on another list than {list:?}");
                }
                at += name.len() + 1;
            }
            assert_eq!(names.list(at - 1), List::Session, "the last one is read");
        }
    }

    #[test]
    fn a_quoted_name_with_bytes_that_no_bare_one_has_is_not_taken_for_another() {
        let call = |dialect, text| {
            let quoting = Quoting::Quoted;
            built_in(dialect, None, Identifier { text, quoting })
        };
        for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
            assert!(matches!(call(dialect, b"json_object"), Function::Pure));
            // differs from `_` in the bit that is the case of letters
            assert!(matches!(
                call(dialect, b"json\x7fobject"),
                Function::Unknown
            ));
        }
    }
}

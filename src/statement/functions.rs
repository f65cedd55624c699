//! The functions of each dialect: those known to change nothing, and those that need the primary.
//!
//! The lists in `functions/` are written by `scripts/function-lists.sh`, which also gives the reasons.
use super::Dialect;
use super::kind::FunctionName;
use super::rules::{Identifier, Quoting};

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

struct Lists {
    /// Words of the grammar that may stand before a parenthesis.
    syntax: Names,
    pure: Names,
    primary: Names,
    session: Names,
}

macro_rules! names {
    ($file:expr) => {{
        const TEXT: &str = include_str!($file);
        static SLOTS: [u16; slot_count(TEXT)] = slots(TEXT);
        Names {
            text: TEXT,
            slots: &SLOTS,
        }
    }};
}

macro_rules! lists {
    ($dialect:literal) => {
        Lists {
            syntax: names!(concat!("functions/", $dialect, ".syntax.txt")),
            pure: names!(concat!("functions/", $dialect, ".pure.txt")),
            primary: names!(concat!("functions/", $dialect, ".primary.txt")),
            session: names!(concat!("functions/", $dialect, ".session.txt")),
        }
    };
}

static POSTGRES: Lists = lists!("postgres");
static MYSQL: Lists = lists!("mysql");
static SQLITE: Lists = lists!("sqlite");

/// What the dialect's own lists say of a function.
pub(super) fn built_in(dialect: Dialect, schema: Option<Identifier>, name: Identifier) -> Function {
    let lists = match dialect {
        Dialect::Postgres => &POSTGRES,
        Dialect::Mysql => &MYSQL,
        Dialect::Sqlite => &SQLITE,
    };
    let user_schema = schema.is_some_and(|schema| !is_catalog(dialect, schema));
    let hash = name
        .text
        .iter()
        .fold(0, |hash, &byte| mix(hash, byte.to_ascii_lowercase()));
    let find = |list: &Names| {
        list.find(hash, name.text)
            .filter(|found| is_same(dialect, found, name))
    };
    if !user_schema && find(&lists.pure).is_some() {
        return Function::Pure;
    }
    if schema.is_none() && name.quoting == Quoting::Bare && find(&lists.syntax).is_some() {
        return Function::Pure;
    }
    // whatever their schema: extensions are installed where their user likes
    if let Some(name) = find(&lists.primary) {
        return Function::Primary(FunctionName::built_in(name));
    }
    match find(&lists.session) {
        Some(name) => Function::Session(FunctionName::built_in(name)),
        None => Function::Unknown,
    }
}

/// PostgreSQL takes quoted names as they are.
fn is_same(dialect: Dialect, lower_case: &str, name: Identifier) -> bool {
    dialect != Dialect::Postgres
        || name.quoting == Quoting::Bare
        || lower_case.as_bytes() == name.text
}

fn is_catalog(dialect: Dialect, schema: Identifier) -> bool {
    dialect == Dialect::Postgres && schema.text.eq_ignore_ascii_case(b"pg_catalog")
}

/// Names, one a line, and where in the text each begins: at its hash, or behind it.
struct Names {
    text: &'static str,
    /// Counted from one; zero is an empty slot. Their number is a power of two.
    slots: &'static [u16],
}

/// At least every second one is empty.
const fn slot_count(text: &str) -> usize {
    let (mut lines, mut at) = (0, 0);
    while at < text.len() {
        lines += (text.as_bytes()[at] == b'\n') as usize;
        at += 1;
    }
    (lines * 2 + 1).next_power_of_two()
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
        let (mut end, mut hash) = (line, 0);
        while bytes[end] != b'\n' {
            hash = mix(hash, bytes[end]);
            end += 1;
        }
        let mut slot = slot(hash, COUNT);
        while slots[slot] != 0 {
            slot = (slot + 1) & (COUNT - 1);
        }
        slots[slot] = line as u16 + 1;
        line = end + 1;
    }
    slots
}

const fn mix(hash: u32, byte: u8) -> u32 {
    (hash.rotate_left(5) ^ byte as u32).wrapping_mul(0x9e37_79b9)
}

const fn slot(hash: u32, count: usize) -> usize {
    (hash ^ hash >> 16) as usize & (count - 1)
}

impl Names {
    /// The name in any case; `hash` is that of its lower case.
    fn find(&self, hash: u32, name: &[u8]) -> Option<&'static str> {
        let mut slot = slot(hash, self.slots.len());
        while let Some(line) = usize::from(self.slots[slot]).checked_sub(1) {
            let (bytes, end) = (self.text.as_bytes(), line + name.len());
            if bytes.get(end) == Some(&b'\n') && bytes[line..end].eq_ignore_ascii_case(name) {
                return Some(&self.text[line..end]);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_every_list_is_found_and_none_is_on_two_lists() {
        for lists in [&POSTGRES, &MYSQL, &SQLITE] {
            let all = [&lists.pure, &lists.primary, &lists.session];
            for (index, list) in all.iter().chain([&&lists.syntax]).enumerate() {
                for name in list.text.lines() {
                    let find = |list: &Names| list.find(name.bytes().fold(0, mix), name.as_bytes());
                    assert_eq!(find(list), Some(name), "{name} is found");
                    assert_eq!(name, name.to_lowercase(), "{name} is in lower case");
                    for (other, list) in all.iter().enumerate().filter(|(other, _)| *other != index)
                    {
                        let found = index < all.len() && find(list).is_some();
                        assert!(!found, "{name} is on the lists {index} and {other}");
                    }
                }
            }
        }
    }
}

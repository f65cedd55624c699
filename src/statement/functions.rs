//! The functions of each dialect: those known to change nothing, and those that need the primary.
//!
//! The lists in `functions/` are written by `scripts/function-lists.sh`, which also gives the reasons.
use super::Dialect;
use super::kind::FunctionName;
use super::rules::{Identifier, Quoting};
use std::cmp::Ordering;

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

macro_rules! lists {
    ($dialect:literal) => {
        Lists {
            syntax: Names::new(include_str!(concat!("functions/", $dialect, ".syntax.txt"))),
            pure: Names::new(include_str!(concat!("functions/", $dialect, ".pure.txt"))),
            primary: Names::new(include_str!(concat!(
                "functions/",
                $dialect,
                ".primary.txt"
            ))),
            session: Names::new(include_str!(concat!(
                "functions/",
                $dialect,
                ".session.txt"
            ))),
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
    let mut buffer = [0; LONGEST];
    let Some(lower_case) = fold(dialect, name, &mut buffer) else {
        return Function::Unknown;
    };
    let user_schema = schema.is_some_and(|schema| !is_catalog(dialect, schema));
    if !user_schema && lists.pure.find(lower_case).is_some() {
        return Function::Pure;
    }
    if schema.is_none() && name.quoting == Quoting::Bare && lists.syntax.find(lower_case).is_some()
    {
        return Function::Pure;
    }
    // whatever their schema: extensions are installed where their user likes
    if let Some(name) = lists.primary.find(lower_case) {
        return Function::Primary(FunctionName::built_in(name));
    }
    match lists.session.find(lower_case) {
        Some(name) => Function::Session(FunctionName::built_in(name)),
        None => Function::Unknown,
    }
}

/// The name as the server looks it up: PostgreSQL leaves quoted names as they are.
fn fold<'b>(dialect: Dialect, name: Identifier, buffer: &'b mut [u8; LONGEST]) -> Option<&'b [u8]> {
    let text = name.text.as_bytes();
    let folded = buffer.get_mut(..text.len())?;
    folded.copy_from_slice(text);
    if dialect != Dialect::Postgres || name.quoting == Quoting::Bare {
        folded.make_ascii_lowercase();
    }
    Some(folded)
}

fn is_catalog(dialect: Dialect, schema: Identifier) -> bool {
    dialect == Dialect::Postgres && schema.text.eq_ignore_ascii_case("pg_catalog")
}

/// No listed name is longer: PostgreSQL cuts identifiers here.
const LONGEST: usize = 63;

/// Names, one a line, the shorter ones first and those of one length in order: so the names of one length are an
/// array in the text itself, and a lookup is a binary search in it.
struct Names {
    text: &'static str,
    /// Where the names of each length begin.
    starts: [u32; LONGEST + 2],
}

impl Names {
    const fn new(text: &'static str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = [0; LONGEST + 2];
        let (mut line, mut length) = (0, 0);
        while line < bytes.len() {
            let mut end = line;
            while bytes[end] != b'\n' {
                end += 1;
            }
            assert!(end - line >= length, "shorter names come first");
            while length < end - line {
                length += 1;
                starts[length] = line as u32;
            }
            line = end + 1;
        }
        while length <= LONGEST {
            length += 1;
            starts[length] = bytes.len() as u32;
        }
        Self { text, starts }
    }

    fn find(&self, lower_case: &[u8]) -> Option<&'static str> {
        let length = lower_case.len();
        let stride = length + 1;
        let start = self.starts[length] as usize;
        let (mut low, mut high) = (0, (self.starts[stride] as usize - start) / stride);
        while low < high {
            let middle = (low + high) / 2;
            let at = start + middle * stride;
            let name = &self.text[at..at + length];
            match name.as_bytes().cmp(lower_case) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(name),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_sorted_so_that_each_of_its_names_is_found_and_no_name_is_on_two() {
        for lists in [&POSTGRES, &MYSQL, &SQLITE] {
            let all = [&lists.pure, &lists.primary, &lists.session];
            for (index, list) in all.iter().chain([&&lists.syntax]).enumerate() {
                for name in list.text.lines() {
                    assert_eq!(
                        list.find(name.as_bytes()),
                        Some(name),
                        "{name} is out of order"
                    );
                    assert_eq!(name, name.to_lowercase(), "{name} is in lower case");
                    for (other, list) in all.iter().enumerate().filter(|(other, _)| *other != index)
                    {
                        let found = index < all.len() && list.find(name.as_bytes()).is_some();
                        assert!(!found, "{name} is on the lists {index} and {other}");
                    }
                }
            }
        }
    }
}

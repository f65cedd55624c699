//! A dialect and what an application adds to it.
use super::functions::{self, Function};
use super::kind::{FunctionName, QueryKind};
use super::{Dialect, scan};
use std::cmp::Ordering;
use std::sync::Arc;

/// By which rules statements are classified: a dialect, and what the application knows of its own functions.
///
/// Names are compared without regard to case. `f` means every `f`, in whatever schema; `audit.f` only that one, where
/// the statement names its schema. An application's word goes before the built-in lists, and a function on both of its
/// lists needs the primary.
///
/// ```
/// use diesel_routed::statement::{Dialect, Rules};
///
/// let rules = Rules::new(Dialect::Postgres).primary_functions(["next_invoice_number"]);
/// assert!(rules.classify("SELECT next_invoice_number()").needs_primary());
/// ```
#[derive(Clone, Debug)]
pub struct Rules {
    dialect: Dialect,
    primary: Names,
    replica: Names,
    unknown: UnknownFunctions,
}

/// Where a statement goes that calls a function on no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownFunctions {
    /// To a replica: its read-only session refuses what writes rows. The default.
    Replica,
    /// To the primary, unless [`Rules::replica_functions`] vouches for the function.
    Primary,
}

impl Rules {
    /// The dialect's own lists, and [`UnknownFunctions::Replica`].
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            primary: Names::default(),
            replica: Names::default(),
            unknown: UnknownFunctions::Replica,
        }
    }

    /// Adds functions that need the primary.
    pub fn primary_functions<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.primary.add(names);
        self
    }

    /// Adds functions that change nothing, so that statements that call them are pure reads.
    pub fn replica_functions<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.replica.add(names);
        self
    }

    /// Says where statements go that call functions on no list.
    pub fn unknown_functions(mut self, unknown: UnknownFunctions) -> Self {
        self.unknown = unknown;
        self
    }

    /// The dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Tells what a text needs; see [`classify`](super::classify).
    pub fn classify(&self, sql: &str) -> QueryKind {
        scan::scan(self, sql)
    }

    pub(super) fn unknown(&self) -> UnknownFunctions {
        self.unknown
    }

    /// Whether even a word of the grammar may be a function that needs the primary.
    pub(super) fn has_primary_functions(&self) -> bool {
        !self.primary.0.is_empty()
    }

    /// What is known of a function by this name, in this schema if one was named.
    pub(super) fn function(&self, schema: Option<Identifier>, name: Identifier) -> Function {
        if let Some(listed) = self.primary.find(schema, name) {
            return Function::Primary(FunctionName::listed(listed));
        }
        if self.replica.find(schema, name).is_some() {
            return Function::Pure;
        }
        functions::built_in(self.dialect, schema, name)
    }
}

/// A name as it stands in the text, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identifier<'a> {
    pub(super) text: &'a [u8],
    pub(super) quoting: Quoting,
}

impl Identifier<'_> {
    pub(super) const EMPTY: Self = Self {
        text: b"",
        quoting: Quoting::Bare,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    Bare,
    Quoted,
}

/// An application's functions in lower case, sorted by name, then schema.
#[derive(Clone, Debug, Default)]
struct Names(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: Arc<str>,
    schema: Option<Arc<str>>,
}

impl Names {
    fn add<I>(&mut self, names: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        for name in names {
            let name = name.as_ref().trim().to_lowercase();
            let (schema, name) = match name.rsplit_once('.') {
                Some((schema, name)) => (Some(schema.into()), name.into()),
                None => (None, name.as_str().into()),
            };
            self.0.push(Entry { name, schema });
        }
        self.0.sort();
    }

    #[inline]
    fn find(&self, schema: Option<Identifier>, name: Identifier) -> Option<&Arc<str>> {
        // the usual case, told without a search
        if self.0.is_empty() {
            return None;
        }
        let first = self
            .0
            .partition_point(|entry| compare(&entry.name, name.text) == Ordering::Less);
        self.0[first..]
            .iter()
            .take_while(|entry| compare(&entry.name, name.text) == Ordering::Equal)
            .find(|entry| match (&entry.schema, schema) {
                (None, _) => true,
                (Some(listed), Some(seen)) => listed.as_bytes().eq_ignore_ascii_case(seen.text),
                (Some(_), None) => false,
            })
            .map(|entry| &entry.name)
    }
}

/// Compares a lower-case name with one of any case.
fn compare(lower_case: &str, text: &[u8]) -> Ordering {
    let text = text.iter().map(u8::to_ascii_lowercase);
    lower_case.bytes().cmp(text)
}

//! What a statement needs, from its text alone.
//!
//! [`classify`] reads SQL once, from front to back, and allocates nothing. A text is called a read only if the scanner
//! is sure; all else needs the primary. [`Rules`] add the functions that an application knows more about.
//!
//! ```
//! use diesel_routed::statement::{Dialect, classify};
//!
//! assert!(!classify(Dialect::Postgres, "SELECT * FROM posts").needs_primary());
//! assert!(classify(Dialect::Postgres, "SELECT * FROM posts FOR UPDATE").needs_primary());
//! assert!(classify(Dialect::Postgres, "SELECT nextval('posts_id_seq')").needs_primary());
//! ```
//!
//! The servers' default modes are assumed: PostgreSQL's `standard_conforming_strings` is on, MySQL's
//! `NO_BACKSLASH_ESCAPES` is off. Where these are changed, quoted text may be misread; the read-only sessions on the
//! replicas are the net for that.

mod cache;
mod calls;
mod class;
mod depths;
mod functions;
mod head;
mod keyword;
mod kind;
mod lexer;
mod quotes;
mod rules;
mod scan;
mod seek;
mod single;
mod spelling;

pub(crate) use cache::{Known, Learned, Statement};
pub use kind::{
    Form, FunctionName, Keeps, Need, Purity, QueryKind, SessionEffect, TransactionEffect,
};
pub use rules::{Rules, UnknownFunctions};

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
    /// SQLite.
    Sqlite,
}

/// Tells what a text needs, by the dialect's built-in lists alone.
///
/// Never panics; the time is linear in the length of the text.
pub fn classify(dialect: Dialect, sql: &str) -> QueryKind {
    scan::scan(&Rules::new(dialect), sql)
}

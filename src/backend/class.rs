//! What an error says of the server: Diesel's kind first, then how the message begins.

#[cfg(any(feature = "postgres", feature = "mysql"))]
use diesel::result::ConnectionError;
use diesel::result::{DatabaseErrorKind, Error};

use crate::report::ErrorClass;

#[cfg(test)]
mod tests;

/// The messages of each class; the first line that fits wins.
///
/// A message fits a text that it begins with, where `*` stands for anything. Only its beginning
/// is the server's own: further on it may repeat a value of the statement, which must not pass
/// for the loss of a server.
pub(super) type Texts = &'static [(ErrorClass, &'static [&'static str])];

/// The class of a statement's error.
pub(super) fn of(error: &Error, texts: Texts) -> ErrorClass {
    use DatabaseErrorKind as Kind;
    let Error::DatabaseError(kind, info) = error else {
        return ErrorClass::Query;
    };
    match kind {
        Kind::ClosedConnection => ErrorClass::Death,
        Kind::ReadOnlyTransaction => ErrorClass::Role,
        Kind::UniqueViolation
        | Kind::ForeignKeyViolation
        | Kind::NotNullViolation
        | Kind::CheckViolation
        | Kind::RestrictViolation
        | Kind::ExclusionViolation => ErrorClass::Query,
        // among these a standby's conflicts, and whatever Diesel has no kind for
        _ => look_up(info.message(), texts).unwrap_or(ErrorClass::Query),
    }
}

/// The class of a failed dial.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn of_dial(error: &ConnectionError, texts: Texts) -> ErrorClass {
    match error {
        ConnectionError::BadConnection(message) => {
            look_up(message, texts).unwrap_or(ErrorClass::Death)
        }
        // the URL is no URL
        _ => ErrorClass::Query,
    }
}

/// Tells whether the message of a database error begins so.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn begins(error: &Error, text: &str) -> bool {
    matches!(error, Error::DatabaseError(_, info) if info.message().starts_with(text))
}

fn look_up(message: &str, texts: Texts) -> Option<ErrorClass> {
    texts
        .iter()
        .find(|(_, texts)| texts.iter().any(|text| fits(message, text)))
        .map(|(class, _)| *class)
}

fn fits(message: &str, text: &str) -> bool {
    let mut parts = text.split('*');
    let start = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(start) else {
        return false;
    };
    // the first place of each part is the best one: it leaves most for the next
    parts.all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

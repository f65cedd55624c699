//! A query that is not turned into SQL twice and can be sent again, and a cursor whose first step is
//! already taken.

use std::rc::Rc;
use std::sync::Arc;

use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryBuilder, QueryFragment, QueryId};
use diesel::result::QueryResult;

use crate::context::WriteMark;

/// A query whose text is there already, if it was needed to find out what the query is.
pub(super) struct Told<T> {
    query: T,
    text: Option<Arc<str>>,
}

impl<T> Told<T> {
    pub(super) fn new(query: T, text: Option<Arc<str>>) -> Self {
        Self { query, text }
    }
}

impl<T: Query> Query for Told<T> {
    type SqlType = T::SqlType;
}

impl<T: QueryId> QueryId for Told<T> {
    type QueryId = T::QueryId;

    const HAS_STATIC_QUERY_ID: bool = T::HAS_STATIC_QUERY_ID;
}

impl<DB: Backend, T: QueryFragment<DB>> QueryFragment<DB> for Told<T> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.query.walk_ast(pass)
    }

    fn to_sql(&self, out: &mut DB::QueryBuilder, backend: &DB) -> QueryResult<()> {
        match &self.text {
            Some(text) => {
                out.push_sql(text);
                Ok(())
            }
            None => self.query.to_sql(out, backend),
        }
    }
}

/// A query in several hands, so that it can go to a second node after the first has failed.
///
/// Diesel's `load` takes its query by value and asks for no `Clone`.
pub(super) struct Shared<T>(Rc<T>);

impl<T> Shared<T> {
    pub(super) fn new(query: T) -> Self {
        Self(Rc::new(query))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Query> Query for Shared<T> {
    type SqlType = T::SqlType;
}

impl<T: QueryId> QueryId for Shared<T> {
    type QueryId = T::QueryId;

    const HAS_STATIC_QUERY_ID: bool = T::HAS_STATIC_QUERY_ID;
}

impl<DB: Backend, T: QueryFragment<DB>> QueryFragment<DB> for Shared<T> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn to_sql(&self, out: &mut DB::QueryBuilder, backend: &DB) -> QueryResult<()> {
        self.0.to_sql(out, backend)
    }
}

/// A cursor whose first step is already taken.
///
/// SQLite and row-by-row loading run the statement in that step, so that it is there that a
/// replica refuses, and only before it that the query may still go to another node.
#[allow(missing_debug_implementations)] // the cursors of the backends have no `Debug`
pub struct Peeked<I, R> {
    first: Option<R>,
    rest: I,
    /// A write ends with its cursor.
    _mark: Option<Box<WriteMark>>,
}

impl<I, R> Peeked<I, R>
where
    I: Iterator<Item = QueryResult<R>>,
{
    /// Takes the first step; an error there is an error of the query.
    ///
    /// Where the cursor lies: it is moved only afterwards.
    #[inline]
    pub(super) fn new(mut loaded: QueryResult<I>) -> QueryResult<Self> {
        let first = match &mut loaded {
            Ok(rest) => rest.next().transpose()?,
            Err(_) => None,
        };
        Ok(Self {
            first,
            rest: loaded?,
            _mark: None,
        })
    }
}

impl<I, R> Peeked<I, R> {
    /// Notes the write that ends with it.
    pub(super) fn ends(&mut self, mark: Option<WriteMark>) {
        self._mark = mark.map(Box::new);
    }
}

impl<I, R> Iterator for Peeked<I, R>
where
    I: Iterator<Item = QueryResult<R>>,
{
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.rest.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ahead = usize::from(self.first.is_some());
        let (lower, upper) = self.rest.size_hint();
        (
            lower.saturating_add(ahead),
            upper.and_then(|upper| upper.checked_add(ahead)),
        )
    }
}

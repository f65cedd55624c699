//! A question of the router's own that is prepared once on each connection.

use diesel::backend::Backend;
use diesel::connection::Connection;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::query_dsl::RunQueryDsl;
use diesel::result::QueryResult;
use diesel::sql_types::Untyped;

/// SQL that is prepared once on each connection, which `sql_query` is not: that halves its round trips,
/// and the server reads and plans it once.
pub(super) struct Prepared(pub(super) &'static str);

impl<DB: Backend> QueryFragment<DB> for Prepared {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(self.0);
        Ok(())
    }
}

impl QueryId for Prepared {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Prepared {
    type SqlType = Untyped;
}

impl<C: Connection> RunQueryDsl<C> for Prepared {}

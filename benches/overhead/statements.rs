//! The other statements that are measured.

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use diesel::sqlite::Sqlite;

use crate::reads::{posts, typed};

#[derive(QueryableByName)]
struct Post {
    #[diesel(sql_type = Text)]
    title: String,
}

pub fn raw(conn: &mut impl LoadConnection<Backend = Sqlite>, id: i32) -> QueryResult<String> {
    diesel::sql_query("SELECT title FROM posts WHERE id = ?")
        .bind::<Integer, _>(id)
        .get_result::<Post>(conn)
        .map(|post| post.title)
}

pub fn insert(conn: &mut impl LoadConnection<Backend = Sqlite>, id: i32) -> QueryResult<usize> {
    diesel::insert_or_ignore_into(posts::table)
        .values((posts::id.eq(id), posts::title.eq("as it was")))
        .execute(conn)
}

pub fn transaction(
    conn: &mut impl LoadConnection<Backend = Sqlite>,
    id: i32,
) -> QueryResult<String> {
    conn.transaction(|conn| typed(conn, id))
}

//! The statements that are measured: one text for a plain connection and for a routed one.

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use diesel::sqlite::Sqlite;

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

pub const CREATE: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
    INSERT INTO posts SELECT i, 'the title of post ' || i FROM n;";

#[derive(QueryableByName)]
struct Post {
    #[diesel(sql_type = Text)]
    title: String,
}

pub fn typed(conn: &mut impl LoadConnection<Backend = Sqlite>, id: i32) -> QueryResult<String> {
    posts::table.find(id).select(posts::title).get_result(conn)
}

pub fn boxed(conn: &mut impl LoadConnection<Backend = Sqlite>, id: i32) -> QueryResult<String> {
    posts::table
        .into_boxed()
        .filter(posts::id.eq(id))
        .select(posts::title)
        .get_result(conn)
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

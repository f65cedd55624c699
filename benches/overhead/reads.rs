//! The reads that are measured, here and by `benches/instructions`: one text for a plain connection
//! and for a routed one.

use diesel::connection::LoadConnection;
use diesel::prelude::*;
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

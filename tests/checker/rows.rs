//! The rows that are written and read.

use diesel::prelude::*;

use super::backend::*;

diesel::table! {
    /// The newest version of each row.
    checked (id) {
        id -> Integer,
        version -> BigInt,
    }
}

diesel::table! {
    /// Every version that was ever written.
    checked_log (id, version) {
        id -> Integer,
        version -> BigInt,
    }
}

/// Makes the tables, with so many rows, on a primary.
pub fn create(conn: &mut Plain, rows: i32) {
    let rows: Vec<String> = (0..rows).map(|id| format!("({id}, 0)")).collect();
    for sql in [
        "CREATE TABLE checked (id INTEGER PRIMARY KEY, version BIGINT NOT NULL)",
        // a version that was written twice is to be there twice
        "CREATE TABLE checked_log (id INTEGER NOT NULL, version BIGINT NOT NULL)",
        "CREATE INDEX checked_log_of ON checked_log (id, version)",
        &format!("INSERT INTO checked VALUES {}", rows.join(", ")),
    ] {
        diesel::sql_query(sql).execute(conn).expect(sql);
    }
}

/// Every version of every row, as a node has them.
pub fn all_of(conn: &mut Plain) -> Vec<(i32, i64)> {
    checked_log::table
        .select((checked_log::id, checked_log::version))
        .load(conn)
        .expect("the log can be read")
}

/// A way to write a version.
pub type Writing = fn(&mut Conn, i32, i64) -> QueryResult<()>;

pub fn in_transaction(conn: &mut Conn, row: i32, version: i64) -> QueryResult<()> {
    conn.transaction(|conn| by_statements(conn, row, version))
}

pub fn by_statements(conn: &mut Conn, row: i32, version: i64) -> QueryResult<()> {
    set(conn, row, version)?;
    diesel::insert_into(checked_log::table)
        .values((checked_log::id.eq(row), checked_log::version.eq(version)))
        .execute(conn)
        .map(drop)
}

/// Loaded, as a write that returns rows is. Diesel cannot have MariaDB return any.
pub fn returning(conn: &mut Conn, row: i32, version: i64) -> QueryResult<()> {
    if NAME != "postgres" {
        return by_statements(conn, row, version);
    }
    #[derive(QueryableByName)]
    struct Written {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        version: i64,
    }
    let insert = format!("INSERT INTO checked_log VALUES ({row}, {version}) RETURNING version");
    let written: Written = diesel::sql_query(insert).get_result(conn)?;
    assert_eq!(written.version, version, "as it was written");
    set(conn, row, version)
}

fn set(conn: &mut Conn, row: i32, version: i64) -> QueryResult<()> {
    let changed = diesel::update(checked::table.find(row))
        .set(checked::version.eq(version))
        .execute(conn)?;
    assert_eq!(changed, 1, "every row is there");
    Ok(())
}

/// A way to read one.
pub type Reading = fn(&mut Conn, i32) -> QueryResult<i64>;

pub fn newest_of(conn: &mut Conn, row: i32) -> QueryResult<i64> {
    checked::table
        .find(row)
        .select(checked::version)
        .first(conn)
}

pub fn logged_of(conn: &mut Conn, row: i32) -> QueryResult<i64> {
    checked_log::table
        .filter(checked_log::id.eq(row))
        .select(diesel::dsl::max(checked_log::version))
        .first::<Option<i64>>(conn)
        .map(Option::unwrap_or_default)
}

//! What the examples have in common: notes in a database with a replica.
//!
//! Each framework has a file of its own in `src/bin`, and so has a queue of jobs. They need nothing
//! installed: two SQLite files are the nodes, and the replica is up to two seconds late. With
//! `--features postgres` (or `mysql`) they use `DATABASE_URL` and `DATABASE_REPLICA_URLS`, for which
//! `cargo run --example dev_cluster -- postgres 1` starts servers.

#![forbid(unsafe_code)]

#[cfg(not(any(feature = "postgres", feature = "mysql")))]
mod files;

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{ConfigError, RoutedConnection, RoutedPool, TokenKeys};
use serde::Deserialize;

#[cfg(feature = "postgres")]
type Plain = diesel::pg::PgConnection;
#[cfg(all(feature = "mysql", not(feature = "postgres")))]
type Plain = diesel::mysql::MysqlConnection;
#[cfg(not(any(feature = "postgres", feature = "mysql")))]
type Plain = diesel::sqlite::SqliteConnection;

/// Where an application of one database names its connection, for all of its functions.
pub type Db = RoutedConnection<Plain>;

diesel_routed::define_route!(pub mod route for Plain);

/// An error for people to read.
pub type Failure = Box<dyn Error + Send + Sync>;

diesel::table! {
    notes (id) {
        id -> BigInt,
        body -> Text,
    }
}

/// Makes the table, where it is missing.
pub const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS notes (id BIGINT PRIMARY KEY, body TEXT NOT NULL)";

/// A note as a form sends it.
#[derive(Deserialize, rocket::FromForm)]
pub struct Draft {
    /// What it says.
    pub body: String,
}

/// Opens the database, for [`route`] as well.
pub fn open() -> Result<RoutedPool<Plain>, Failure> {
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    let manager = diesel_routed::RoutedConnectionManager::from_env()?;
    #[cfg(not(any(feature = "postgres", feature = "mysql")))]
    let manager = files::manager()?;
    let pool = RoutedPool::new(manager)?;
    pool.get()?.batch_execute(TABLE)?;
    route::install(&pool);
    Ok(pool)
}

/// What the application signs its tokens with: `TOKEN_KEY`, a secret of 32 bytes or more which all
/// of its processes share.
///
/// Without, each process has a random one. It does not know what another one has signed, and has
/// the client read from the primary for a while.
pub fn token_keys() -> Result<TokenKeys, ConfigError> {
    match std::env::var("TOKEN_KEY") {
        Ok(secret) => TokenKeys::new(secret),
        Err(_) => TokenKeys::new(rand::random::<[u8; 32]>()),
    }
}

/// Reads all notes, the oldest first.
pub fn all(conn: &mut Db) -> QueryResult<Vec<String>> {
    notes::table.select(notes::body).order(notes::id).load(conn)
}

/// Writes a note and returns its id.
pub fn add(conn: &mut Db, body: &str) -> QueryResult<i64> {
    let id = new_id();
    diesel::insert_into(notes::table)
        .values((notes::id.eq(id), notes::body.eq(body)))
        .execute(conn)?;
    Ok(id)
}

/// An id that sorts by time, made here because not every database returns its own.
pub fn new_id() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    i64::try_from(micros << 8).unwrap_or(0) | rand::random_range(0..1 << 8)
}

/// The page: the notes, and a form for the next one.
pub fn page(notes: &[String]) -> String {
    let items: String = notes
        .iter()
        .map(|note| format!("<li>{}</li>\n", escaped(note)))
        .collect();
    format!(
        "<!doctype html>\n<meta charset=utf-8>\n<title>Notes</title>\n<ul>\n{items}</ul>\n\
         <form method=post action=/notes><input name=body autofocus><button>Add</button></form>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// The port of `PORT`; 0 is any free one.
pub fn port() -> Result<u16, Failure> {
    match std::env::var("PORT") {
        Ok(port) => port
            .parse()
            .map_err(|_| format!("PORT={port} is no port").into()),
        Err(_) => Ok(3000),
    }
}

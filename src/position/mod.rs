//! How far a server has come: read, compared, merged, written down; pure.
//!
//! One question is asked of positions: has this node applied everything up to there? It is
//! answered for one history only; across systems or timelines the numbers mean nothing.

mod intervals;
mod mariadb;
mod mysql;
mod postgres;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::str::FromStr;

pub use mariadb::{GtidList, GtidState};
pub use mysql::GtidSet;
pub use postgres::WalPosition;
use postgres::{normalised_lsn, parse_lsn, parse_system, parse_timeline};

/// The longest text that is read as a position; a server whose position is longer has none.
const MAX_TEXT: usize = 64 * 1024;

/// How far a server has come in the history of its changes.
///
/// Its text names the kind of server and parses back: `postgres:7301234567890123456:2:0/7F01928`,
/// `mariadb:0-100-9,5-100-1`, `mysql:3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7:9:blue:1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Position {
    /// PostgreSQL: a place in the write-ahead log of one timeline.
    Postgres(WalPosition),
    /// MariaDB: the last transaction of each replication domain.
    Mariadb(GtidList),
    /// MySQL: the set of all transactions.
    Mysql(GtidSet),
}

/// Whether a node has applied everything up to a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// It has.
    Yes,
    /// Something is missing yet.
    No,
    /// The two are of different histories, so that nothing can be said.
    Incomparable,
}

impl Position {
    /// Reads the position of a PostgreSQL primary: `pg_control_system().system_identifier`,
    /// `pg_walfile_name(pg_current_wal_insert_lsn())`, `pg_current_wal_insert_lsn()` and
    /// `wal_segment_size` in bytes.
    ///
    /// # Errors
    ///
    /// If one of the texts is not of that form.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn parse_postgres_primary(
        system: &str,
        wal_file: &str,
        insert_lsn: &str,
        wal_segment_size: u64,
    ) -> Result<Self, ParsePositionError> {
        Ok(Self::Postgres(WalPosition {
            system: parse_system(system)?,
            timeline: parse_timeline(wal_file)?,
            lsn: normalised_lsn(parse_lsn(insert_lsn)?, wal_segment_size),
        }))
    }

    /// Reads the position of a PostgreSQL standby: the system identifier, the timeline that it
    /// replays, and `pg_last_wal_replay_lsn()`.
    ///
    /// # Errors
    ///
    /// If one of the texts is not of that form.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn parse_postgres_standby(
        system: &str,
        timeline: u32,
        replay_lsn: &str,
    ) -> Result<Self, ParsePositionError> {
        Ok(Self::Postgres(WalPosition {
            system: parse_system(system)?,
            timeline,
            lsn: parse_lsn(replay_lsn)?,
        }))
    }

    /// Reads `@@gtid_binlog_pos` or `@@gtid_current_pos` of a MariaDB primary, or `@@gtid_slave_pos`
    /// of a replica.
    ///
    /// # Errors
    ///
    /// If the text is no such list; the empty text is one.
    pub(crate) fn parse_mariadb(text: &str) -> Result<Self, ParsePositionError> {
        GtidList::parse(text).map(Self::Mariadb)
    }

    /// Reads `@@gtid_executed` of a MySQL server.
    ///
    /// # Errors
    ///
    /// If the text is no GTID set; the empty text is one.
    pub(crate) fn parse_mysql(text: &str) -> Result<Self, ParsePositionError> {
        GtidSet::parse(text).map(Self::Mysql)
    }

    /// Tells whether a node at this position has applied everything up to `other`.
    ///
    /// PostgreSQL: the same system and timeline, and at least that LSN. MariaDB: at least that
    /// sequence number in each domain of `other`; server ids are not compared. MySQL: a superset.
    pub fn covers(&self, other: &Self) -> Coverage {
        match (self, other) {
            (Self::Postgres(own), Self::Postgres(other)) => own.covers(other),
            (Self::Mariadb(own), Self::Mariadb(other)) => own.covers(other),
            (Self::Mysql(own), Self::Mysql(other)) => own.covers(other),
            _ => Coverage::Incomparable,
        }
    }

    /// Returns what a node must have applied to have applied both.
    ///
    /// Of two PostgreSQL timelines the higher one wins: what the lower one had beyond the fork is
    /// lost. `None` for two kinds of server, or two PostgreSQL systems.
    pub fn merge(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Postgres(own), Self::Postgres(other)) => own.merge(other).map(Self::Postgres),
            (Self::Mariadb(own), Self::Mariadb(other)) => Some(Self::Mariadb(own.merge(other))),
            (Self::Mysql(own), Self::Mysql(other)) => Some(Self::Mysql(own.merge(other))),
            _ => None,
        }
    }

    /// Returns what is left to ask for once everything up to `other` is known to be there.
    ///
    /// MySQL: the difference of the sets. The other kinds are short and stay as they are.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Mysql(own), Self::Mysql(other)) => Self::Mysql(own.subtract(other)),
            _ => self.clone(),
        }
    }

    /// Tells whether it names no transaction at all, so that every node covers it.
    ///
    /// A primary without GTIDs shows this, whatever it commits: it has no position.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Postgres(_) => false,
            Self::Mariadb(list) => list.is_empty(),
            Self::Mysql(set) => set.is_empty(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(position) => write!(f, "postgres:{position}"),
            Self::Mariadb(list) => write!(f, "mariadb:{list}"),
            Self::Mysql(set) => write!(f, "mysql:{set}"),
        }
    }
}

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text
            .split_once(':')
            .ok_or(ParsePositionError("a position names its kind of server"))?;
        match kind {
            "postgres" => WalPosition::parse(rest).map(Self::Postgres),
            "mariadb" => Self::parse_mariadb(rest),
            "mysql" => Self::parse_mysql(rest),
            _ => Err(ParsePositionError("unknown kind of server")),
        }
    }
}

/// A text that is no position.
///
/// It says what is wrong but never repeats the text, which may come from anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsePositionError(&'static str);

impl fmt::Display for ParsePositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a position: {}", self.0)
    }
}

impl Error for ParsePositionError {}

/// Refuses a text that is too long to be worth the memory.
fn bounded(text: &str) -> Result<&str, ParsePositionError> {
    match text.len() {
        0..=MAX_TEXT => Ok(text),
        _ => Err(ParsePositionError("longer than 64 kB")),
    }
}

/// Reads a number of decimal digits only: the standard parser takes a sign, too.
fn decimal<N: FromStr>(text: &str) -> Result<N, ParsePositionError> {
    const MALFORMED: ParsePositionError = ParsePositionError("malformed number");
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    text.parse().map_err(|_| MALFORMED)
}

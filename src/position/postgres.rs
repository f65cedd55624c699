//! PostgreSQL: system identifier, timeline, LSN.

use std::fmt;

use super::{Coverage, ParsePositionError, decimal};

/// The size of a page of the write-ahead log, as PostgreSQL is built everywhere.
const WAL_PAGE: u64 = 8192;
/// The header of a page.
const SHORT_HEADER: u64 = 24;
/// The header of the first page of a segment.
const LONG_HEADER: u64 = 40;

/// A place in the write-ahead log of one timeline of one PostgreSQL system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WalPosition {
    /// The system identifier, which a primary and its standbys share.
    pub system: u64,
    /// The timeline; each promotion begins a higher one.
    pub timeline: u32,
    /// The log sequence number, normalised at page headers.
    pub lsn: u64,
}

impl WalPosition {
    pub(super) fn parse(text: &str) -> Result<Self, ParsePositionError> {
        const FORM: ParsePositionError = ParsePositionError("needs system:timeline:lsn");
        let (system, rest) = text.split_once(':').ok_or(FORM)?;
        let (timeline, lsn) = rest.split_once(':').ok_or(FORM)?;
        Ok(Self {
            system: decimal(system)?,
            timeline: decimal(timeline)?,
            lsn: parse_lsn(lsn)?,
        })
    }

    pub(super) fn covers(&self, other: &Self) -> Coverage {
        if (self.system, self.timeline) != (other.system, other.timeline) {
            Coverage::Incomparable
        } else if self.lsn >= other.lsn {
            Coverage::Yes
        } else {
            Coverage::No
        }
    }

    pub(super) fn merge(&self, other: &Self) -> Option<Self> {
        let furthest = (self.timeline, self.lsn).max((other.timeline, other.lsn));
        (self.system == other.system).then_some(Self {
            system: self.system,
            timeline: furthest.0,
            lsn: furthest.1,
        })
    }
}

impl fmt::Display for WalPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = (self.lsn >> 32, self.lsn & 0xFFFF_FFFF);
        write!(f, "{}:{}:{high:X}/{low:X}", self.system, self.timeline)
    }
}

/// Reads a `pg_lsn`, such as `0/7F01928`.
pub(super) fn parse_lsn(text: &str) -> Result<u64, ParsePositionError> {
    let (high, low) = text
        .split_once('/')
        .ok_or(ParsePositionError("an LSN has two parts"))?;
    Ok(u64::from(hexadecimal(high)?) << 32 | u64::from(hexadecimal(low)?))
}

/// Reads the timeline from the name of a file of the write-ahead log: its first 8 of 24 digits.
pub(super) fn parse_timeline(wal_file: &str) -> Result<u32, ParsePositionError> {
    const FORM: ParsePositionError = ParsePositionError("a WAL file is named by 24 digits");
    match wal_file.get(..8) {
        Some(timeline) if wal_file.len() == 24 => hexadecimal(timeline),
        _ => Err(FORM),
    }
}

/// Reads a system identifier: unsigned, but printed as a signed `bigint`.
pub(super) fn parse_system(text: &str) -> Result<u64, ParsePositionError> {
    match text.strip_prefix('-') {
        Some(digits) => decimal::<u64>(digits).map(u64::wrapping_neg),
        None => decimal(text),
    }
}

/// Returns the end of the last record at or before the primary's insert LSN.
///
/// On an empty page the insert LSN stands behind the page's header already, which no standby
/// reports before the next record: on an idle primary that can take for ever. An offset of 24 in
/// any page, or of 40 in the first page of a segment, can be nothing but that. Elsewhere 40 is
/// the end of a record. `wal_segment_size` is in bytes.
pub(super) fn normalised_lsn(insert: u64, wal_segment_size: u64) -> u64 {
    if insert % WAL_PAGE == SHORT_HEADER {
        insert - SHORT_HEADER
    } else if insert.checked_rem(wal_segment_size) == Some(LONG_HEADER) {
        insert - LONG_HEADER
    } else {
        insert
    }
}

/// Reads 1 to 8 hexadecimal digits: the standard parser takes a sign, too.
fn hexadecimal(text: &str) -> Result<u32, ParsePositionError> {
    const MALFORMED: ParsePositionError = ParsePositionError("malformed hexadecimal number");
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(MALFORMED);
    }
    u32::from_str_radix(text, 16).map_err(|_| MALFORMED)
}

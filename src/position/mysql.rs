//! MySQL: sets of GTIDs, with the tags of 8.3 and later.

use std::collections::BTreeMap;
use std::fmt;

use super::intervals::{Interval, Intervals};
use super::{Coverage, ParsePositionError, bounded, decimal};

/// The longest tag that MySQL allows.
const MAX_TAG: usize = 32;

/// The set of transactions that a MySQL server has executed.
///
/// Its text is one that the server understands: `uuid:1-7:9:blue:1,uuid:23`, on one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GtidSet {
    /// No set of numbers in it is empty.
    sources: BTreeMap<Source, Intervals>,
}

/// Who numbers the transactions: a server, and the tag that it gave them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Source {
    server: u128,
    /// Empty for those without a tag.
    tag: Box<str>,
}

impl GtidSet {
    pub(super) fn parse(text: &str) -> Result<Self, ParsePositionError> {
        let mut found: BTreeMap<Source, Vec<Interval>> = BTreeMap::new();
        for member in bounded(text)?.split(',').map(str::trim) {
            // the server itself allows commas without anything between them
            if !member.is_empty() {
                parse_member(member, &mut found)?;
            }
        }
        let sources = found
            .into_iter()
            .map(|(source, intervals)| (source, Intervals::union(intervals)));
        Ok(Self {
            sources: sources.collect(),
        })
    }

    pub(super) fn covers(&self, other: &Self) -> Coverage {
        let has = |(source, wanted): (&Source, &Intervals)| {
            self.sources
                .get(source)
                .is_some_and(|own| own.covers(wanted))
        };
        match other.sources.iter().all(has) {
            true => Coverage::Yes,
            false => Coverage::No,
        }
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        for (source, theirs) in &other.sources {
            let own = merged.sources.entry(source.clone()).or_default();
            *own = own.merge(theirs);
        }
        merged
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.sources.retain(|source, own| {
            if let Some(theirs) = other.sources.get(source) {
                *own = own.subtract(theirs);
            }
            !own.is_empty()
        });
        left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

/// Reads `uuid:1-7:9:blue:1`: numbers belong to the tag before them.
fn parse_member(
    member: &str,
    found: &mut BTreeMap<Source, Vec<Interval>>,
) -> Result<(), ParsePositionError> {
    let mut parts = member.split(':').map(str::trim);
    let mut source = Source {
        server: parse_uuid(parts.next().unwrap_or_default())?,
        tag: Box::default(),
    };
    let mut ends_with_number = false;
    for part in parts {
        ends_with_number = part.starts_with(|first: char| first.is_ascii_digit());
        if ends_with_number {
            let intervals = found.entry(source.clone()).or_default();
            intervals.push(parse_interval(part)?);
        } else {
            source.tag = parse_tag(part)?;
        }
    }
    match ends_with_number {
        true => Ok(()),
        false => Err(ParsePositionError("a source without numbers")),
    }
}

fn parse_uuid(text: &str) -> Result<u128, ParsePositionError> {
    const MALFORMED: ParsePositionError = ParsePositionError("malformed uuid");
    let mut value = 0;
    for (place, byte) in text.bytes().enumerate() {
        match (place, char::from(byte).to_digit(16)) {
            (8 | 13 | 18 | 23, None) if byte == b'-' => {}
            (8 | 13 | 18 | 23, _) | (_, None) | (36.., _) => return Err(MALFORMED),
            (_, Some(digit)) => value = value << 4 | u128::from(digit),
        }
    }
    match text.len() {
        36 => Ok(value),
        _ => Err(MALFORMED),
    }
}

fn parse_tag(text: &str) -> Result<Box<str>, ParsePositionError> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match text.len() {
        1..=MAX_TAG if text.bytes().all(word) => Ok(text.to_ascii_lowercase().into()),
        _ => Err(ParsePositionError("malformed tag")),
    }
}

fn parse_interval(text: &str) -> Result<Interval, ParsePositionError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (decimal(first.trim_end())?, decimal(last.trim_start())?);
    match 1 <= first && first <= last && last <= i64::MAX as u64 {
        true => Ok(Interval { first, last }),
        false => Err(ParsePositionError("malformed interval")),
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut previous = None;
        for (Source { server, tag }, intervals) in &self.sources {
            match previous {
                Some(before) if before == server => {}
                Some(_) => write!(f, ",{}", Uuid(*server))?,
                None => write!(f, "{}", Uuid(*server))?,
            }
            previous = Some(server);
            if !tag.is_empty() {
                write!(f, ":{tag}")?;
            }
            write!(f, "{intervals}")?;
        }
        Ok(())
    }
}

struct Uuid(u128);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value) = self;
        // 32 digits in groups of 8, 4, 4, 4, 12
        let group = |shift: u32, bits: u32| value >> shift & ((1 << bits) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            group(96, 32),
            group(80, 16),
            group(64, 16),
            group(48, 16),
            group(0, 48)
        )
    }
}

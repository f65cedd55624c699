//! What a context has written, as a text that outlives the request; pure.
//!
//! A token is `1.BODY` or `1.BODY.SEAL`: the version, and two base64 texts of the alphabet that is
//! safe in URLs and cookies. The body holds, for each cluster in the order of their tags, the tag
//! (8 bytes), `until` (8), the length of the position's text (2) and that text; if the highest bit of
//! the length is set, the same follows of what was viewed: until when that counts (8), a server
//! (8), a length (2) and a position. The seal is four
//! bytes that name the key and the HMAC-SHA-256 of everything before it. There is one text for
//! each value: whatever else could be read in some way is refused.
//!
//! A token is sealed, not encrypted: who holds one can read the positions in it.

pub(super) mod keys;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use self::keys::{SEAL, TokenKeys, Verdict};
use super::seen::Floor;
use crate::position::Position;
use crate::report::{ServerTag, fingerprint};

/// The only version that is written, and the highest that is understood.
const VERSION: u16 = 1;
/// The longest token, in bytes; a cookie and its attributes may have four times as many.
const MAX_TOKEN: usize = 1024;
/// As many clusters fit into a token without their positions.
const MAX_CLUSTERS: usize = 16;
/// The bytes of a cluster in the body, without the text of its position.
const HEAD: usize = 8 + 8 + 2;

/// As long is what was viewed of a cluster, without the text of its position.
const VIEW: usize = 8 + 8 + 2;

/// Stands beside the length of a position that something follows that was viewed.
const HAS_VIEWED: u16 = 1 << 15;
/// By how much the clock of the process that reads a token may be ahead of the one that wrote it.
const CLOCK_SKEW: Duration = Duration::from_secs(2);

/// A time that processes on several machines agree on: milliseconds since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UnixMillis(pub(crate) u64);

/// Which cluster something was written to: a hash of its name, the same in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClusterTag(u64);

impl ClusterTag {
    /// Hashes the name by FNV-1a: the standard library's hash may be another one in the next release.
    pub(crate) fn of(name: &str) -> Self {
        Self(fingerprint(name.bytes()))
    }
}

/// What was written to one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) cluster: ClusterTag,
    /// Until when it sticks where the position decides nothing.
    pub(crate) until: UnixMillis,
    /// What a node has to have applied; `None` if that is not known of everything written.
    pub(crate) position: Option<Position>,
    /// What was read last, where that is to hold for the requests that follow.
    pub(crate) viewed: Option<Viewed>,
}

/// What a client has been shown of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Viewed {
    /// Every server that may serve then shows nothing older.
    pub(crate) until: UnixMillis,
    pub(crate) floor: Floor,
}

impl Viewed {
    fn and(self, other: Self) -> Self {
        Self {
            until: self.until.max(other.until),
            floor: self.floor.and(other.floor),
        }
    }
}

impl Written {
    /// Tells whether it says only what was read.
    pub(super) fn is_read(&self) -> bool {
        self.until == UnixMillis(0) && self.position.is_none()
    }

    /// When nothing of it counts any more, but a position that was written to.
    pub(crate) fn end(&self) -> UnixMillis {
        let viewed = self.viewed.as_ref();
        self.until
            .max(viewed.map_or(UnixMillis(0), |viewed| viewed.until))
    }

    /// Returns for how much longer the time alone sticks, as the process that reads it sees it.
    ///
    /// A clock that is a little ahead ends it no earlier. No write that has ended sticks for longer
    /// than `sticky_for`, so neither does one that a token tells of, whatever time it names.
    pub(crate) fn left(&self, now: UnixMillis, sticky_for: Duration) -> Duration {
        left_of(self.until, now, sticky_for)
    }

    /// What two requests of one client wrote, of which the next has to see both.
    ///
    /// The position of one says nothing of the other: without two that go together the time decides.
    fn and(self, other: Self) -> Self {
        Self {
            cluster: self.cluster,
            until: self.until.max(other.until),
            position: match (self.is_read(), other.is_read()) {
                (true, _) => other.position,
                (_, true) => self.position,
                _ => self
                    .position
                    .zip(other.position)
                    .and_then(|(one, other)| one.merge(&other)),
            },
            viewed: match (self.viewed, other.viewed) {
                (Some(one), Some(other)) => Some(one.and(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

/// For how much longer something counts, as the process that reads it sees it.
pub(super) fn left_of(until: UnixMillis, now: UnixMillis, longest: Duration) -> Duration {
    let until = Duration::from_millis(until.0).saturating_add(CLOCK_SKEW);
    until
        .saturating_sub(Duration::from_millis(now.0))
        .min(longest)
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Read {
    /// Nothing: it is garbage, altered, or forged.
    Nothing,
    /// Something was written to whichever cluster, nobody knows where: the token is of a newer
    /// version, or sealed by a key that this process does not have.
    ///
    /// Either happens while a new version or a new key is rolled out, and nobody shall miss their
    /// own write because of that.
    JustWrote,
    /// This was written; one of each cluster, in the order of their tags, and never empty.
    Written(Vec<Written>),
}

/// Merges what two tokens, or a token and a request, have written; one of each cluster.
///
/// A time mark that has passed and knows no position should not be there any more: it would take
/// the position away from the other.
pub(crate) fn merge(one: Vec<Written>, other: Vec<Written>) -> Vec<Written> {
    let mut merged = BTreeMap::new();
    for written in one.into_iter().chain(other) {
        let both = match merged.remove(&written.cluster) {
            Some(known) => written.and(known),
            None => written,
        };
        merged.insert(both.cluster, both);
    }
    merged.into_values().collect()
}

/// Writes a token of at most 1 kB; `None` if nothing was written.
///
/// What sticks longest comes first. A position for which no room is left is left out, so that the
/// time decides; so is, beyond 16, a whole cluster.
pub(crate) fn write(list: &[Written], keys: Option<&TokenKeys>) -> Option<String> {
    let mut list = merge(list.to_vec(), vec![]);
    if list.is_empty() {
        return None;
    }
    let mut text = format!("{VERSION}.");
    let sealed = keys.map_or(0, |_| 1 + SEAL / 3 * 4);
    let room = (MAX_TOKEN - text.len() - sealed) * 3 / 4;
    list.sort_by_key(|written| Reverse(written.end()));
    list.truncate(MAX_CLUSTERS);
    BASE64.encode_string(body(&list, room), &mut text);
    if let Some(keys) = keys {
        text.push('.');
        BASE64.encode_string(keys.seal(text.as_bytes()), &mut text);
    }
    Some(text)
}

/// Reads a token, which may come from anywhere.
///
/// With `keys` only what one of them has sealed is believed. Without, a sealed token is sealed by
/// a key that is not there, and nothing of it is read.
pub(crate) fn read(text: &str, keys: Option<&TokenKeys>) -> Read {
    match text.split_once('.') {
        _ if text.len() > MAX_TOKEN => Read::Nothing,
        Some((version, rest)) if is_newer(version) && is_safe(rest) => Read::JustWrote,
        Some((version, rest)) if version == VERSION.to_string() => match rest.split_once('.') {
            None if keys.is_some() => Read::Nothing,
            None => read_body(rest),
            Some((body, seal)) => match verdict(&text[..text.len() - seal.len()], seal, keys) {
                Verdict::Genuine => read_body(body),
                Verdict::UnknownKey => Read::JustWrote,
                Verdict::Forged => Read::Nothing,
            },
        },
        _ => Read::Nothing,
    }
}

fn verdict(sealed: &str, seal: &str, keys: Option<&TokenKeys>) -> Verdict {
    match BASE64.decode(seal).map(<[u8; SEAL]>::try_from) {
        Ok(Ok(seal)) if is_safe(sealed) => match keys {
            Some(keys) => keys.check(sealed.as_bytes(), seal),
            None => Verdict::UnknownKey,
        },
        _ => Verdict::Forged,
    }
}

fn is_newer(version: &str) -> bool {
    let digits = version.bytes().all(|byte| byte.is_ascii_digit());
    let number = version.parse::<u16>().unwrap_or_default();
    digits && !version.starts_with('0') && number > VERSION
}

/// Whether no character of it means anything in a URL or a cookie, as in any token.
fn is_safe(text: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !text.is_empty() && text.bytes().all(safe)
}

/// Writes the body, in at most `room` bytes; `list` begins with what needs its position most.
fn body(list: &[Written], mut room: usize) -> Vec<u8> {
    room -= list.len() * HEAD;
    // own writes first: what was viewed is less to lose
    let positions: Vec<_> = list
        .iter()
        .map(|written| text_of(written.position.as_ref(), &mut room))
        .collect();
    let mut clusters = BTreeMap::new();
    for (written, text) in list.iter().zip(positions) {
        let viewed = written.viewed.as_ref().filter(|_| room >= VIEW);
        room -= viewed.map_or(0, |_| VIEW);
        let viewed =
            viewed.map(|viewed| (viewed, text_of(viewed.floor.position.as_ref(), &mut room)));
        clusters.insert(written.cluster, (written.until, text, viewed));
    }
    let mut body = vec![];
    for (ClusterTag(tag), (UnixMillis(until), text, viewed)) in clusters {
        body.extend(tag.to_be_bytes());
        body.extend(until.to_be_bytes());
        let mark = viewed.as_ref().map_or(0, |_| HAS_VIEWED);
        body.extend((length(&text) | mark).to_be_bytes());
        body.extend(text.bytes());
        if let Some((viewed, text)) = viewed {
            let ServerTag(server) = viewed.floor.server;
            body.extend(viewed.until.0.to_be_bytes());
            body.extend(server.to_be_bytes());
            body.extend(length(&text).to_be_bytes());
            body.extend(text.bytes());
        }
    }
    body
}

/// The text of a position, as far as there is room for it.
fn text_of(position: Option<&Position>, room: &mut usize) -> String {
    // one that names nothing is covered by every node: it is no position
    let text = position
        .filter(|position| !position.is_empty())
        .map(Position::to_string)
        .filter(|text| text.len() <= *room)
        .unwrap_or_default();
    *room -= text.len();
    text
}

fn length(text: &str) -> u16 {
    u16::try_from(text.len()).expect("it is shorter than a token")
}

fn read_body(text: &str) -> Read {
    let body = BASE64.decode(text).unwrap_or_default();
    let list = parse(&body).unwrap_or_default();
    match list.is_empty() {
        true => Read::Nothing,
        false => Read::Written(list),
    }
}

fn parse(mut body: &[u8]) -> Option<Vec<Written>> {
    let mut list: Vec<Written> = vec![];
    while !body.is_empty() {
        let written;
        (written, body) = parse_written(body)?;
        let in_order = list
            .last()
            .is_none_or(|last| last.cluster < written.cluster);
        if !in_order || list.len() == MAX_CLUSTERS {
            return None;
        }
        list.push(written);
    }
    Some(list)
}

fn parse_written(body: &[u8]) -> Option<(Written, &[u8])> {
    let (tag, body) = body.split_first_chunk()?;
    let (until, body) = body.split_first_chunk()?;
    let (mark, position, body) = parse_text(body)?;
    let (viewed, body) = match mark {
        0 => (None, body),
        _ => {
            let (viewed, body) = parse_viewed(body)?;
            (Some(viewed), body)
        }
    };
    let written = Written {
        cluster: ClusterTag(u64::from_be_bytes(*tag)),
        until: UnixMillis(u64::from_be_bytes(*until)),
        position,
        viewed,
    };
    Some((written, body))
}

fn parse_viewed(body: &[u8]) -> Option<(Viewed, &[u8])> {
    let (until, body) = body.split_first_chunk()?;
    let (server, body) = body.split_first_chunk()?;
    let (mark, position, body) = parse_text(body)?;
    let viewed = Viewed {
        until: UnixMillis(u64::from_be_bytes(*until)),
        floor: Floor {
            server: ServerTag(u64::from_be_bytes(*server)),
            position,
        },
    };
    (mark == 0).then_some((viewed, body))
}

/// A position with the length of its text, and what else is marked there.
fn parse_text(body: &[u8]) -> Option<(u16, Option<Position>, &[u8])> {
    let (length, body) = body.split_first_chunk()?;
    let length = u16::from_be_bytes(*length);
    let (text, rest) = body.split_at_checked(usize::from(length & !HAS_VIEWED))?;
    let position = match text {
        [] => None,
        text => Some(parse_position(std::str::from_utf8(text).ok()?)?),
    };
    Some((length & HAS_VIEWED, position, rest))
}

fn parse_position(text: &str) -> Option<Position> {
    let position: Position = text.parse().ok()?;
    (!position.is_empty() && position.to_string() == text).then_some(position)
}

//! MariaDB: the last GTID of each replication domain.

use std::collections::BTreeMap;
use std::fmt;

use super::{Coverage, ParsePositionError, bounded, decimal};

/// The last transaction of each replication domain of a MariaDB server.
///
/// Its text is the server's own: `0-100-9,5-100-1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GtidList {
    domains: BTreeMap<u32, Last>,
}

/// The last transaction of each server in each domain, of all that a MariaDB server has.
///
/// Of two servers that went apart each lacks something of this of the other, although their numbers
/// go on alike. As read from `@@gtid_binlog_state`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GtidState {
    last: BTreeMap<(u32, u32), u64>,
}

impl GtidState {
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    pub(crate) fn parse(text: &str) -> Result<Self, ParsePositionError> {
        let mut last = BTreeMap::new();
        let text = bounded(text)?.trim();
        for gtid in text.split(',').filter(|_| !text.is_empty()) {
            let (domain, Last { server, sequence }) = parse_gtid(gtid.trim())?;
            let known = last.entry((domain, server)).or_insert(sequence);
            *known = sequence.max(*known);
        }
        Ok(Self { last })
    }

    /// Tells whether the transactions of `list` are there, each from the server that it names.
    pub(crate) fn includes(&self, list: &GtidList) -> bool {
        list.domains.iter().all(|(domain, wanted)| {
            let own = self.last.get(&(*domain, wanted.server));
            own.is_some_and(|own| *own >= wanted.sequence)
        })
    }
}

/// The last transaction of a domain; ordered by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Last {
    sequence: u64,
    server: u32,
}

impl GtidList {
    pub(super) fn parse(text: &str) -> Result<Self, ParsePositionError> {
        let mut domains = BTreeMap::new();
        let text = bounded(text)?.trim();
        let gtids = text.split(',').filter(|_| !text.is_empty());
        for gtid in gtids {
            let (domain, last) = parse_gtid(gtid.trim())?;
            if domains.insert(domain, last).is_some() {
                return Err(ParsePositionError("a domain is there twice"));
            }
        }
        Ok(Self { domains })
    }

    pub(super) fn covers(&self, other: &Self) -> Coverage {
        let has = |(domain, wanted): (&u32, &Last)| {
            self.domains
                .get(domain)
                .is_some_and(|own| own.sequence >= wanted.sequence)
        };
        match other.domains.iter().all(has) {
            true => Coverage::Yes,
            false => Coverage::No,
        }
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        for (domain, theirs) in &other.domains {
            let own = merged.domains.entry(*domain).or_insert(*theirs);
            *own = (*own).max(*theirs);
        }
        merged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }
}

fn parse_gtid(gtid: &str) -> Result<(u32, Last), ParsePositionError> {
    let mut parts = gtid.split('-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(domain), Some(server), Some(sequence), None) => {
            let last = Last {
                sequence: decimal(sequence)?,
                server: decimal(server)?,
            };
            Ok((decimal(domain)?, last))
        }
        _ => Err(ParsePositionError("a MariaDB GTID has three numbers")),
    }
}

impl fmt::Display for GtidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (domain, Last { sequence, server }) in &self.domains {
            write!(f, "{comma}{domain}-{server}-{sequence}")?;
            comma = ",";
        }
        Ok(())
    }
}

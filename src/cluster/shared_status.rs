//! Load and lag, asked by one of many processes and read by the others.

mod link;
mod memcached;
mod numbers;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::link::{Address, Link};
use self::memcached::Memcached;
use super::ConfigError;
use crate::node::Numbers;

/// The longest that a caller waits for memcached.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long numbers are fresh, in the seconds of memcached's clock, which may take them for up
/// to one less.
const LIFE: u32 = 5;

/// How long one process is given to ask, likewise; longer than a probe may take.
const CLAIM: u32 = 3;

/// How long numbers are kept for those who come while another process asks.
const KEPT: u32 = LIFE + CLAIM + 2;

/// Lets the processes of an application ask the servers for load and lag as if they were one.
///
/// Of all processes one asks, and the others read from memcached what it was told, which is
/// never more than 10 seconds old. Only numbers that help to choose among healthy replicas are
/// shared: whether a node answers, which role it has and how far it has come every process finds
/// out by itself, and nothing in memcached can make it read from a replica that it would not read
/// from otherwise.
///
/// Where memcached does not answer every process asks for itself, as without it. That is logged
/// once, and memcached is asked again after 1 s, then 2 s, up to 30 s; nobody waits for it for
/// more than 0.1 s.
///
/// A clone shares the connection.
#[derive(Clone)]
pub struct SharedStatus(Arc<Inner>);

struct Inner {
    address: Address,
    patience: Duration,
    /// Protects the connection for the length of one question and its answer.
    link: Mutex<Link>,
}

/// What memcached said.
enum Found {
    Numbers(Numbers),
    /// It is this process that asks now; the others read the last numbers meanwhile.
    Claimed {
        last: Option<Numbers>,
    },
    /// Another process asks for the first time.
    Nothing,
}

impl SharedStatus {
    /// Shares through the memcached server at `memcached://host:port`; the port defaults to 11211.
    ///
    /// Does no I/O: the server need not run yet.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Invalid`] if that is not the form of `url`.
    ///
    /// # Examples
    ///
    /// ```
    /// use diesel_routed::SharedStatus;
    ///
    /// let shared = SharedStatus::memcached("memcached://cache.internal")?;
    /// assert!(SharedStatus::memcached("redis://cache.internal").is_err());
    /// # let _ = shared;
    /// # Ok::<(), diesel_routed::ConfigError>(())
    /// ```
    pub fn memcached(url: &str) -> Result<Self, ConfigError> {
        let address = Address::parse(url).ok_or_else(|| ConfigError::Invalid {
            setting: "shared_status".to_owned(),
            value: "a value that is not shown here".to_owned(),
            accepted: "memcached://host:port".to_owned(),
        })?;
        Ok(Self::at(address, PATIENCE))
    }

    fn at(address: Address, patience: Duration) -> Self {
        Self(Arc::new(Inner {
            address,
            patience,
            link: Mutex::default(),
        }))
    }

    /// Returns the numbers of a node, by `ask` if no other process has asked lately.
    ///
    /// The names may hold anything; processes share what they call alike. Blocks for `PATIENCE` at
    /// most, and for as long as `ask` takes, during which nothing is held.
    pub(crate) fn numbers(
        &self,
        cluster: &str,
        node: &str,
        ask: impl FnOnce() -> Option<Numbers>,
    ) -> Option<Numbers> {
        let keys = Keys::of(cluster, node);
        let deadline = Instant::now() + self.0.patience;
        match self.visit(deadline, |memcached| find(memcached, &keys)) {
            Some(Found::Numbers(numbers)) => Some(numbers),
            Some(Found::Claimed { last }) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let asked = ask();
                if let Some(numbers) = asked {
                    let deadline = Instant::now() + left;
                    self.visit(deadline, |memcached| store(memcached, &keys, numbers));
                }
                asked.or(last)
            }
            Some(Found::Nothing) | None => ask(),
        }
    }

    /// Talks to memcached until `deadline`; `None` if it can't be talked to now.
    fn visit<T>(
        &self,
        deadline: Instant,
        talk: impl FnOnce(&mut Memcached) -> io::Result<T>,
    ) -> Option<T> {
        let mut link = self.0.link.try_lock_until(deadline)?;
        link.visit(&self.0.address, deadline, talk)
    }
}

impl fmt::Debug for SharedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStatus").finish_non_exhaustive()
    }
}

fn find(memcached: &mut Memcached, keys: &Keys) -> io::Result<Found> {
    let [fresh, last] = memcached.get([&keys.fresh, &keys.last])?;
    let [fresh, last] = [fresh, last].map(|value| Numbers::parse(&value?));
    Ok(match (fresh, last) {
        (Some(numbers), _) => Found::Numbers(numbers),
        (None, last) if memcached.add(&keys.claim, b"", CLAIM)? => Found::Claimed { last },
        (None, Some(numbers)) => Found::Numbers(numbers),
        (None, None) => Found::Nothing,
    })
}

fn store(memcached: &mut Memcached, keys: &Keys, numbers: Numbers) -> io::Result<()> {
    let value = numbers.to_string();
    memcached.set(&keys.last, value.as_bytes(), KEPT)?;
    memcached.set(&keys.fresh, value.as_bytes(), LIFE)
}

/// Where the numbers of a node are. The age of a value is left to memcached, whose clock is the
/// only one that all processes share.
struct Keys {
    /// The numbers for as long as they are fresh.
    fresh: String,
    /// The same, for longer.
    last: String,
    /// There while a process asks.
    claim: String,
}

impl Keys {
    /// A hash makes a valid key of any name, and tells nothing to whoever reads the keys.
    fn of(cluster: &str, node: &str) -> Self {
        // the separator occurs in no UTF-8
        let names = cluster.bytes().chain([0xff]).chain(node.bytes());
        let hash = fnv1a(names);
        let key = |what| format!("diesel-routed:{hash:032x}:{what}");
        Keys {
            fresh: key("fresh"),
            last: key("last"),
            claim: key("claim"),
        }
    }
}

/// The 128-bit FNV-1a hash: unlike the standard library's the same in every build.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

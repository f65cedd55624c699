//! The description of one node, and the options at the end of its connection string.

use std::fmt;

use super::error::ConfigError;
use super::url;

/// The description of one node: its connection string and how much it is used.
///
/// A `&str` or `String` converts into one. `Debug` shows the given name, the weight and the pool
/// size, never the connection string.
///
/// # Examples
///
/// ```
/// use diesel_routed::NodeConfig;
///
/// let node = NodeConfig::new("postgres://app:secret@db2/app#name=eu-1&weight=2");
/// assert_eq!(
///     format!("{node:?}"),
///     r#"NodeConfig { name: Some("eu-1"), weight: 2, pool_size: None }"#
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a node does nothing until it is part of a cluster"]
pub struct NodeConfig {
    pub(super) url: String,
    pub(super) name: Option<String>,
    pub(super) weight: u32,
    pub(super) pool_size: Option<u32>,
    /// An option in the connection string that has an impossible value.
    pub(super) rejected: Option<ConfigError>,
}

impl NodeConfig {
    /// Describes the node that this connection string leads to.
    ///
    /// PostgreSQL takes `postgres://`, `postgresql://` and the keyword form; MySQL and MariaDB
    /// `mysql://` and `mariadb://`; SQLite a path, `file:` and `sqlite://`
    /// (write `./a=b` for a file of that name). An in-memory SQLite
    /// database is accepted where there are no replicas, and is another one for each connection
    /// unless its URI has `cache=shared`.
    ///
    /// The string may end in options: `#name=eu-1&weight=2&pool_size=8`. What follows the last
    /// `#` is options only if every key is one of these three and every value consists of
    /// letters, digits, `-`, `_`, `.` and `:`; otherwise, or if it continues a password, it
    /// belongs to the string itself. A setter wins over an option.
    pub fn new(url: impl Into<String>) -> Self {
        let url: String = url.into();
        let (url, options) = split_options(url.trim());
        let mut node = NodeConfig {
            url: url.to_owned(),
            name: None,
            weight: 1,
            pool_size: None,
            rejected: None,
        };
        for (option, value) in options {
            node.set(option, value);
        }
        node
    }

    /// Names the node in logs, errors and status.
    ///
    /// Defaults to `host:port/database`, for SQLite to the name of the file.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Sets the share of reads this replica gets beside the others.
    ///
    /// With weights 2 and 1 the first gets twice as many. 0 drains a replica: it is watched but
    /// gets nothing. A primary's weight is not used. Defaults to 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Sets how many connections this node's pool holds at most.
    ///
    /// Defaults to the cluster's `pool_size` for a primary, to 2/3 of it for a replica.
    pub fn pool_size(mut self, size: u32) -> Self {
        self.pool_size = Some(size);
        self
    }

    fn set(&mut self, option: &str, value: &str) {
        let number = value.parse();
        match (option, number) {
            ("name", _) => self.name = Some(value.to_owned()),
            ("weight", Ok(weight)) => self.weight = weight,
            ("pool_size", Ok(size)) => self.pool_size = Some(size),
            _ => {
                let setting = format!("option {option} of a connection string");
                self.rejected = Some(ConfigError::invalid(setting, value, "a whole number"));
            }
        }
    }
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeConfig")
            .field("name", &self.name)
            .field("weight", &self.weight)
            .field("pool_size", &self.pool_size)
            .finish()
    }
}

impl From<&str> for NodeConfig {
    fn from(url: &str) -> Self {
        NodeConfig::new(url)
    }
}

impl From<String> for NodeConfig {
    fn from(url: String) -> Self {
        NodeConfig::new(url)
    }
}

impl From<&String> for NodeConfig {
    fn from(url: &String) -> Self {
        NodeConfig::new(url)
    }
}

/// The string without its options, and the options, of which there may be none.
///
/// libpq takes a `#` literally, so passwords and database names may contain it: every doubt is
/// decided against options, because cutting a password short could show the rest as a name.
fn split_options(url: &str) -> (&str, Vec<(&str, &str)>) {
    let Some((head, fragment)) = url.rsplit_once('#') else {
        return (url, Vec::new());
    };
    let options: Option<Vec<_>> = fragment.split('&').map(option).collect();
    match options {
        Some(options) if !ends_in_password(head) => (head.trim_end(), options),
        _ => (url, Vec::new()),
    }
}

fn option(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    let plain = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    let known = matches!(key, "name" | "weight" | "pool_size");
    (known && value.chars().all(plain)).then_some((key, value))
}

/// Whether a password in keyword form would go on after `head`. In a URI it would not: there an
/// `=` within a value must be encoded.
fn ends_in_password(head: &str) -> bool {
    let open = |(at, key): (usize, &str)| {
        let value = head[at + key.len()..].trim_start().strip_prefix('=');
        value.is_some_and(|value| !value.trim_start().contains(char::is_whitespace))
    };
    url::is_keyword_form(head) && head.match_indices("password").any(open)
}

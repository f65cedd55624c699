//! Connection strings: which forms a backend takes, where one leads, what it must not show.

mod mysql;
mod percent;
pub(super) mod postgres;
mod sqlite;

use std::net::Ipv6Addr;

use super::error::ConfigError;
use crate::statement::Dialect;

/// Where a connection string leads. No `Debug`, for it holds the string.
pub(super) struct Located {
    /// `host:port/database` or the name of a file; nothing of who goes there.
    pub(super) name: String,
    /// Equal for strings that lead to the same database of the same server.
    pub(super) identity: String,
    /// The string in the form that Diesel takes.
    pub(super) url: String,
    pub(super) visibility: Visibility,
    /// Passwords and keys, as written and decoded.
    pub(super) secrets: Vec<String>,
}

/// Which connections to a connection string see the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    All,
    /// Each has a database of its own: SQLite in memory.
    Own,
}

/// Why a connection string leads nowhere. Never holds any part of it but the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    Scheme(Option<String>),
    Malformed(&'static str),
}

const CONTROL: Trouble = Trouble::Malformed("it contains a control character");
const PORT: Trouble = Trouble::Malformed(
    "the port is not a number from 1 to 65535, in a user or password write / ? # @ : as %2F %3F %23 %40 %3A",
);
const HOST: Trouble = Trouble::Malformed(
    "the host name has impossible characters, in a user or password write / ? # @ : as %2F %3F %23 %40 %3A",
);
const DATABASE: Trouble = Trouble::Malformed(
    "the database name has an @ or /, in a user or password write / ? # @ : as %2F %3F %23 %40 %3A",
);
const BLANK: Trouble = Trouble::Malformed(
    "the database name has a blank, write it as %20, and a list of strings with a scheme before each",
);
const ESCAPE: Trouble = Trouble::Malformed("a % is not followed by two hexadecimal digits");
const PARAMETER: Trouble = Trouble::Malformed(
    "a parameter is not of the form key=value, in which = @ & are written as %3D %40 %26",
);

impl Trouble {
    pub(super) fn at(self, node: String, dialect: Dialect) -> ConfigError {
        match self {
            Trouble::Malformed(reason) => ConfigError::MalformedUrl { node, reason },
            Trouble::Scheme(scheme) => ConfigError::WrongScheme {
                node,
                scheme,
                accepted: match dialect {
                    Dialect::Postgres => "postgres://, postgresql:// or the form host=a dbname=b",
                    Dialect::Mysql => "mysql:// or mariadb://",
                    Dialect::Sqlite => "a path, file: or sqlite://",
                },
            },
        }
    }
}

/// Understands a connection string as the client library of `dialect` will, before that sees it:
/// libpq quotes what it cannot understand, passwords included.
pub(super) fn locate(dialect: Dialect, url: &str) -> Result<Located, Trouble> {
    if url.contains('\0') {
        return Err(CONTROL);
    }
    let located = match dialect {
        Dialect::Postgres => postgres::locate(url)?,
        Dialect::Mysql => mysql::locate(url)?,
        Dialect::Sqlite => sqlite::locate(url)?,
    };
    match located.name.contains(char::is_control) {
        true => Err(CONTROL),
        false => Ok(located),
    }
}

/// What precedes `://`, if that can be a scheme.
pub(super) fn scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    let valid = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(valid))
        .then_some(scheme)
}

/// Whether this begins as PostgreSQL's `key = value` pairs do.
pub(super) fn is_keyword_form(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c == '_';
    matches!(text.split_once('='), Some((key, _)) if key.trim_end().chars().all(letter))
}

/// The scheme is only shown if it can hardly be a misplaced secret.
fn wrong_scheme(url: &str) -> Trouble {
    let plain = |s: &&str| s.len() <= 12 && s.chars().all(|c| c.is_ascii_lowercase());
    Trouble::Scheme(scheme(url).filter(plain).map(str::to_owned))
}

/// A key of a connection string with its value, as written and decoded.
struct Parameter {
    key: String,
    raw: String,
    value: String,
}

impl Parameter {
    fn decoded(key: &str, raw: &str) -> Result<Self, Trouble> {
        Ok(Parameter {
            key: key.to_owned(),
            raw: raw.to_owned(),
            value: percent::decode(raw).ok_or(ESCAPE)?,
        })
    }
}

/// The parameters after a `?`.
fn query(text: &str) -> Result<Vec<Parameter>, Trouble> {
    let name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.split_once('=') {
            Some((key, raw)) if !key.is_empty() && key.chars().all(name) => {
                Parameter::decoded(key, raw)
            }
            _ => Err(PARAMETER),
        })
        .collect()
}

/// The value of `key`; the last one wins, as in libpq.
fn value<'a>(parameters: &'a [Parameter], key: &str) -> Option<&'a str> {
    let found = parameters.iter().rev().find(|p| p.key == key)?;
    Some(found.value.as_str()).filter(|value| !value.is_empty())
}

fn secrets(parameters: &[Parameter]) -> Vec<String> {
    const SECRET: [&str; 5] = ["password", "sslpassword", "key", "hexkey", "textkey"];
    parameters
        .iter()
        .filter(|p| SECRET.contains(&p.key.as_str()))
        .flat_map(|p| [p.raw.clone(), p.value.clone(), percent::encode(&p.value)])
        .filter(|secret| !secret.is_empty())
        .collect()
}

/// Splits `host:port` or `[v6]:port`; the port may be missing.
fn host_and_port(text: &str) -> Result<(&str, &str), Trouble> {
    match text.strip_prefix('[') {
        None => Ok(text.split_once(':').unwrap_or((text, ""))),
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(HOST)?;
            match port.strip_prefix(':') {
                Some(port) => Ok((host, port)),
                None if port.is_empty() => Ok((host, "")),
                None => Err(HOST),
            }
        }
    }
}

/// `host:port` as shown to users, after checking both. A socket path is left as it is.
fn shown(host: &str, port: &str, default: u16) -> Result<String, Trouble> {
    let port = match port {
        "" => default,
        _ => port.parse().ok().filter(|port| *port > 0).ok_or(PORT)?,
    };
    let host = host.to_lowercase();
    let address = host.split('%').next().unwrap_or_default();
    if address.parse::<Ipv6Addr>().is_ok() {
        return Ok(format!("[{host}]:{port}"));
    }
    if host.is_empty() {
        return Ok(format!("[local]:{port}"));
    }
    let socket = host.starts_with(['/', '@']);
    let valid = |c: char| c.is_alphanumeric() || "-_.".contains(c) || (socket && c == '/');
    match host.strip_prefix('@').unwrap_or(&host).chars().all(valid) {
        true => Ok(format!("{host}:{port}")),
        false => Err(HOST),
    }
}

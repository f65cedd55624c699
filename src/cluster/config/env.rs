//! The environment as a source of the description.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use super::error::ConfigError;
use super::{
    Affinity, ClusterConfig, ClusterMode, Consistency, Fallback, ImplicitContext, Mode,
    MonotonicReads, Role, url,
};
use crate::cluster::select::Strategy;

const PRIMARY: &str = "DATABASE_URL";
const REPLICAS: &str = "DATABASE_REPLICA_URLS";
const PREFIX: &str = "ROUTED_";

/// A variable, what it accepts, and how its value is set.
type Variable = (&'static str, &'static str, Set);
type Set = fn(ClusterConfig, &str) -> Option<ClusterConfig>;

const DURATION: &str = "a whole number with a unit, such as 500ms, 1s, 2m or 1h, or 0";
const LAG: &str = "none, or a whole number with a unit, such as 500ms, 5s, 2m or 1h";
const STRATEGIES: &str =
    "two_choices, least_loaded, round_robin, weighted_random, random or failover";
const CONSISTENCIES: &str = "session, eventual, strong, primary_preferred or max_lag=2s";
const FALLBACKS: &str = "primary, primary=8 (at once), stale or error";
const NAMES: &str = "names of functions separated by commas or white space";

const VARIABLES: &[Variable] = &[
    ("ROUTED_NAME", "a name", |c, v| Some(c.name(v))),
    (
        "ROUTED_MODE",
        "normal, primary_only or read_only",
        |c, v| Some(c.mode(cluster_mode(v)?)),
    ),
    ("ROUTED_DEFAULT_MODE", "primary or distributed", |c, v| {
        Some(c.default_mode(mode(v)?))
    }),
    ("ROUTED_STRATEGY", STRATEGIES, |c, v| {
        Some(c.strategy(strategy(v)?))
    }),
    ("ROUTED_CONSISTENCY", CONSISTENCIES, |c, v| {
        Some(c.consistency(consistency(v)?))
    }),
    ("ROUTED_AFFINITY", "block or query", |c, v| {
        Some(c.affinity(affinity(v)?))
    }),
    (
        "ROUTED_MONOTONIC_READS",
        "within_context or across_requests",
        |c, v| Some(c.monotonic_reads(monotonic_reads(v)?)),
    ),
    ("ROUTED_FALLBACK", FALLBACKS, |c, v| {
        Some(c.fallback(fallback(v)?))
    }),
    ("ROUTED_IMPLICIT_CONTEXT", "handle or forbid", |c, v| {
        Some(c.implicit_context(implicit(v)?))
    }),
    ("ROUTED_MAX_LAG", LAG, |c, v| Some(c.max_lag(max_lag(v)?))),
    ("ROUTED_STICKY_FOR", DURATION, |c, v| {
        Some(c.sticky_for(duration(v)?))
    }),
    ("ROUTED_QUARANTINE", DURATION, |c, v| {
        Some(c.quarantine(duration(v)?))
    }),
    ("ROUTED_CHECK_INTERVAL", DURATION, |c, v| {
        Some(c.check_interval(duration(v)?))
    }),
    ("ROUTED_CHECK_TTL", DURATION, |c, v| {
        Some(c.check_ttl(duration(v)?))
    }),
    ("ROUTED_SLOW_START", DURATION, |c, v| {
        Some(c.slow_start(duration(v)?))
    }),
    ("ROUTED_CATCH_UP_WAIT", DURATION, |c, v| {
        Some(c.catch_up_wait(duration(v)?))
    }),
    ("ROUTED_CONNECT_TIMEOUT", DURATION, |c, v| {
        Some(c.connect_timeout(duration(v)?))
    }),
    ("ROUTED_CHECKOUT_TIMEOUT", DURATION, |c, v| {
        Some(c.checkout_timeout(duration(v)?))
    }),
    ("ROUTED_VALIDATE_AFTER", DURATION, |c, v| {
        Some(c.validate_after(duration(v)?))
    }),
    ("ROUTED_POOL_SIZE", "a whole number, 1 or more", |c, v| {
        Some(c.pool_size(v.parse().ok()?))
    }),
    ("ROUTED_PRIMARY_FUNCTIONS", NAMES, |c, v| {
        Some(c.primary_functions(names(v)))
    }),
    ("ROUTED_REPLICA_FUNCTIONS", NAMES, |c, v| {
        Some(c.replica_functions(names(v)))
    }),
    ("ROUTED_UNKNOWN_FUNCTIONS", "primary or replica", |c, v| {
        Some(c.unknown_functions(role(v)?))
    }),
];

pub(super) fn accepted_names() -> String {
    let names: Vec<_> = VARIABLES.iter().map(|(name, ..)| *name).collect();
    names.join(", ")
}

/// Process variables first: they win over those of `.env`.
pub(super) fn from_env() -> Result<ClusterConfig, ConfigError> {
    let mut vars = Vec::new();
    for (name, value) in std::env::vars_os() {
        // What is not text cannot be one of our names.
        let Some(name) = name.to_str().filter(|name| is_ours(name)) else {
            continue;
        };
        let Ok(value) = value.into_string() else {
            return Err(ConfigError::Invalid {
                setting: name.to_owned(),
                value: "a value that is not UTF-8".to_owned(),
                accepted: "text".to_owned(),
            });
        };
        vars.push((name.to_owned(), value));
    }
    vars.extend(dotenv(dotenvy::dotenv_iter())?);
    from_vars(vars)
}

/// The variables of a `.env` file, none if there is no file.
pub(super) fn dotenv<R: Read>(
    file: dotenvy::Result<dotenvy::Iter<R>>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let lines = match file {
        Err(missing) if missing.not_found() => return Ok(Vec::new()),
        file => file.and_then(Iterator::collect),
    };
    // The cause quotes the line, which may hold a password.
    lines.map_err(|_| ConfigError::DotEnv)
}

/// The description that these variables give. The first of two equal names counts.
pub(super) fn from_vars(
    vars: impl IntoIterator<Item = (String, String)>,
) -> Result<ClusterConfig, ConfigError> {
    let mut ours = BTreeMap::new();
    for (name, value) in vars {
        if is_ours(&name) {
            ours.entry(name).or_insert(value);
        }
    }
    let primary = ours.remove(PRIMARY).unwrap_or_default();
    if primary.trim().is_empty() {
        return Err(ConfigError::NoPrimary);
    }
    let mut config = ClusterConfig::new(primary);
    for url in connection_strings(&ours.remove(REPLICAS).unwrap_or_default())? {
        config = config.replica(url);
    }
    for (name, value) in ours {
        let Some((_, accepted, set)) = VARIABLES.iter().find(|(known, ..)| *known == name) else {
            return Err(ConfigError::UnknownVariable { name });
        };
        let value = value.trim();
        if !value.is_empty() {
            config =
                set(config, value).ok_or_else(|| ConfigError::invalid(name, value, *accepted))?;
        }
    }
    Ok(config)
}

fn is_ours(name: &str) -> bool {
    name == PRIMARY || name == REPLICAS || name.starts_with(PREFIX)
}

/// Splits a list of connection strings as [`ClusterConfig::from_env`] documents.
fn connection_strings(list: &str) -> Result<Vec<&str>, ConfigError> {
    let strings: Vec<_> = list.lines().flat_map(split_line).collect();
    let joined = |url: &&&str| url::scheme(url).is_some() && url.matches("://").count() > 1;
    match strings.iter().find(joined) {
        Some(url) => Err(ConfigError::invalid(
            REPLICAS,
            url,
            "connection strings separated by white space",
        )),
        None => Ok(strings),
    }
}

fn split_line(line: &str) -> Vec<&str> {
    let mut strings = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (string, tail) = rest.split_at(end_of_first(rest));
        strings.push(string.trim_end());
        rest = tail.trim_start();
    }
    strings
}

/// Splits the argument of `establish`, in which a plain path may hold blanks: only where the next
/// word starts with a scheme.
pub(super) fn split_at_schemes(mut text: &str) -> Vec<&str> {
    let mut strings = Vec::new();
    text = text.trim();
    while !text.is_empty() {
        let blanks = text.char_indices().filter(|(_, c)| c.is_whitespace());
        let end = blanks
            .map(|(at, _)| at)
            .find(|at| has_scheme(text[*at..].trim_start()));
        let (string, rest) = text.split_at(end.unwrap_or(text.len()));
        strings.push(string.trim_end());
        text = rest.trim_start();
    }
    strings
}

/// Where the first connection string of `line` ends.
fn end_of_first(line: &str) -> usize {
    let ends_anywhere = !has_scheme(line) && !url::is_keyword_form(line);
    let blanks = line.char_indices().filter(|(_, c)| c.is_whitespace());
    let mut ends = blanks.map(|(at, _)| at);
    ends.find(|at| ends_anywhere || has_scheme(line[*at..].trim_start()))
        .unwrap_or(line.len())
}

fn has_scheme(text: &str) -> bool {
    text.starts_with("file:") || text.starts_with("sqlite:") || url::scheme(text).is_some()
}

/// Lower case with underscores, so that `Round-Robin` is understood, too.
fn word(text: &str) -> String {
    text.trim().to_lowercase().replace('-', "_")
}

fn cluster_mode(text: &str) -> Option<ClusterMode> {
    match word(text).as_str() {
        "normal" => Some(ClusterMode::Normal),
        "primary_only" => Some(ClusterMode::PrimaryOnly),
        "read_only" => Some(ClusterMode::ReadOnly),
        _ => None,
    }
}

fn mode(text: &str) -> Option<Mode> {
    match word(text).as_str() {
        "primary" => Some(Mode::Primary),
        "distributed" => Some(Mode::Distributed),
        _ => None,
    }
}

fn strategy(text: &str) -> Option<Strategy> {
    match word(text).as_str() {
        "two_choices" => Some(Strategy::TwoChoices),
        "least_loaded" => Some(Strategy::LeastLoaded),
        "round_robin" => Some(Strategy::RoundRobin),
        "weighted_random" => Some(Strategy::WeightedRandom),
        "random" => Some(Strategy::Random),
        "failover" => Some(Strategy::Failover),
        _ => None,
    }
}

fn affinity(text: &str) -> Option<Affinity> {
    match word(text).as_str() {
        "block" => Some(Affinity::Block),
        "query" => Some(Affinity::Query),
        _ => None,
    }
}

fn monotonic_reads(text: &str) -> Option<MonotonicReads> {
    match word(text).as_str() {
        "within_context" => Some(MonotonicReads::WithinContext),
        "across_requests" => Some(MonotonicReads::AcrossRequests),
        _ => None,
    }
}

fn consistency(text: &str) -> Option<Consistency> {
    if let Some((choice, lag)) = text.split_once('=') {
        return (word(choice) == "max_lag").then_some(Consistency::MaxLag(duration(lag)?));
    }
    match word(text).as_str() {
        "session" => Some(Consistency::Session),
        "eventual" => Some(Consistency::Eventual),
        "strong" => Some(Consistency::Strong),
        "primary_preferred" => Some(Consistency::PrimaryPreferred),
        _ => None,
    }
}

fn fallback(text: &str) -> Option<Fallback> {
    if let Some((choice, limit)) = text.split_once('=') {
        let max_concurrent = Some(limit.trim().parse().ok()?);
        return (word(choice) == "primary").then_some(Fallback::Primary { max_concurrent });
    }
    match word(text).as_str() {
        "primary" => Some(Fallback::default()),
        "stale" => Some(Fallback::Stale),
        "error" => Some(Fallback::Error),
        _ => None,
    }
}

fn implicit(text: &str) -> Option<ImplicitContext> {
    match word(text).as_str() {
        "handle" => Some(ImplicitContext::Handle),
        "forbid" => Some(ImplicitContext::Forbid),
        _ => None,
    }
}

fn role(text: &str) -> Option<Role> {
    match word(text).as_str() {
        "primary" => Some(Role::Primary),
        "replica" => Some(Role::Replica),
        _ => None,
    }
}

fn max_lag(text: &str) -> Option<Option<Duration>> {
    match word(text).as_str() {
        "none" => Some(None),
        _ => duration(text).map(Some),
    }
}

/// A bare number is refused: seconds to one reader are milliseconds to another.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    match unit.trim_start() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|name| !name.is_empty())
}

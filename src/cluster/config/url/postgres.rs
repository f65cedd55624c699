//! PostgreSQL's two forms: the URI and the keywords.

use std::time::Duration;

use super::{BLANK, DATABASE, HOST, Located, PARAMETER, PORT, Parameter, Trouble, Visibility};
use super::{host_and_port, is_keyword_form, percent, query, secrets, shown, value, wrong_scheme};

/// What makes a dead network known within 15 s: keepalives while waiting for an answer, the
/// timeout while sending.
const SOCKET: [(&str, &str); 4] = [
    ("keepalives_idle", "5"),
    ("keepalives_interval", "3"),
    ("keepalives_count", "3"),
    ("tcp_user_timeout", "15000"),
];

pub(super) fn locate(url: &str) -> Result<Located, Trouble> {
    let parameters = parse(url)?;
    let server = server(&parameters)?;
    let user = value(&parameters, "user");
    let database = value(&parameters, "dbname");
    // A database left out is the one named like the user, whose name is not for showing.
    let identity = format!("{server}/{}", database.or(user).unwrap_or_default());
    Ok(Located {
        name: match database {
            Some(database) => format!("{server}/{database}"),
            None => server,
        },
        identity,
        url: url.to_owned(),
        visibility: Visibility::All,
        secrets: secrets(&parameters),
    })
}

/// The string with timeouts, as far as it does not set them itself.
pub(in super::super) fn with_timeouts(url: &str, connect: Duration) -> String {
    // libpq counts whole seconds and waits for ever at 0.
    let seconds = connect.as_millis().div_ceil(1000).max(1).to_string();
    let present = parse(url).unwrap_or_default();
    let mut timed = url.to_owned();
    for (key, text) in [("connect_timeout", seconds.as_str())]
        .iter()
        .chain(&SOCKET)
    {
        if value(&present, key).is_none() {
            timed = with_parameter(&timed, key, text);
        }
    }
    timed
}

/// The string with one more parameter, which wins over an earlier one of the same name.
///
/// `url` must be one that was validated for PostgreSQL.
pub(crate) fn with_parameter(url: &str, key: &str, text: &str) -> String {
    let Some(uri) = uri(url) else {
        let quoted = text.replace('\\', r"\\").replace('\'', r"\'");
        return format!("{url} {key}='{quoted}'");
    };
    let separator = match uri.query {
        None => "?",
        Some(query) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{url}{separator}{key}={}", percent::encode(text))
}

/// The string with one more command-line option for the server (`-c name=value`).
///
/// Options that the string or `PGOPTIONS` have already stay in force.
#[cfg(feature = "postgres")]
pub(crate) fn with_option(url: &str, option: &str) -> String {
    let present = parse(url).unwrap_or_default();
    let options = match value(&present, "options") {
        Some(options) => options.to_owned(),
        None => std::env::var("PGOPTIONS").unwrap_or_default(),
    };
    with_parameter(url, "options", format!("{options} {option}").trim())
}

fn parse(url: &str) -> Result<Vec<Parameter>, Trouble> {
    match uri(url) {
        Some(uri) => uri.parameters(),
        None if is_keyword_form(url) => keywords(url),
        None => Err(wrong_scheme(url)),
    }
}

/// The parts of a URI, cut where libpq cuts.
struct Uri<'a> {
    credentials: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

fn uri(url: &str) -> Option<Uri<'_>> {
    let rest = url
        .strip_prefix("postgres://")
        .or_else(|| url.strip_prefix("postgresql://"))?;
    // Whichever comes first decides whether there are credentials, so these may hold a ? or #.
    let (credentials, rest) = match rest.find(['@', '/']) {
        Some(at) if rest[at..].starts_with('@') => (Some(&rest[..at]), &rest[at + 1..]),
        _ => (None, rest),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    Some(Uri {
        credentials,
        hosts,
        path,
        query,
    })
}

impl Uri<'_> {
    fn parameters(&self) -> Result<Vec<Parameter>, Trouble> {
        if self.hosts.contains('@') {
            return Err(HOST);
        }
        if self.path.contains(['@', '/']) {
            return Err(DATABASE);
        }
        if self.path.contains(char::is_whitespace) {
            return Err(BLANK);
        }
        let (user, password) = match self.credentials {
            Some(text) => text.split_once(':').unwrap_or((text, "")),
            None => ("", ""),
        };
        let specs: Result<Vec<_>, _> = self.hosts.split(',').map(host_and_port).collect();
        let (hosts, ports): (Vec<_>, Vec<_>) = specs?.into_iter().unzip();
        let mut parameters = vec![
            Parameter::decoded("user", user)?,
            Parameter::decoded("password", password)?,
            Parameter::decoded("host", &hosts.join(","))?,
            Parameter::decoded("port", &ports.join(","))?,
            Parameter::decoded("dbname", self.path)?,
        ];
        parameters.extend(self.query()?);
        Ok(parameters)
    }

    /// libpq is stricter than [`query`] and quotes what it refuses. An @ it takes, but where one
    /// stands here, what precedes it is likelier to be a password than a parameter.
    fn query(&self) -> Result<Vec<Parameter>, Trouble> {
        let text = self.query.unwrap_or_default();
        let pairs = match text.strip_suffix('&') {
            Some("") => return Err(PARAMETER),
            Some(pairs) => pairs,
            None => text,
        };
        let single = |pair: &str| pair.matches('=').count() == 1;
        if text.contains('@') || !(pairs.is_empty() || pairs.split('&').all(single)) {
            return Err(PARAMETER);
        }
        query(pairs)
    }
}

/// Reads `key = value` pairs, whose values may be quoted and escape with a backslash.
fn keywords(text: &str) -> Result<Vec<Parameter>, Trouble> {
    let mut parameters = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, tail) = rest.split_once('=').ok_or(PARAMETER)?;
        let key = key.trim_end();
        let name = |c: char| c.is_ascii_lowercase() || c == '_';
        if key.is_empty() || !key.chars().all(name) {
            return Err(PARAMETER);
        }
        let (value, tail) = keyword_value(tail.trim_start())?;
        parameters.push(Parameter {
            key: key.to_owned(),
            raw: value.clone(),
            value,
        });
        rest = tail.trim_start();
    }
    Ok(parameters)
}

fn keyword_value(text: &str) -> Result<(String, &str), Trouble> {
    let (quoted, text) = match text.strip_prefix('\'') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            c if !quoted && c.is_ascii_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    match quoted {
        true => Err(Trouble::Malformed("a quote is not closed")),
        false => Ok((value, "")),
    }
}

/// `host:port`, or several with commas between, as libpq tries them in order.
fn server(parameters: &[Parameter]) -> Result<String, Trouble> {
    let hosts = value(parameters, "host").or_else(|| value(parameters, "hostaddr"));
    let hosts: Vec<_> = hosts.unwrap_or_default().split(',').collect();
    let ports: Vec<_> = value(parameters, "port")
        .unwrap_or_default()
        .split(',')
        .collect();
    if ports.len() != 1 && ports.len() != hosts.len() {
        return Err(PORT);
    }
    let port = |i: usize| ports[i.min(ports.len() - 1)].trim();
    let shown: Result<Vec<_>, _> = hosts
        .iter()
        .enumerate()
        .map(|(i, host)| shown(host, port(i), 5432))
        .collect();
    Ok(shown?.join(","))
}

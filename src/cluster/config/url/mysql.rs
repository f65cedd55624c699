//! The URL of MySQL and MariaDB, as Diesel reads it.

use super::{BLANK, DATABASE, Located, Parameter, Trouble, Visibility};
use super::{host_and_port, query, secrets, shown, value, wrong_scheme};

pub(super) fn locate(url: &str) -> Result<Located, Trouble> {
    let rest = url
        .strip_prefix("mysql://")
        .or_else(|| url.strip_prefix("mariadb://"))
        .ok_or_else(|| wrong_scheme(url))?;
    if rest.contains('#') {
        return Err(Trouble::Malformed("a # must be written as %23"));
    }
    let (before, after) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = before.split_once('/').unwrap_or((before, ""));
    let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if database.contains(['@', '/']) {
        return Err(DATABASE);
    }
    if database.contains(char::is_whitespace) {
        return Err(BLANK);
    }
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut parameters = vec![
        Parameter::decoded("user", user)?,
        Parameter::decoded("password", password)?,
    ];
    parameters.extend(query(after)?);

    let (host, port) = host_and_port(host)?;
    let host = if host.is_empty() { "localhost" } else { host };
    let server = match value(&parameters, "unix_socket") {
        Some(socket) if host == "localhost" => socket.to_owned(),
        _ => shown(host, port, 3306)?,
    };
    let name = match database {
        "" => server,
        _ => format!("{server}/{database}"),
    };
    Ok(Located {
        identity: name.clone(),
        name,
        url: format!("mysql://{rest}"),
        visibility: Visibility::All,
        secrets: secrets(&parameters),
    })
}

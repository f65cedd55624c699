//! SQLite's paths and URIs.

use super::{Located, Trouble, Visibility};
use super::{is_keyword_form, percent, query, scheme, secrets, value, wrong_scheme};

pub(super) fn locate(url: &str) -> Result<Located, Trouble> {
    let uri = ["sqlite://", "sqlite:", "file:"]
        .iter()
        .find_map(|prefix| url.strip_prefix(prefix));
    let Some(uri) = uri else {
        return plain(url);
    };
    // Diesel itself turns sqlite:// into file:, but does not know sqlite:.
    let dialled = if url.starts_with("file:") {
        url.to_owned()
    } else {
        format!("file:{uri}")
    };
    let (uri, _) = uri.split_once('#').unwrap_or((uri, ""));
    let (path, after) = uri.split_once('?').unwrap_or((uri, ""));
    let path = percent::decode(path).ok_or(super::ESCAPE)?;
    let parameters = query(after)?;
    let in_memory =
        path.is_empty() || path == ":memory:" || value(&parameters, "mode") == Some("memory");
    let shared = value(&parameters, "cache") == Some("shared");
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => &path,
    };
    let located = at(path, dialled)?;
    Ok(Located {
        identity: match in_memory {
            true => format!("memory {}", located.identity),
            false => located.identity,
        },
        visibility: match in_memory && !shared {
            true => Visibility::Own,
            false => Visibility::All,
        },
        secrets: secrets(&parameters),
        ..located
    })
}

fn plain(path: &str) -> Result<Located, Trouble> {
    if scheme(path).is_some() || is_keyword_form(path) {
        return Err(wrong_scheme(path));
    }
    let mut located = at(path, path.to_owned())?;
    if path == ":memory:" {
        located.visibility = Visibility::Own;
    }
    Ok(located)
}

/// A name like the credentials of a server is refused, for names are shown.
fn at(path: &str, url: String) -> Result<Located, Trouble> {
    let name = match path {
        "" => "temporary",
        _ => path.rsplit(['/', '\\']).next().unwrap_or(path),
    };
    let credentials = |(_, rest): (&str, &str)| rest.contains('@');
    if name.split_once(':').is_some_and(credentials) {
        return Err(Trouble::Malformed("it is a server's, with credentials"));
    }
    if name.is_empty() {
        return Err(Trouble::Malformed("it leads to a directory, not to a file"));
    }
    Ok(Located {
        name: name.to_owned(),
        identity: path.strip_prefix("./").unwrap_or(path).to_owned(),
        url,
        visibility: Visibility::All,
        secrets: Vec::new(),
    })
}

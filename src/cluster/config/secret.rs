//! Keeps connection strings and passwords out of what others print.

use super::url;
use crate::statement::Dialect;

const HIDDEN: &str = "***";

/// The text of a foreign error without `url`, its password and its keys.
///
/// `node` names the node to which `url` leads. A malformed `url` loses the whole text, because
/// client libraries quote whatever part they failed to understand. So does a secret of less than
/// four characters: putting asterisks in its place would spell it out.
pub(crate) fn scrub(text: &str, dialect: Dialect, node: &str, url: &str) -> String {
    let Ok(located) = url::locate(dialect, url) else {
        return format!("the connection string of node {node} is malformed");
    };
    let mut secrets = located.secrets;
    secrets.retain(|secret| text.contains(secret.as_str()));
    if secrets.iter().any(|secret| secret.chars().count() < 4) {
        return format!("node {node} failed, the text of the error would show its password");
    }
    secrets.extend([located.url, url.to_owned()]);
    secrets.retain(|secret| !secret.is_empty());
    // The longest first: a secret may be part of another, and all are part of the URL.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let hide = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
    secrets.iter().fold(text.to_owned(), hide)
}

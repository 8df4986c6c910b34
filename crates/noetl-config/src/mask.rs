//! Form in which values are shown.

use crate::kind::{Kind, ParsedValue};
use crate::secret::MASK;
use crate::setting::{Secrecy, Setting};

/// Returns a value as text that may be shown.
pub(crate) fn shown(setting: &Setting, value: &ParsedValue) -> String {
    let text = text(setting, value);
    match setting.secrecy {
        Secrecy::Open => text,
        Secrecy::Secret => MASK.to_owned(),
        Secrecy::Url => url(&text),
    }
}

fn text(setting: &Setting, value: &ParsedValue) -> String {
    match value {
        ParsedValue::Text(text) => text.clone(),
        ParsedValue::Number(number) => number.to_string(),
        ParsedValue::Duration(duration) => match setting.kind {
            Kind::Millis { .. } => duration.as_millis().to_string(),
            _ => duration.as_secs().to_string(),
        },
        ParsedValue::Switch(on) => on.to_string(),
        ParsedValue::List(items) => items.join(","),
        ParsedValue::Path(path) => path.to_string_lossy().into_owned(),
        ParsedValue::Ip(ip) => ip.to_string(),
        ParsedValue::Socket(address) => address.to_string(),
    }
}

/// Masks user, password, and query of a URL, or of several separated by commas. A text of another
/// form is masked as a whole, because any part of it may be a password.
fn url(text: &str) -> String {
    // `db:` is the database, as a place for results.
    if text.starts_with("sqlite:") || text == "db:" {
        return text.to_owned();
    }
    let Some((scheme, rest)) = text.split_once("://") else { return MASK.to_owned() };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.chars().all(is_scheme) {
        return MASK.to_owned();
    }
    let (place, query) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    // The last `@` may end a password with `?`, or be part of a password in the query.
    if query.is_some_and(|query| query.contains('@')) {
        return format!("{scheme}://{MASK}");
    }
    // A password may contain every other separator, so all up to the last `@` is masked.
    let (user, place) = match place.rsplit_once('@') {
        Some((_, place)) => (format!("{MASK}@"), place),
        None => (String::new(), place),
    };
    let query = if query.is_some() { format!("?{MASK}") } else { String::new() };
    format!("{scheme}://{user}{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_with_a_url_is_masked() {
        for setting in crate::Options::settings() {
            let is_url = |word: &str| word.trim_matches('`').contains("://") || word == "URL";
            let has_url = setting.name().ends_with("url")
                || setting.name().ends_with("endpoint")
                || setting.about.split_whitespace().any(is_url) && setting.kind == Kind::Text;
            assert!(!has_url || setting.is_secret(), "{}", setting.key);
        }
    }

    #[test]
    fn urls_are_shown_without_user_password_and_query() {
        for (given, shown) in [
            ("sqlite://a.db", "sqlite://a.db"),
            ("postgres://db/noetl", "postgres://db/noetl"),
            ("postgres://ada:hunter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://ada:hun@ter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://ada:hun/ter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://ada:hun/?ter2@db/noetl", "postgres://********"),
            ("postgres://ada:hun#ter2@db/noetl", "postgres://********"),
            ("postgres://db/noetl?user=ada&password=hun@ter2", "postgres://********"),
            ("postgres://ada:hunter2@db/x?password=hun@ter2", "postgres://********"),
            ("postgres://ada@db/x?password=hunter2", "postgres://********@db/x?********"),
            ("http://ada:hunter2@host:8082/api", "http://********@host:8082/api"),
            ("http://host:8082", "http://host:8082"),
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("file:///srv/results", "file:///srv/results"),
            ("db:", "db:"),
            ("postgres://db/noetl?password=hunter2", "postgres://db/noetl?********"),
            ("nats://hunter2@a:1,nats://hunter2@b:2", "nats://********@b:2"),
            ("hunter2", MASK),
            ("ada:hunter2://x", MASK),
        ] {
            assert_eq!(url(given), shown, "{given}");
        }
    }
}

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
    if text.starts_with("sqlite:") {
        return text.to_owned();
    }
    let Some((scheme, rest)) = text.split_once("://") else { return MASK.to_owned() };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.chars().all(is_scheme) {
        return MASK.to_owned();
    }
    // A password may contain every separator, so all up to the last `@` is masked.
    let (user, place) = match rest.rsplit_once('@') {
        Some((_, place)) => (format!("{MASK}@"), place),
        None => (String::new(), rest),
    };
    match place.split_once(['?', '#']) {
        Some((place, _)) => format!("{scheme}://{user}{place}?{MASK}"),
        None => format!("{scheme}://{user}{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_user_password_and_query() {
        for (given, shown) in [
            ("sqlite://a.db", "sqlite://a.db"),
            ("postgres://db/noetl", "postgres://db/noetl"),
            ("postgres://ada:hunter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://ada:hun@ter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://ada:hun/?ter2@db/noetl", "postgres://********@db/noetl"),
            ("postgres://db/noetl?password=hunter2", "postgres://db/noetl?********"),
            ("nats://hunter2@a:1,nats://hunter2@b:2", "nats://********@b:2"),
            ("hunter2", MASK),
            ("ada:hunter2://x", MASK),
        ] {
            assert_eq!(url(given), shown, "{given}");
        }
    }
}

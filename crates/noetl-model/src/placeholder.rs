//! Placeholders that replace redacted secrets: `«secret:alias.field»` where values are shown, and
//! `«secret:alias.field~1.MAC»`, with a tag, in the event log.
//!
//! A tag consists of a key ID and a message authentication code. The control plane creates and
//! verifies tags; this module defines only their format. Code that shows a value to users removes
//! the tags first.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Failure, Map, Value};

const BEGIN: &str = "«secret:";
const END: char = '»';
const QUOTE: char = '«';

/// Replaces the start of a placeholder in text received from outside.
const DEFUSED: &str = "‹secret:";

/// Separates the name from the tag.
const TAG: char = '~';

/// Maximum length in bytes of a name that is parsed. Real names are far shorter.
const NAME_MAX: usize = 1024;

/// Maximum length of a placeholder in bytes.
pub const TEXT_MAX: usize = NAME_MAX + 64;

/// Length of a MAC in a tag: 128 bits in base64 without padding.
pub const MAC_CHARS: usize = 22;

/// Maximum number of digits in a key ID.
const KEY_DIGITS: usize = 4;

/// Returns the placeholder of a field for display. It never resolves to a secret.
pub fn shown(alias: &str, field: &str) -> String {
    let plain = |text: &str| text.replace([QUOTE, END], "_");
    format!("{BEGIN}{}.{}{END}", plain(alias), plain(field))
}

/// Returns the placeholder of a field with a tag, or `None` if it could not be parsed back.
pub fn tagged(alias: &str, field: &str, tag: &Tag) -> Option<String> {
    let is_plain = |text: &str| !text.is_empty() && !text.contains([QUOTE, END]);
    let fits = alias.len() + field.len() < NAME_MAX;
    (fits && is_plain(alias) && is_plain(field))
        .then(|| format!("{BEGIN}{alias}.{field}{TAG}{}.{}{END}", tag.key, tag.mac))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// ID of the key that created the MAC.
    pub key: u32,
    /// MAC in URL-safe base64, [`MAC_CHARS`] long.
    pub mac: String,
}

/// A placeholder found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Byte range in the text.
    pub range: Range<usize>,
    /// Alias and field, separated by a dot. Either may contain dots.
    pub name: String,
    /// Authentication tag, if present.
    pub tag: Option<Tag>,
}

impl Placeholder {
    /// Returns the possible splits of the name into alias and field, longest alias first.
    pub fn readings(&self) -> impl Iterator<Item = (&str, &str)> {
        let dots: Vec<usize> = self.name.match_indices('.').map(|(at, _)| at).rev().collect();
        dots.into_iter().map(|at| (&self.name[..at], &self.name[at + 1..]))
    }
}

/// Returns the placeholders in a text, with and without tags, in order.
pub fn placeholders_in(text: &str) -> Vec<Placeholder> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN).map(|offset| at + offset) {
        let name = begin + BEGIN.len();
        at = name;
        let Some(length) = text[name..].find([END, QUOTE]) else { break };
        let (end, is_whole) = (name + length, text[name + length..].starts_with(END));
        let inside = &text[name..end];
        let (plain, tag) = split(inside);
        if is_whole && plain.len() <= NAME_MAX {
            at = end + END.len_utf8();
            found.push(Placeholder { range: begin..at, name: plain.to_owned(), tag });
        }
    }
    found
}

/// Splits the inner text of a placeholder into name and tag.
fn split(inside: &str) -> (&str, Option<Tag>) {
    let none = (inside, None);
    let Some((name, tag)) = inside.rsplit_once(TAG) else { return none };
    let Some((key, mac)) = tag.split_once('.') else { return none };
    let is_key = (1..=KEY_DIGITS).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_digit());
    let is_mac = mac.len() == MAC_CHARS
        && mac.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match key.parse() {
        Ok(key) if is_key && is_mac => (name, Some(Tag { key, mac: mac.to_owned() })),
        _ => none,
    }
}

/// Returns `true` if a key or text in `value` contains a placeholder with a tag.
pub fn has_tag(value: &Value) -> bool {
    match value {
        Value::String(text) => text_has_tag(text),
        Value::Array(items) => items.iter().any(has_tag),
        Value::Object(map) => map_has_tag(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` if a key or text in `map` contains a placeholder with a tag.
pub fn map_has_tag(map: &Map) -> bool {
    map.iter().any(|(key, value)| text_has_tag(key) || has_tag(value))
}

/// Returns `true` if a text contains a placeholder with a tag.
pub fn text_has_tag(text: &str) -> bool {
    text.contains(BEGIN) && placeholders_in(text).iter().any(|found| found.tag.is_some())
}

/// Returns a text with the tags of its placeholders removed. Matches the prefix case-insensitively,
/// because a template may have changed its case. Does not copy a text without tags.
pub fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains(QUOTE) {
        return Cow::Borrowed(text);
    }
    let (mut made, mut from) = (String::new(), 0);
    for (begin, _) in text.match_indices(QUOTE) {
        let head = text.get(begin..begin + BEGIN.len());
        if !head.is_some_and(|head| head.eq_ignore_ascii_case(BEGIN)) {
            continue;
        }
        let name = begin + BEGIN.len();
        let Some(length) = text[name..].find([END, QUOTE]) else { break };
        let end = name + length;
        let mut plain = &text[name..end];
        // A name may itself end in the form of a tag.
        while let (shorter, Some(_)) = split(plain) {
            plain = shorter;
        }
        if plain.len() < length && text[end..].starts_with(END) {
            made.push_str(&text[from..name + plain.len()]);
            from = end;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    made.push_str(&text[from..]);
    Cow::Owned(made)
}

/// Removes the tags of all placeholders in a value.
pub fn remove_tags(value: &mut Value) {
    edit(value, &mut |text| match without_tags(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    });
}

/// Removes the tags of all placeholders in a map.
pub fn remove_tags_in(map: &mut Map) {
    edit_map(map, &mut |text| match without_tags(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    });
}

/// Replaces the start of every placeholder in a value, so that external data cannot pass for a
/// redacted secret.
pub fn defuse(value: &mut Value) {
    edit(value, &mut |text| text.contains(BEGIN).then(|| text.replace(BEGIN, DEFUSED)));
}

/// Replaces the start of every placeholder in a failure.
pub fn defuse_failure(failure: &mut Failure) {
    if failure.message.contains(BEGIN) {
        failure.message = failure.message.replace(BEGIN, DEFUSED);
    }
    if let Some(details) = &mut failure.details {
        defuse(details);
    }
}

/// Replaces each text and key in a value for which `change` returns a new text.
pub fn edit(value: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| edit(item, change)),
        Value::Object(map) => edit_map(map, change),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces each text and key in a map for which `change` returns a new text.
pub fn edit_map(map: &mut Map, change: &mut dyn FnMut(&str) -> Option<String>) {
    map.values_mut().for_each(|value| edit(value, change));
    let changed: Vec<Option<String>> = map.keys().map(|key| change(key)).collect();
    if changed.iter().any(Option::is_some) {
        let entries = std::mem::take(map).into_iter().zip(changed);
        *map = entries.map(|((key, value), changed)| (changed.unwrap_or(key), value)).collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::FailureKind;

    fn tag() -> Tag {
        Tag { key: 1, mac: "Zm9vYmFyYmF6cXV4-_0123".to_owned() }
    }

    fn with_tag(alias: &str, field: &str) -> String {
        tagged(alias, field, &tag()).expect("it can be read back")
    }

    #[test]
    fn placeholders_are_read_with_every_way_to_split_their_name() {
        let text = format!("a {} b {}", with_tag("my.api", "x.y"), shown("b", "token"));
        let found = placeholders_in(&text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].tag, Some(tag()));
        let readings: Vec<_> = found[0].readings().collect();
        assert_eq!(readings, [("my.api.x", "y"), ("my.api", "x.y"), ("my", "api.x.y")]);
        assert_eq!(found[1].readings().collect::<Vec<_>>(), [("b", "token")]);
        assert_eq!(found[1].tag, None);
        for none in ["«secret:", "«secret:a", "«secret:a«secret:b", "secret:a.b»", "»«"] {
            assert_eq!(placeholders_in(none), [], "{none}");
        }
        assert_eq!(placeholders_in(&format!("«secret:{}»", "x".repeat(5000))), []);
        assert_eq!(placeholders_in("«secret:«secret:a.b»").len(), 1);
    }

    #[test]
    fn a_tag_is_removed_and_every_other_text_stays_as_it_is() {
        let whole = format!("<{}|{}>", with_tag("a", "b"), with_tag("c~1", "d"));
        assert_eq!(without_tags(&whole), "<«secret:a.b»|«secret:c~1.d»>");
        let upper = with_tag("a", "b").to_uppercase();
        assert_eq!(without_tags(&upper), "«SECRET:A.B»", "a template may change the case");
        for same in ["", "«secret:a.b»", "«secret:a.b~1.short»", "«a~1.Zm9v»", "é«", "«secret:a~"]
        {
            assert!(matches!(without_tags(same), Cow::Borrowed(text) if text == same), "{same}");
        }
        let mut value = json!({with_tag("k", "v"): [with_tag("a", "b"), 1, null]});
        assert!(has_tag(&value));
        remove_tags(&mut value);
        assert_eq!(value, json!({"«secret:k.v»": ["«secret:a.b»", 1, null]}));
        assert!(!has_tag(&value));
    }

    #[test]
    fn a_name_that_could_not_be_read_back_gets_no_tag() {
        for (alias, field) in [("a»", "b"), ("a", "«"), ("", "b"), ("a", "")] {
            assert_eq!(tagged(alias, field, &tag()), None, "{alias}.{field}");
        }
        assert_eq!(tagged(&"x".repeat(NAME_MAX), "y", &tag()), None);
        assert_eq!(shown("a»", "b"), "«secret:a_.b»");
    }

    #[test]
    fn a_placeholder_from_outside_is_defused() {
        let mut value = json!({"a": ["«secret:api.token»"], "«secret:k.v»": "«other»"});
        defuse(&mut value);
        assert_eq!(value, json!({"a": ["‹secret:api.token»"], "‹secret:k.v»": "«other»"}));
        let mut failure = Failure::new(FailureKind::Auth, "no «secret:a.b»")
            .with_details(json!({"b": "«secret:a.b»"}));
        defuse_failure(&mut failure);
        assert!(placeholders_in(&failure.message).is_empty());
        assert_eq!(failure.details.as_deref(), Some(&json!({"b": "‹secret:a.b»"})));
    }

    proptest! {
        #[test]
        fn no_text_keeps_a_tag(parts in prop::collection::vec("(«|»|~|secret:|SECRET:|a\\.b|1\\.|[a-zA-Z]{22}| ){1,6}", 0..6)) {
            let text = parts.concat() + &with_tag("a", "b") + &parts.concat();
            let made = without_tags(&text);
            prop_assert!(!text_has_tag(&made), "{}", made);
        }
    }
}

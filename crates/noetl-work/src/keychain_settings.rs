//! Reads the settings of keychain entries. Used by the control plane and by workers.

use noetl_model::{Map, Value};

/// Keys that may name the stored credential of an entry.
const ALIAS_KEYS: [&str; 4] = ["credential", "auth", "key", "alias"];

/// Keys that may contain a token.
const TOKEN_KEYS: [&str; 4] = ["token", "access_token", "bearer_token", "value"];

/// Keys that may contain literal fields.
const LITERAL_KEYS: [&str; 3] = ["map", "data", "values"];

/// Normalizes a kind for comparison: lower case, with underscores for hyphens.
pub fn kind(written: &str) -> String {
    written.to_ascii_lowercase().replace('-', "_")
}

/// Returns the credential that an entry names.
pub fn alias(settings: &Map) -> Option<&str> {
    ALIAS_KEYS.iter().find_map(|key| match settings.get(*key) {
        Some(Value::String(alias)) if !alias.trim().is_empty() => Some(alias.trim()),
        Some(Value::Object(spec)) => text(spec, "credential").or_else(|| text(spec, "key")),
        _ => None,
    })
}

/// Returns the literal fields of an entry.
pub fn literal(settings: &Map) -> Option<&Map> {
    LITERAL_KEYS.iter().find_map(|key| settings.get(*key))?.as_object()
}

/// Returns the token in settings or fields.
pub fn token(fields: &Map) -> Option<&str> {
    TOKEN_KEYS.iter().find_map(|key| text(fields, key))
}

/// Inserts a token under the keys that templates read.
pub fn put_token(fields: &mut Map, token: &str) {
    for key in ["token", "access_token"] {
        fields.insert(key.to_owned(), token.into());
    }
}

/// Returns a string value, unless it is empty.
pub fn text<'m>(map: &'m Map, key: &str) -> Option<&'m str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the name of an entry in placeholders and in the audit.
pub fn label(name: &str) -> String {
    format!("keychain.{name}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map {
        value.as_object().cloned().expect("a map")
    }

    #[test]
    fn a_credential_may_be_named_in_several_forms() {
        for (settings, expected) in [
            (json!({"credential": " pg "}), Some("pg")),
            (json!({"auth": {"credential": "pg"}}), Some("pg")),
            (json!({"auth": {"key": "pg"}}), Some("pg")),
            (json!({"credential": " ", "alias": "pg"}), Some("pg")),
            (json!({"credential": 7}), None),
            (json!({}), None),
        ] {
            assert_eq!(alias(&map(settings.clone())), expected, "{settings}");
        }
    }

    #[test]
    fn a_token_is_the_first_text_that_is_not_empty() {
        let fields =
            map(json!({"token": "", "access_token": 7, "value": "v", "bearer_token": "b"}));
        assert_eq!(token(&fields), Some("b"));
        assert_eq!(token(&Map::new()), None);
        let mut made = Map::new();
        put_token(&mut made, "t");
        assert_eq!(Value::Object(made), json!({"token": "t", "access_token": "t"}));
    }

    #[test]
    fn fields_that_are_spelled_out_are_a_map() {
        assert_eq!(literal(&map(json!({"data": {"a": 1}}))), Some(&map(json!({"a": 1}))));
        assert_eq!(literal(&map(json!({"map": 1, "data": {"a": 1}}))), None);
    }
}

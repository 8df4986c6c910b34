//! Parses entries of a Redis stream and converts them to messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::{Map, Value as Json};
use redis::Value;

use super::settings::RedisSettings;
use crate::source::Message;

/// An entry of a stream. `fields` is `None` if the entry was deleted from the stream.
#[derive(Debug, PartialEq)]
pub(super) struct RedisEntry {
    pub(super) id: String,
    fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl RedisEntry {
    /// Returns the total size of the field names and values in bytes.
    pub(super) fn bytes(&self) -> usize {
        let fields = self.fields.iter().flatten();
        fields.map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Converts the entry to a message. Returns `None` for a deleted entry.
    pub(super) fn message(self, settings: &RedisSettings) -> Option<Message> {
        let fields = self.fields?;
        let stream = &settings.stream;
        let mut metadata = Map::new();
        metadata.insert("stream".to_owned(), Json::from(stream.as_str()));
        metadata.insert("group".to_owned(), Json::from(settings.group.as_str()));
        metadata.insert("entry".to_owned(), Json::from(self.id.as_str()));
        let mut message = Message {
            id: format!("{stream}:{}", self.id),
            body: bytes::Bytes::new(),
            headers: Vec::new(),
            attributes: Map::new(),
            metadata,
            ack_id: Some(self.id),
        };
        let Some(body) = &settings.body else {
            let whole: Map = fields
                .into_iter()
                .map(|(name, value)| (text(name), Json::from(text(value))))
                .collect();
            message.body = Json::Object(whole.clone()).to_string().into();
            message.attributes = whole;
            return Some(message);
        };
        for (name, value) in fields {
            let name = text(name);
            if name == *body {
                message.body = value.into();
                continue;
            }
            let value = text(value);
            message.attributes.insert(name.clone(), Json::from(value.as_str()));
            message.headers.push((name, value));
        }
        Some(message)
    }
}

/// Returns bytes as text if they are UTF-8, else as Base64.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| STANDARD.encode(error.as_bytes()))
}

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Map(pairs) => {
            pairs.into_iter().map(|(name, value)| Value::Array(vec![name, value])).collect()
        }
        _ => Vec::new(),
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
}

/// Parses the response of XREADGROUP for a single stream.
pub(super) fn of_streams(response: Value) -> Vec<RedisEntry> {
    let Some(stream) = items(response).into_iter().next() else { return Vec::new() };
    let Some(entries) = items(stream).into_iter().nth(1) else { return Vec::new() };
    items(entries).into_iter().filter_map(entry).collect()
}

/// Parses the response of XAUTOCLAIM. Returns the ID to continue from, and the entries.
pub(super) fn of_claim(response: Value) -> (String, Vec<RedisEntry>) {
    let mut parts = items(response).into_iter();
    let next = parts.next().and_then(bytes).map(text);
    let claimed = parts.next().map(items).unwrap_or_default();
    let entries = claimed.into_iter().filter_map(entry).collect();
    (next.unwrap_or_else(|| "0-0".to_owned()), entries)
}

fn entry(value: Value) -> Option<RedisEntry> {
    let mut parts = items(value).into_iter();
    let id = text(bytes(parts.next()?)?);
    let fields = match parts.next() {
        Some(Value::Array(flat)) => {
            let mut flat = flat.into_iter();
            let mut fields = Vec::new();
            while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
                fields.push((bytes(name)?, bytes(value)?));
            }
            Some(fields)
        }
        _ => None,
    };
    Some(RedisEntry { id, fields })
}

/// Returns a group's backlog from the response of XINFO GROUPS: lag plus pending entries, or `None`
/// if the server cannot determine it.
pub(super) fn waiting(response: Value, group: &str) -> Option<u64> {
    for group_info in items(response) {
        let mut fields = std::collections::HashMap::new();
        let mut flat = match group_info {
            Value::Map(pairs) => {
                pairs.into_iter().flat_map(|(name, value)| [name, value]).collect()
            }
            other => items(other),
        }
        .into_iter();
        while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
            fields.insert(text(bytes(name)?), value);
        }
        let name = fields.remove("name").and_then(bytes);
        if name.is_some_and(|name| name == group.as_bytes()) {
            let number = |value: Option<Value>| match value {
                Some(Value::Int(number)) => u64::try_from(number).ok(),
                _ => None,
            };
            let (lag, pending) = (number(fields.remove("lag")), number(fields.remove("pending")));
            return Some(lag?.saturating_add(pending?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn an_entry_that_was_deleted_has_no_fields() {
        let whole = Value::Array(vec![bulk("1-0"), Value::Array(vec![bulk("a"), bulk("b")])]);
        let gone = Value::Array(vec![bulk("2-0"), Value::Nil]);
        let response =
            Value::Array(vec![Value::Array(vec![bulk("s"), Value::Array(vec![whole, gone])])]);
        let entries = of_streams(response);
        assert_eq!(entries[0].fields, Some(vec![(b"a".to_vec(), b"b".to_vec())]));
        assert_eq!((entries[1].id.as_str(), &entries[1].fields), ("2-0", &None));
        assert_eq!((entries[0].bytes(), entries[1].bytes()), (2, 0));
    }

    #[test]
    fn malformed_responses_are_empty() {
        let strange = [
            Value::Nil,
            Value::Okay,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![Value::Array(vec![bulk("s")])]),
            Value::Array(vec![Value::Array(vec![bulk("s"), Value::Array(vec![Value::Nil])])]),
        ];
        for response in strange {
            assert_eq!(of_streams(response.clone()), []);
            assert_eq!(waiting(response.clone(), "g"), None);
            of_claim(response);
        }
    }
}

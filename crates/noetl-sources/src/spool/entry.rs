//! Serialization of a spool entry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use noetl_model::{Map, Value};
use noetl_playbook::subscription::{Ordering, Spool, headers_by_name};
use serde_json::json;

use crate::source::Message;

/// Returns the name of an entry: below its subscription, sorted by number.
pub(super) fn name(prefix: &str, number: u64) -> String {
    format!("{prefix}/{number:020}")
}

pub(super) fn number_of(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok()
}

pub(super) fn write(message: &Message, at: u64) -> Vec<u8> {
    let entry = json!({
        "id": message.id,
        "kept_at": at,
        "headers": message.headers,
        "attributes": message.attributes,
        "metadata": message.metadata,
        "body": STANDARD.encode(&message.body),
    });
    // Serializing a `Value` cannot fail.
    serde_json::to_vec(&entry).unwrap_or_default()
}

/// Parses an entry. Returns its message and the time it was spooled, in microseconds.
pub(super) fn read(text: &[u8]) -> Result<(Message, u64), String> {
    let mut entry: Map = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let missing = |name: &str| format!("it has no '{name}'");
    let mut map = |name: &str| match entry.remove(name) {
        Some(Value::Object(map)) => Ok(map),
        _ => Err(missing(name)),
    };
    let (attributes, metadata) = (map("attributes")?, map("metadata")?);
    let headers = entry.remove("headers").ok_or_else(|| missing("headers"))?;
    let headers = serde_json::from_value(headers).map_err(|error| error.to_string())?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).ok_or_else(|| missing(name));
    let body = STANDARD.decode(text("body")?).map_err(|error| error.to_string())?;
    let at = entry.get("kept_at").and_then(Value::as_u64).ok_or_else(|| missing("kept_at"))?;
    let id = text("id")?.to_owned();
    let body = Bytes::from(body);
    Ok((Message { id, body, headers, attributes, metadata, ack_id: None }, at))
}

/// Returns an entry that cannot be parsed as a message, to be dead-lettered.
pub(super) fn damaged(name: &str, text: Vec<u8>) -> Message {
    Message {
        id: name.to_owned(),
        body: Bytes::from(text),
        headers: Vec::new(),
        attributes: Map::new(),
        metadata: Map::new(),
        ack_id: None,
    }
}

/// Returns the ordering key of a message. Messages with equal keys stay in order; `None` applies to
/// all messages when the order is global.
pub(crate) fn key_of_order(spool: &Spool, message: &Message) -> Option<String> {
    match spool.ordering {
        Ordering::Global => None,
        Ordering::None => Some(message.id.clone()),
        Ordering::PerKey => {
            let name = spool.ordering_key.as_deref().unwrap_or_default();
            let name = name.rsplit('.').next().unwrap_or_default();
            let headers = headers_by_name(&message.headers);
            let header = headers.into_iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
            let value_in = |map: &Map| map.get(name).map(ToString::to_string);
            let key = header.map(|(_, value)| value.to_string());
            let key = key.or_else(|| value_in(&message.attributes));
            let key = key.or_else(|| value_in(&message.metadata)).or_else(|| {
                let body: Value = serde_json::from_slice(&message.body).ok()?;
                body.get(name).map(ToString::to_string)
            });
            // Messages without a key share one.
            Some(key.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            id: "m1".to_owned(),
            body: Bytes::from_static(b"{\"shop\": 7}\xff"),
            headers: vec![("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())],
            attributes: Map::from_iter([("x".to_owned(), Value::from(1))]),
            metadata: Map::from_iter([("subject".to_owned(), Value::from("s"))]),
            ack_id: Some("gone with its delivery".to_owned()),
        }
    }

    #[test]
    fn a_spooled_message_survives_a_round_trip() {
        let (read, at) = read(&write(&message(), 17)).expect("an entry");
        assert_eq!((read, at), (Message { ack_id: None, ..message() }, 17));
        for wrong in [&b""[..], b"{}", b"[]", b"{\"attributes\": {}, \"metadata\": {}}"] {
            assert!(super::read(wrong).is_err());
        }
    }

    #[test]
    fn names_sort_by_their_numbers() {
        let names: Vec<String> = [1, 9, 10, 1_700_000_000_000_000].map(|n| name("7", n)).into();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(number_of(&names[3]), Some(1_700_000_000_000_000));
        assert_eq!(number_of("7/x"), None);
    }
}

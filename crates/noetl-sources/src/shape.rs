//! Converts a message to the payload of an execution.
//!
//! The payload contains the message, its origin, and, at the top level, the part of the message
//! that the document selects. Fields from the message never replace fields that the runtime sets.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::{DEPTH_MAX, Map, SubscriptionId, Value, is_deeper_than};
use noetl_playbook::subscription::Subscription;
use sha2::{Digest as _, Sha256};

use crate::control_plane::{FaultOwner, MessageStart, StartFailure};
use crate::directives::{self, Directed};
use crate::source::Message;

/// Default maximum body size in bytes: 4 MiB.
pub(crate) const BYTES_DEFAULT: u64 = 4 << 20;

/// Upper bound of the configurable body size: 16 MiB, so that the whole payload fits into one
/// request.
const BYTES_MAX: u64 = 16 << 20;

/// Maximum nesting depth of a body, which is two levels below the top of the payload.
const BODY_DEPTH_MAX: usize = DEPTH_MAX - 2;

/// Maximum length of a deduplication key in bytes. Longer keys are replaced by their digest.
const KEY_MAX: usize = 256;

/// Builds the start request for a message. Also returns the directives from its headers.
pub(crate) fn start(
    subscription: &Subscription,
    id: SubscriptionId,
    message: &Message,
) -> Result<(MessageStart, Directed), StartFailure> {
    let most = subscription.limits.max_message_bytes.unwrap_or(BYTES_DEFAULT).min(BYTES_MAX);
    let bytes = message.body.len();
    if bytes as u64 > most {
        let reason = format!("the message has {bytes} bytes; at most {most} are dispatched");
        return Err(fault("too_large", reason));
    }
    let directed = directives::read(subscription, &message.headers);
    let payload = payload(subscription, message, &directed)?;
    let dispatch = &subscription.dispatch;
    let once = subscription.dedup.enabled.then(|| {
        let key = directed.idempotency_key.as_deref().unwrap_or(&message.id);
        (key_of(key), Duration::from_secs(subscription.dedup.window_secs))
    });
    let start = MessageStart {
        playbook: directed.playbook.clone().unwrap_or_else(|| dispatch.playbook.clone()),
        payload,
        pool: directed.pool.clone().or_else(|| dispatch.execution_pool.clone()),
        trace: directed.trace.clone(),
        subscription: id,
        once,
        bytes,
    };
    Ok((start, directed))
}

fn fault(code: &str, reason: impl Into<String>) -> StartFailure {
    StartFailure { of: FaultOwner::Message, code: code.to_owned(), reason: reason.into() }
}

/// Returns a deduplication key that every store accepts. Hashes keys that are empty, too long, or
/// contain control characters.
pub(crate) fn key_of(key: &str) -> String {
    if key.len() <= KEY_MAX && !key.contains(char::is_control) && !key.is_empty() {
        return key.to_owned();
    }
    let digest = Sha256::digest(key.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn payload(
    subscription: &Subscription,
    message: &Message,
    directed: &Directed,
) -> Result<Map, StartFailure> {
    let text = std::str::from_utf8(&message.body);
    let (data, encoding) = match text {
        Ok(text) => (serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)), None),
        Err(_) => (Value::from(STANDARD.encode(&message.body)), Some("base64")),
    };
    if is_deeper_than(&data, BODY_DEPTH_MAX) {
        let reason = format!("the body nests more than {BODY_DEPTH_MAX} levels deep");
        return Err(fault("too_deep", reason));
    }
    let primary = match subscription.dispatch.payload_from.as_str() {
        "message.attributes" => Value::Object(message.attributes.clone()),
        // For text that is not JSON, the decoded body is the text itself.
        "message.body" => text.map_or_else(|_| data.clone(), Value::from),
        _ => data.clone(),
    };
    let mut metadata = message.metadata.clone();
    let said = [("encoding", encoding), ("schema_hint", directed.schema_hint.as_deref())];
    for (name, value) in said {
        if let Some(value) = value {
            metadata.insert(name.to_owned(), Value::from(value));
        }
    }
    let mut told = Map::new();
    told.insert("id".to_owned(), Value::from(message.id.as_str()));
    told.insert("data".to_owned(), data);
    told.insert("headers".to_owned(), Value::Object(headers(subscription, message)));
    told.insert("attributes".to_owned(), Value::Object(message.attributes.clone()));
    told.insert("metadata".to_owned(), Value::Object(metadata));
    if let Some(ack_id) = &message.ack_id {
        told.insert("ack_id".to_owned(), Value::from(ack_id.as_str()));
    }
    let mut payload = Map::new();
    payload.insert("message".to_owned(), Value::Object(told));
    payload.insert("subscription".to_owned(), Value::from(subscription.path.as_str()));
    payload.insert("source".to_owned(), Value::from(subscription.source.as_str()));
    match primary {
        Value::Object(fields) => {
            for (name, value) in fields {
                payload.entry(name).or_insert(value);
            }
        }
        plain => {
            payload.insert("body".to_owned(), plain);
        }
    }
    let said =
        [("idempotency_key", &directed.idempotency_key), ("content_type", &directed.content_type)];
    for (name, value) in said {
        if let Some(value) = value {
            payload.insert(name.to_owned(), Value::from(value.as_str()));
        }
    }
    if payload.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)) {
        return Err(fault("nul_character", "text must not hold NUL characters"));
    }
    Ok(payload)
}

/// Returns the headers by name, with the last value of each. Names are in lower case unless the
/// document disables it.
fn headers(subscription: &Subscription, message: &Message) -> Map {
    if subscription.headers.passthrough.as_deref() == Some("none") {
        return Map::new();
    }
    let is_lowered = subscription.headers.normalize;
    let pairs = message.headers.iter().map(|(name, value)| {
        let name = if is_lowered { name.to_lowercase() } else { name.clone() };
        (name, Value::from(value.as_str()))
    });
    pairs.collect()
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use noetl_playbook::check_subscription;
    use serde_json::json;

    use super::*;

    fn subscription(more: &str) -> Subscription {
        let text = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: s/a}}\nspec:\n  \
             source: nats\n  mode: pull\n  stream: a\n{more}"
        );
        let checked = check_subscription(&text);
        checked.subscription.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    const PLAIN: &str = "  dispatch: {playbook: p/a, execution_pool: sub}\n";

    fn message(body: &[u8]) -> Message {
        let map = |value: Value| match value {
            Value::Object(map) => map,
            _ => panic!("a map"),
        };
        Message {
            id: "m1".to_owned(),
            body: bytes::Bytes::copy_from_slice(body),
            headers: vec![("X-A".to_owned(), "1".to_owned()), ("x-a".to_owned(), "2".to_owned())],
            attributes: map(json!({"region": "eu", "source": "theirs"})),
            metadata: map(json!({"subject": "orders.new"})),
            ack_id: Some("$JS.ACK.1".to_owned()),
        }
    }

    fn made(document: &str, body: &[u8]) -> Value {
        let start = start(&subscription(document), SubscriptionId::new(7), &message(body));
        Value::Object(start.expect("a start").0.payload)
    }

    #[test]
    fn a_message_is_laid_out_as_workers_lay_it_out() {
        let body = br#"{"order": 7, "message": "theirs", "subscription": 1}"#;
        assert_eq!(
            made(PLAIN, body),
            json!({
                "message": {
                    "id": "m1",
                    "data": {"order": 7, "message": "theirs", "subscription": 1},
                    "headers": {"x-a": "2"},
                    "attributes": {"region": "eu", "source": "theirs"},
                    "metadata": {"subject": "orders.new"},
                    "ack_id": "$JS.ACK.1",
                },
                "subscription": "s/a",
                "source": "nats",
                "order": 7,
            })
        );
    }

    #[test]
    fn what_is_no_map_is_the_body() {
        for (body, laid_out) in [
            (&b"[1,2]"[..], json!([1, 2])),
            (b"7", json!(7)),
            (b"not json", json!("not json")),
            (b"", json!("")),
            (b"null", Value::Null),
        ] {
            let payload = made(PLAIN, body);
            assert_eq!(payload["body"], laid_out);
            assert_eq!(payload["message"]["data"], laid_out);
        }
        let binary = made(PLAIN, &[0xff, 0xfe]);
        assert_eq!(binary["body"], "//4=");
        assert_eq!(binary["message"]["metadata"]["encoding"], "base64");
    }

    #[test]
    fn the_document_says_which_part_is_laid_out() {
        let text = "  dispatch: {playbook: p/a, payload_from: message.body}\n";
        let payload = made(text, br#"{"order":7}"#);
        assert_eq!((&payload["body"], payload.get("order")), (&json!(r#"{"order":7}"#), None));
        let attributes = "  dispatch: {playbook: p/a, payload_from: message.attributes}\n";
        let payload = made(attributes, br#"{"order":7}"#);
        assert_eq!((&payload["region"], &payload["source"]), (&json!("eu"), &json!("nats")));
        assert_eq!(payload.get("order"), None);
    }

    #[test]
    fn what_no_store_could_keep_is_refused_by_name() {
        let code = |document: &str, body: &[u8]| {
            let start = start(&subscription(document), SubscriptionId::new(7), &message(body));
            start.expect_err("a fault").code
        };
        assert_eq!(code(PLAIN, br#"{"a":"\u0000"}"#), "nul_character");
        assert_eq!(code(PLAIN, br#"{"\u0000":1}"#), "nul_character");
        let deep = format!("{}1{}", "[".repeat(BODY_DEPTH_MAX + 1), "]".repeat(BODY_DEPTH_MAX + 1));
        assert_eq!(code(PLAIN, deep.as_bytes()), "too_deep");
        let small = format!("{PLAIN}  limits: {{max_message_bytes: 10}}\n");
        assert_eq!(code(&small, b"12345678901"), "too_large");
        assert!(
            start(&subscription(&small), SubscriptionId::new(7), &message(b"1234567890")).is_ok()
        );
        assert_eq!(code(PLAIN, &vec![b'1'; 4 * 1024 * 1024 + 1]), "too_large");
    }

    #[test]
    fn a_repeat_is_known_by_the_id_or_by_what_a_header_says() {
        let dedup = "  dedup: {enabled: true, window_secs: 60}\n  headers: {directives: [{header: x-a, \
                     controls: idempotency_key}]}\n";
        let document = format!("{PLAIN}{dedup}");
        let of = |message: &Message| {
            let start = start(&subscription(&document), SubscriptionId::new(7), message);
            start.expect("a start").0
        };
        let start = of(&message(b"{}"));
        assert_eq!(start.once, Some(("2".to_owned(), Duration::from_secs(60))));
        assert_eq!(start.payload["idempotency_key"], "2");
        assert_eq!(start.pool.as_deref(), Some("sub"));
        let bare = Message { headers: Vec::new(), ..message(b"{}") };
        assert_eq!(of(&bare).once.map(|(key, _)| key).as_deref(), Some("m1"));
        let long = Message { id: "i".repeat(5000), ..bare };
        let key = of(&long).once.expect("a key").0;
        assert!(key.starts_with("sha256:") && key.len() == 71, "{key}");
        let plain = super::start(&subscription(PLAIN), SubscriptionId::new(7), &message(b"{}"));
        assert_eq!(plain.expect("a start").0.once, None);
    }
}

//! Converts a message to the payload of an execution.
//!
//! The payload contains the message, its origin, and, at the top level, the part of the message that
//! the document selects. Fields from the message never replace fields set here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::{DEPTH_MAX, Map, Value, is_deeper_than};

use super::message::{is_credential, logged_headers};
use super::{Directives, Message, MessageRejection, Passthrough, Subscription};

/// Maximum nesting depth of a body, which is two levels below the top of the payload.
pub(super) const BODY_DEPTH_MAX: usize = DEPTH_MAX - 2;

struct DecodedBody {
    data: Value,
    /// Whether the data is the base64 form of bytes that are not UTF-8.
    is_base64: bool,
}

/// Builds the payload of a message. `must_be_json` rejects a body that is not JSON.
pub(super) fn build(
    subscription: &Subscription,
    message: &Message,
    directives: &Directives,
    must_be_json: bool,
) -> Result<Map, MessageRejection> {
    let DecodedBody { data, is_base64 } = decode(&message.body, must_be_json)?;
    if is_deeper_than(&data, BODY_DEPTH_MAX) {
        return Err(MessageRejection::TooDeep);
    }
    let attributes = attributes(subscription, message);
    let primary = match subscription.dispatch.payload_from.as_str() {
        "message.attributes" => Value::Object(attributes.clone()),
        "message.body" => {
            std::str::from_utf8(&message.body).map_or_else(|_| data.clone(), Value::from)
        }
        _ => data.clone(),
    };
    let headers = match subscription.headers.passthrough {
        Passthrough::Data => logged_headers(subscription, &message.headers),
        Passthrough::None => Map::new(),
    };
    let mut metadata = message.metadata.clone();
    let mut describe = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            metadata.insert(name.to_owned(), value);
        }
    };
    describe("encoding", is_base64.then(|| Value::from("base64")));
    describe("content_type", text(directives.content_type.as_ref()));
    describe("schema_hint", text(directives.schema_hint.as_ref()));
    let settings = directives.settings();
    describe("directives", (!settings.is_empty()).then_some(Value::Object(settings)));
    let mut parts = Map::new();
    parts.insert("id".to_owned(), Value::from(message.id.as_str()));
    parts.insert("data".to_owned(), data);
    parts.insert("headers".to_owned(), Value::Object(headers));
    parts.insert("attributes".to_owned(), Value::Object(attributes));
    parts.insert("metadata".to_owned(), Value::Object(metadata));
    if let Some(ack_id) = &message.ack_id {
        parts.insert("ack_id".to_owned(), Value::from(ack_id.as_str()));
    }
    reject_nul(&parts)?;
    let mut payload = Map::new();
    payload.insert("message".to_owned(), Value::Object(parts));
    payload.insert("subscription".to_owned(), Value::from(subscription.path.as_str()));
    payload.insert("source".to_owned(), Value::from(subscription.source.as_str()));
    let chosen = [
        ("idempotency_key", text(directives.idempotency_key.as_ref())),
        ("content_type", text(directives.content_type.as_ref())),
    ];
    payload.extend(chosen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
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
    Ok(payload)
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| Value::from(text.as_str()))
}

/// Decodes a body as JSON, else as text, else as base64. An empty body is an empty text.
fn decode(body: &[u8], must_be_json: bool) -> Result<DecodedBody, MessageRejection> {
    let (data, is_base64) = match serde_json::from_slice(body) {
        Ok(data) => (data, false),
        Err(error) if must_be_json && !body.is_empty() => {
            return Err(MessageRejection::NotJson(error.to_string()));
        }
        Err(_) => match std::str::from_utf8(body) {
            Ok(text) => (Value::from(text), false),
            Err(_) => (Value::from(STANDARD.encode(body)), true),
        },
    };
    Ok(DecodedBody { data, is_base64 })
}

/// Returns the attributes without those that repeat a header with a credential.
fn attributes(subscription: &Subscription, message: &Message) -> Map {
    let mut attributes = message.attributes.clone();
    let names = message.headers.iter().map(|(name, _)| name.to_lowercase());
    for name in names.filter(|name| is_credential(subscription, name)) {
        attributes.retain(|attribute, _| !attribute.eq_ignore_ascii_case(&name));
    }
    attributes
}

/// Rejects a message with NUL characters in one of its parts, which include all text of the payload.
fn reject_nul(parts: &Map) -> Result<(), MessageRejection> {
    let named = [
        ("data", "body"),
        ("id", "message ID"),
        ("headers", "headers"),
        ("attributes", "attributes"),
        ("metadata", "metadata"),
        ("ack_id", "delivery ID"),
    ];
    let with_nul = named.iter().find(|(name, _)| parts.get(*name).is_some_and(holds_nul));
    match with_nul {
        Some((_, part)) => Err(MessageRejection::Nul(part)),
        None => Ok(()),
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

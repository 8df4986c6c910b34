//! Converts an ingress message to the payload of an execution.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::{DEPTH_MAX, Map, Timestamp, Value, is_deeper_than};
use sha2::{Digest as _, Sha256};

use super::directives::Directives;
use super::settings::Listener;

/// Headers in which senders put a message ID that is the same on redelivery.
const NAMES: [&str; 5] =
    ["webhook-id", "ce-id", "idempotency-key", "x-github-delivery", "x-goog-pubsub-message-id"];

/// Headers that carry credentials. They are not written to the event log.
const SECRET: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-session-token"];

/// Nesting levels that the payload of an execution adds around a body.
const AROUND: usize = 4;

/// A message from an authenticated sender.
#[derive(Debug, Clone, Default)]
pub struct IngressMessage {
    /// Headers by lower-case name. Among several with one name, the last.
    pub headers: BTreeMap<String, String>,
    /// Body bytes as received, not decoded.
    pub body: Vec<u8>,
    /// Verified signature in hex. Equal bytes with an equal signed time have equal signatures.
    pub signature: Option<String>,
}

/// Reasons a message is permanently rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The content type is JSON, but the body is not.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// The body is not a Pub/Sub push message.
    #[error("the body is not a push message: {0}")]
    NotPushed(&'static str),
    /// The body could be written but not read back.
    #[error("the body nests more than {} levels deep", DEPTH_MAX - AROUND)]
    TooDeep,
    /// The body contains NUL characters, which not every store supports.
    #[error("the body must not hold NUL characters")]
    Nul,
}

/// A message converted to a payload.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IngressPayload {
    pub(super) id: String,
    pub(super) payload: Map,
}

/// Parts of a message, independent of the transport.
struct MessageParts {
    id: String,
    data: Value,
    text: String,
    attributes: Map,
    metadata: Map,
}

impl IngressMessage {
    /// Parses a message and builds the payload of an execution.
    pub(super) fn shape(
        &self,
        listener: &Listener,
        decided: &Directives,
        now: Timestamp,
    ) -> Result<IngressPayload, MessageError> {
        let said = decided.content_type.as_ref().or_else(|| self.headers.get("content-type"));
        let headers = self.shown_headers(listener);
        let mut parts = match listener.source.as_str() {
            "pubsub" => self.pushed(listener, said)?,
            _ => self.plain(listener, said, &headers)?,
        };
        if is_deeper_than(&parts.data, DEPTH_MAX - AROUND) {
            return Err(MessageError::TooDeep);
        }
        let attributes =
            parts.attributes.iter().any(|(name, value)| name.contains('\0') || holds_nul(value));
        if parts.text.contains('\0')
            || parts.id.contains('\0')
            || attributes
            || holds_nul(&parts.data)
        {
            return Err(MessageError::Nul);
        }
        let mut meta = |name: &str, value: Option<&String>| {
            if let Some(value) = value {
                parts.metadata.insert(name.to_owned(), Value::from(value.clone()));
            }
        };
        meta("listener", Some(&listener.name));
        meta("received_at", Some(&now.to_string()));
        meta("content_type", said);
        meta("schema_hint", decided.schema_hint.as_ref());
        if !decided.applied.is_empty() {
            parts.metadata.insert("directives".to_owned(), decided.applied.clone().into());
        }
        let primary = match listener.payload_from.as_str() {
            "message.attributes" => Value::Object(parts.attributes.clone()),
            "message.body" => Value::from(parts.text),
            _ => parts.data.clone(),
        };
        let mut message = Map::new();
        message.insert("id".to_owned(), Value::from(parts.id.clone()));
        message.insert("data".to_owned(), parts.data);
        message.insert("headers".to_owned(), Value::Object(headers.clone()));
        message.insert("attributes".to_owned(), Value::Object(parts.attributes));
        message.insert("metadata".to_owned(), Value::Object(parts.metadata));
        let mut payload = Map::new();
        payload.insert("message".to_owned(), Value::Object(message));
        payload.insert("subscription".to_owned(), Value::from(listener.path.clone()));
        payload.insert("source".to_owned(), Value::from(listener.source.clone()));
        let mut lay = |name: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|_| !payload.contains_key(name)) {
                payload.insert(name.to_owned(), value);
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::from);
        lay("idempotency_key", text(&decided.idempotency_key));
        lay("content_type", text(&decided.content_type));
        let passthrough = listener.headers.as_ref().and_then(|section| section.get("passthrough"));
        if let Some(name) = passthrough.and_then(Value::as_str).filter(|name| !name.is_empty()) {
            lay(name, Some(Value::Object(headers)));
        }
        match primary {
            Value::Object(fields) => {
                fields.into_iter().for_each(|(name, value)| lay(&name, Some(value)));
            }
            Value::Null => {}
            other => lay("body", Some(other)),
        }
        Ok(IngressPayload { id: parts.id, payload })
    }

    /// Parses a request whose body is the message.
    fn plain(
        &self,
        listener: &Listener,
        said: Option<&String>,
        headers: &Map,
    ) -> Result<MessageParts, MessageError> {
        let mut metadata = Map::new();
        let (data, text) = decoded(&self.body, said, &mut metadata)?;
        let named = NAMES.iter().find_map(|name| self.headers.get(*name));
        let named = named.map(|name| name.trim()).filter(|name| !name.is_empty());
        // A signature does not cover headers: a replay could carry another message ID.
        let id = match named.filter(|_| listener.trusts_headers()) {
            Some(name) => name.to_owned(),
            None => format!("sha256:{}", hex(&Sha256::digest(&self.body))),
        };
        Ok(MessageParts { id, data, text, attributes: headers.clone(), metadata })
    }

    /// Parses a Pub/Sub push request, which wraps a message. If the push subscription is configured
    /// to send unwrapped messages, parses the request as the message itself.
    fn pushed(
        &self,
        listener: &Listener,
        said: Option<&String>,
    ) -> Result<MessageParts, MessageError> {
        let wrapper: Value = match serde_json::from_slice(&self.body) {
            Ok(wrapper) => wrapper,
            Err(error) => return Err(MessageError::NotJson(error.to_string())),
        };
        let Some(message) = wrapper.get("message").and_then(Value::as_object) else {
            if self.headers.contains_key("x-goog-pubsub-message-id") {
                return self.plain(listener, said, &self.shown_headers(listener));
            }
            return Err(MessageError::NotPushed("it has no 'message'"));
        };
        let field = |names: [&str; 2]| names.iter().find_map(|name| message.get(*name)?.as_str());
        let id = field(["messageId", "message_id"]);
        let id = id.ok_or(MessageError::NotPushed("'message' has no 'messageId'"))?;
        let body = match message.get("data") {
            None | Some(Value::Null) => Vec::new(),
            Some(data) => {
                let data = data.as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
                data.ok_or(MessageError::NotPushed("'message.data' is not base64"))?
            }
        };
        let mut metadata = Map::new();
        let (data, text) = decoded(&body, None, &mut metadata)?;
        let attributes = message.get("attributes").and_then(Value::as_object);
        for (name, value) in [
            ("publish_time", field(["publishTime", "publish_time"])),
            ("ordering_key", field(["orderingKey", "ordering_key"])),
            ("subscription", wrapper.get("subscription").and_then(Value::as_str)),
        ] {
            if let Some(value) = value {
                metadata.insert(name.to_owned(), Value::from(value));
            }
        }
        let attributes = attributes.cloned().unwrap_or_default();
        Ok(MessageParts { id: id.to_owned(), data, text, attributes, metadata })
    }

    /// Returns the headers without those that carry credentials.
    fn shown_headers(&self, listener: &Listener) -> Map {
        let shown = self.headers.iter().filter(|(name, _)| {
            !SECRET.contains(&name.as_str()) && Some(*name) != listener.verify.header.as_ref()
        });
        shown.map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect()
    }
}

/// Returns a body as a value and as text. A body whose content type is JSON has to parse.
fn decoded(
    body: &[u8],
    said: Option<&String>,
    metadata: &mut Map,
) -> Result<(Value, String), MessageError> {
    if body.is_empty() {
        return Ok((Value::Null, String::new()));
    }
    let is_said = said.is_some_and(|said| is_json(said));
    match serde_json::from_slice::<Value>(body) {
        Ok(data) => Ok((data, String::from_utf8_lossy(body).into_owned())),
        Err(error) if is_said => Err(MessageError::NotJson(error.to_string())),
        Err(_) => {
            let text = match std::str::from_utf8(body) {
                Ok(text) => text.to_owned(),
                Err(_) => {
                    metadata.insert("encoding".to_owned(), Value::from("base64"));
                    BASE64_STANDARD.encode(body)
                }
            };
            Ok((Value::from(text.clone()), text))
        }
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(map) => {
            map.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns bytes in lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

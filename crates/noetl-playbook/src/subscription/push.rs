//! Converts the request of a sender to a message.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use noetl_model::{Map, Timestamp, Value};

use super::message::digest;
use super::{Message, MessageRejection, Source, Subscription, headers_by_name};

/// Headers in which senders put a message ID that is the same on redelivery.
const ID_HEADERS: [&str; 5] =
    ["webhook-id", "ce-id", "idempotency-key", "x-github-delivery", PUBSUB_ID];

/// Header with the message ID of a Pub/Sub push request without an envelope.
const PUBSUB_ID: &str = "x-goog-pubsub-message-id";

/// Request of an authenticated sender.
#[derive(Debug, Clone)]
pub struct PushRequest {
    /// Name of the listener that received it.
    pub listener: String,
    pub headers: Vec<(String, String)>,
    /// Body bytes as received, not decoded.
    pub body: Bytes,
    /// Verified signature in hex. Equal bytes with an equal signed time have equal signatures.
    pub signature: Option<String>,
    pub received_at: Timestamp,
    /// Dedup window of signatures without a signed time. Zero turns their deduplication off.
    pub replay_window: Duration,
}

/// Arrival of a pushed message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushContext {
    /// Content type of the body, if the sender declares it. That of an envelope is not the type of
    /// its message.
    pub content_type: Option<String>,
    /// Whether the message came in an envelope of a push service. The service is the sender and
    /// can't correct the message, so a rejection would only make it resend the same bytes.
    pub is_enveloped: bool,
    /// Verified signature in hex.
    pub signature: Option<String>,
    /// Dedup window of signatures without a signed time. Zero turns their deduplication off.
    pub replay_window: Duration,
}

/// A message of a sender, and its arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct PushedMessage {
    pub message: Message,
    pub context: PushContext,
}

impl PushRequest {
    /// Converts the request to a message. With source `pubsub`, opens the envelope of push requests.
    pub fn into_message(
        self,
        subscription: &Subscription,
    ) -> Result<PushedMessage, MessageRejection> {
        let declared = headers_by_name(&self.headers).get("content-type").map(|&it| it.to_owned());
        let mut metadata = Map::new();
        metadata.insert("listener".to_owned(), Value::from(self.listener.as_str()));
        metadata.insert("received_at".to_owned(), Value::from(self.received_at.to_string()));
        if let Some(declared) = &declared {
            metadata.insert("content_type".to_owned(), Value::from(declared.as_str()));
        }
        let envelope = match subscription.source {
            Source::Pubsub => self.envelope()?,
            Source::Nats
            | Source::Kafka
            | Source::Webhook
            | Source::Postgres
            | Source::Redis
            | Source::Mqtt => None,
        };
        let context = PushContext {
            content_type: declared.filter(|_| envelope.is_none()),
            is_enveloped: envelope.is_some(),
            signature: self.signature.clone(),
            replay_window: self.replay_window,
        };
        let message = match envelope {
            Some(envelope) => {
                metadata.extend(envelope.metadata);
                Message {
                    id: envelope.id,
                    body: envelope.body,
                    headers: self.headers,
                    attributes: envelope.attributes,
                    metadata,
                    ack_id: None,
                }
            }
            None => self.whole(subscription, metadata),
        };
        Ok(PushedMessage { message, context })
    }

    /// Returns the message of a request whose body is the message.
    fn whole(self, subscription: &Subscription, metadata: Map) -> Message {
        let headers = headers_by_name(&self.headers);
        // A signature does not cover headers: a replay could carry another message ID.
        let id = match given_id(&headers).filter(|_| subscription.trusts_headers()) {
            Some(id) => id.to_owned(),
            None => digest(&self.body),
        };
        let attributes = self.headers.iter().map(|(name, value)| {
            let value = Value::from(value.as_str());
            (name.to_lowercase(), value)
        });
        let attributes = attributes.collect();
        Message { id, body: self.body, attributes, headers: self.headers, metadata, ack_id: None }
    }

    /// Opens the envelope of a Pub/Sub push request. Returns `None` if the push subscription sends
    /// messages without one.
    fn envelope(&self) -> Result<Option<PushEnvelope>, MessageRejection> {
        let envelope: Value = serde_json::from_slice(&self.body)
            .map_err(|error| MessageRejection::NotJson(error.to_string()))?;
        let Some(message) = envelope.get("message").and_then(Value::as_object) else {
            if headers_by_name(&self.headers).contains_key(PUBSUB_ID) {
                return Ok(None);
            }
            return Err(MessageRejection::NotPushed("it has no 'message'"));
        };
        let field = |names: [&str; 2]| names.iter().find_map(|name| message.get(*name)?.as_str());
        let id = field(["messageId", "message_id"]);
        let id = id.ok_or(MessageRejection::NotPushed("'message' has no 'messageId'"))?;
        let body = match message.get("data") {
            None | Some(Value::Null) => Vec::new(),
            Some(data) => {
                let data = data.as_str().and_then(|data| STANDARD.decode(data).ok());
                data.ok_or(MessageRejection::NotPushed("'message.data' is not base64"))?
            }
        };
        let attributes = message.get("attributes").and_then(Value::as_object);
        let described = [
            ("publish_time", field(["publishTime", "publish_time"])),
            ("ordering_key", field(["orderingKey", "ordering_key"])),
            ("subscription", envelope.get("subscription").and_then(Value::as_str)),
        ];
        let metadata = described
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name.to_owned(), Value::from(value))));
        Ok(Some(PushEnvelope {
            id: id.to_owned(),
            body: body.into(),
            attributes: attributes.cloned().unwrap_or_default(),
            metadata: metadata.collect(),
        }))
    }
}

/// Message in the envelope of a push service.
struct PushEnvelope {
    id: String,
    body: Bytes,
    attributes: Map,
    metadata: Map,
}

/// Returns the message ID that the sender gives in a header.
fn given_id<'a>(headers: &HashMap<String, &'a str>) -> Option<&'a str> {
    let id = ID_HEADERS.iter().find_map(|name| headers.get(*name));
    id.map(|id| id.trim()).filter(|id| !id.is_empty())
}

/// Returns `true` if a content type is that of JSON.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

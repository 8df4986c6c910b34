//! Subscriptions: register, change state, read events, lease, and dead-letter messages.

use noetl_model::Map;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;
use crate::events::EventView;

/// Body of `POST /api/subscriptions` and `POST /api/subscriptions/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscribeRequest {
    /// Catalog path of the subscription document.
    pub path: String,
}

/// State of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionStatus {
    /// ID of the subscription, as text.
    pub subscription_id: Id,
    /// Catalog path of the subscription document.
    pub path: String,
    /// Catalog entry ID of the document version it was registered with, as text.
    pub catalog_id: Id,
    /// State: `REGISTERED`, `ACTIVE`, `PAUSED`, `DRAINING`, or `DEACTIVATED`.
    pub state: String,
    /// Type of the event that led to the state.
    pub last_event_type: String,
    /// Time of that event, as RFC 3339 with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// Response of `GET /api/subscriptions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionList {
    /// All subscriptions in ID order, including deactivated ones.
    pub subscriptions: Vec<SubscriptionStatus>,
}

/// Response of `GET /api/subscriptions/{id}/events`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionEvents {
    /// ID of the subscription, as text.
    pub subscription_id: Id,
    /// Page of events, oldest first.
    pub events: Vec<EventView>,
    /// Value of `after` for the next request.
    pub next_after: u64,
    /// Whether more events follow.
    pub has_more: bool,
}

/// Body of `POST /api/subscriptions/{id}/lease`: acquires or renews the lease of a subscription.
/// Only the runtime that holds the lease consumes messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionLeaseRequest)]
pub struct SubscriptionLeaseRequest {
    /// Unique name of the runtime, 1 to 200 bytes.
    pub holder: String,
    /// Duration of the lease in seconds, 1 to 300.
    pub ttl_secs: u64,
    /// Number of messages that wait at the source, if the runtime knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    /// Messages processed since the runtime's previous request. Default: all zero.
    #[serde(default)]
    pub counts: MessageCounts,
}

/// Number of messages by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MessageCounts {
    /// Messages received from the source, including redeliveries.
    pub received: u64,
    /// Messages that started an execution.
    pub dispatched: u64,
    /// Messages that had already started an execution.
    pub duplicate: u64,
    /// Messages that failed and will be retried.
    pub failed: u64,
    /// Messages that were dead-lettered.
    pub dead_lettered: u64,
}

/// Response of `POST /api/subscriptions/{id}/lease`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionLeaseReply)]
pub struct LeaseReply {
    /// Whether the runtime holds the lease. If `false`, another runtime holds it, and this one is
    /// registered as waiting for `ttl_secs`.
    pub held: bool,
    /// Whether another runtime waits for the lease.
    pub awaited: bool,
    /// State of the subscription, at the top level of the response.
    #[serde(flatten)]
    pub status: SubscriptionStatus,
}

/// Body of `POST /api/subscriptions/{id}/release`. Releases the runtime's lease, or its
/// registration as waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionReleaseRequest)]
pub struct ReleaseRequest {
    /// Name of the runtime, 1 to 200 bytes.
    pub holder: String,
}

/// Body of `POST /api/subscriptions/{id}/dead-letters`: stores a message that can't be dispatched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterRequest {
    /// Message ID assigned by the source.
    pub message_id: String,
    /// Code of the reason, as one word.
    pub code: String,
    /// Reason as one sentence.
    pub reason: String,
    /// Number of delivery attempts. Default: 0.
    #[serde(default)]
    pub attempts: u64,
    /// Headers of the message. Default: none.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Map,
    /// Origin of the message at the source. Default: empty.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map,
    /// Body of the message, in base64 with padding.
    pub body_base64: String,
}

/// Response of `POST /api/subscriptions/{id}/dead-letters`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterReply {
    /// Key of the object that holds the message body.
    pub object: String,
}

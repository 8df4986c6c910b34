//! Subscriptions: registering, moving, reading.

use noetl_model::Map;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;
use crate::events::EventView;

/// The body of `POST /api/subscriptions` and of `POST /api/subscriptions/register`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscribeRequest {
    /// The path of the subscription's document.
    pub path: String,
}

/// Where a subscription stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionStatus {
    /// Its id, as text.
    pub subscription_id: Id,
    /// The path of its document.
    pub path: String,
    /// The version of the document it was registered with, as text.
    pub catalog_id: Id,
    /// Its state.
    pub state: String,
    /// The type of the event that brought it there.
    pub last_event_type: String,
    /// When that was, as RFC 3339 with an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// The reply of `GET /api/subscriptions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionList {
    /// All of them in the order of their ids; those that are over too.
    pub subscriptions: Vec<SubscriptionStatus>,
}

/// A stretch of a subscription's log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionEvents {
    /// Whose log it is, as text.
    pub subscription_id: Id,
    /// The stretch, oldest first.
    pub events: Vec<EventView>,
    /// Where to go on: the `after` of the next request.
    pub next_after: u64,
    /// Whether there is more to go on with.
    pub has_more: bool,
}

/// The body of `POST /api/subscriptions/{id}/lease`: a runtime that acts on a subscription, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionLeaseRequest)]
pub struct LeaseRequest {
    /// The runtime, by a name that no other has.
    pub holder: String,
    /// For how long, in seconds from now: 1 to 300.
    pub ttl_secs: u64,
    /// How much waits at the source, if the runtime knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    /// What became of messages since it was last told.
    #[serde(default)]
    pub counts: MessageCounts,
}

/// What became of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MessageCounts {
    /// Came from the source, repeats included.
    pub received: u64,
    /// Became executions.
    pub dispatched: u64,
    /// Had become executions before.
    pub duplicate: u64,
    /// Failed, and are tried again.
    pub failed: u64,
    /// Were put aside for good.
    pub dead_lettered: u64,
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionLeaseReply)]
pub struct LeaseReply {
    /// Whether the runtime acts on the subscription now; if not, another does.
    pub held: bool,
    /// Whether another runtime waits to.
    pub awaited: bool,
    /// Where the subscription stands.
    #[serde(flatten)]
    pub status: SubscriptionStatus,
}

/// The body of `POST /api/subscriptions/{id}/release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriptionReleaseRequest)]
pub struct ReleaseRequest {
    /// The runtime.
    pub holder: String,
}

/// The body of `POST /api/subscriptions/{id}/dead-letters`: a message that cannot be dispatched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterRequest {
    /// The message's id.
    pub message_id: String,
    /// What kind of reason it was, in a word.
    pub code: String,
    /// Why, in a sentence.
    pub reason: String,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: u64,
    /// Its headers.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Map,
    /// Where it came from.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map,
    /// What it holds, as base64.
    pub body_base64: String,
}

/// The reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterReply {
    /// The key of the object that holds its body.
    pub object: String,
}

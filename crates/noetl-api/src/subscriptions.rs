//! Subscriptions: registering, moving, reading.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

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

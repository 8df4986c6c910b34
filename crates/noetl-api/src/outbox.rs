//! The outbox: rows on their way to publishers outside.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/internal/outbox/claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = OutboxClaimRequest)]
pub struct ClaimRequest {
    /// How many rows to claim: 1 to 1000, and the nearer of them when it is outside.
    #[serde(default = "ClaimRequest::default_limit")]
    pub limit: i64,
}

impl ClaimRequest {
    const fn default_limit() -> i64 {
        100
    }
}

/// The reply to a claim.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = OutboxClaimReply)]
pub struct ClaimReply {
    /// The rows, smallest id first.
    pub rows: Vec<OutboxRow>,
    /// How many there are.
    pub claimed: usize,
}

/// One claimed row.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OutboxRow {
    /// Its id.
    pub outbox_id: Id,
    /// The event.
    pub event_id: Id,
    /// The event's execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// Where to publish it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What to publish.
    #[schema(value_type = Value)]
    pub payload: Box<RawValue>,
    /// How it is to be encoded.
    pub payload_codec: String,
    /// How often it was claimed, this time included.
    pub attempts: u32,
}

/// The body of `POST /api/internal/outbox/mark-published`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedRequest {
    /// The rows.
    pub outbox_ids: Vec<i64>,
}

/// The reply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedReply {
    /// How many of them were not published before.
    pub marked: usize,
}

/// The body of `POST /api/internal/outbox/mark-failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedRequest {
    /// The row.
    pub outbox_id: i64,
    /// Why it was not published.
    pub error: String,
    /// How often it was tried; the delay grows with it.
    #[serde(default = "FailedRequest::default_attempts")]
    pub attempts: i32,
    /// The longest delay.
    #[serde(default = "FailedRequest::default_delay")]
    pub max_delay_seconds: i32,
}

impl FailedRequest {
    const fn default_attempts() -> i32 {
        1
    }

    const fn default_delay() -> i32 {
        300
    }
}

/// The reply to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedReply {
    /// Whether there is such a row that is not published.
    pub marked: bool,
    /// In how many seconds it can be claimed again.
    pub available_at_in: u64,
}

/// The reply of `GET /api/internal/outbox/pending-count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingReply {
    /// How many rows a claim could return.
    pub pending: u64,
}

//! Outbox: committed events that external publishers deliver to the bus.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/internal/outbox/claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = OutboxClaimRequest)]
pub struct ClaimRequest {
    /// Maximum number of rows to claim. Clamped to 1 to 1,000. Default: 100.
    #[serde(default = "ClaimRequest::default_limit")]
    pub limit: i64,
}

impl ClaimRequest {
    const fn default_limit() -> i64 {
        100
    }
}

/// Response of `POST /api/internal/outbox/claim`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = OutboxClaimReply)]
pub struct ClaimReply {
    /// Claimed rows in ascending ID order. The claim is a lease: rows that are not marked as
    /// published or failed in time can be claimed again.
    pub rows: Vec<OutboxRow>,
    /// Number of claimed rows.
    pub claimed: usize,
}

/// A claimed row of the outbox.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OutboxRow {
    /// ID of the outbox row.
    pub outbox_id: Id,
    /// ID of the event to publish.
    pub event_id: Id,
    /// ID of the event's execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Id>,
    /// Bus subject to publish to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Message body to publish.
    #[schema(value_type = Value)]
    pub payload: Box<RawValue>,
    /// Encoding to publish the message in, such as `json`.
    pub payload_codec: String,
    /// Number of times the row was claimed, including this claim.
    pub attempts: u32,
}

/// Body of `POST /api/internal/outbox/mark-published`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedRequest {
    /// IDs of the published rows. Must not be empty.
    pub outbox_ids: Vec<i64>,
}

/// Response of `POST /api/internal/outbox/mark-published`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishedReply {
    /// Number of rows that were not already marked as published.
    pub marked: usize,
}

/// Body of `POST /api/internal/outbox/mark-failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedRequest {
    /// ID of the outbox row.
    pub outbox_id: i64,
    /// Reason why publishing failed. Must not be empty.
    pub error: String,
    /// Number of attempts so far. The backoff starts at 1 second and doubles with each attempt, up
    /// to 256 seconds. Default: 1.
    #[serde(default = "FailedRequest::default_attempts")]
    pub attempts: i32,
    /// Maximum backoff in seconds, at least 1. Default: 300.
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

/// Response of `POST /api/internal/outbox/mark-failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedReply {
    /// Whether the row exists and is unpublished.
    pub marked: bool,
    /// Seconds until the row can be claimed again.
    pub available_at_in: u64,
}

/// Response of `GET /api/internal/outbox/pending-count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingReply {
    /// Number of rows that can be claimed now.
    pub pending: u64,
}

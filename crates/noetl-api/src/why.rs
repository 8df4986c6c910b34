//! Explanation of why an execution waits or ended.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Response of `GET /api/executions/{id}/why`. Also accepts the ID of a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhyReply {
    /// ID of the execution or subscription.
    pub execution_id: Id,
    /// Status of the execution: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`. For a
    /// subscription, its state.
    pub status: String,
    /// Summary of the waits or the end, as one sentence.
    pub summary: String,
    /// Waits of the execution, at most 100. Not empty while an execution runs, unless it was
    /// imported.
    pub waits: Vec<WaitView>,
    /// Number of waits beyond those listed.
    pub more: usize,
    /// Reason for the end. `null` while the execution runs, for an imported execution, and for a
    /// subscription.
    pub ended: Option<EndView>,
}

/// A wait of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitView {
    /// Kind of the wait: `worker`, `report`, `time`, `child`, `answer`, `admission`, `join`,
    /// `loop`, or `subscription`.
    pub kind: String,
    /// Name of the waiting step. For a subscription, its catalog path.
    pub step: String,
    /// ID of the waiting command, as text. `null` if no command waits.
    pub command_id: Option<Id>,
    /// Zero-based index of the loop item. `null` outside a loop.
    pub item: Option<u32>,
    /// Time at which the wait began. `null` if unknown.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// Latest end of the wait. `null` if the wait has no limit.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// Explanation of the wait, as one sentence.
    pub what: String,
    /// Event or action that would end the wait, as readable text.
    pub would_move_it: String,
    /// Worker pool of the command, for kind `worker`.
    pub pool: Option<String>,
    /// Registered workers that can claim the command, for kind `worker`.
    pub workers: Vec<String>,
    /// Worker that claimed the command, for kind `report`. For a subscription, the runtime that
    /// holds its lease.
    pub worker: Option<String>,
    /// Expiration time of that worker's lease.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_until: Option<Timestamp>,
    /// ID of the child execution, for kind `child`.
    pub child_execution_id: Option<Id>,
    /// Status of the child execution. `null` until it starts.
    pub child_status: Option<String>,
}

/// Reason why an execution ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndView {
    /// Explanation of the end, as one sentence.
    pub what: String,
    /// Step whose failure was not handled.
    pub step: Option<String>,
    /// Failure kind, such as `worker_lost`.
    pub kind: Option<String>,
    /// Message of the failure, or the reason for the cancellation.
    pub message: Option<String>,
    /// ID of the event that records the reason.
    pub event_id: Option<Id>,
    /// Sequence number of that event.
    pub seq: Option<u64>,
}

//! Why an execution stands as it does.

use noetl_model::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The reply of `GET /api/executions/{id}/why`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhyReply {
    /// The execution, or the subscription.
    pub execution_id: Id,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`; the state of a subscription.
    pub status: String,
    /// One sentence for people.
    pub summary: String,
    /// What it waits for: never empty while it runs.
    pub waits: Vec<WaitView>,
    /// How many more things it waits for.
    pub more: usize,
    /// Why it ended.
    pub ended: Option<EndView>,
}

/// One thing an execution waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WaitView {
    /// `worker`, `report`, `time`, `child`, `answer`, `admission`, `join`, `loop` or `subscription`.
    pub kind: String,
    /// The step it is about.
    pub step: String,
    /// The command that waits, as text.
    pub command_id: Option<Id>,
    /// The place of its item in a loop.
    pub item: Option<u32>,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// Until when at most.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    /// What for, in one sentence.
    pub what: String,
    /// What would move it.
    pub would_move_it: String,
    /// The pool of workers its command goes to.
    pub pool: Option<String>,
    /// Registered workers that could take it.
    pub workers: Vec<String>,
    /// The worker that has it.
    pub worker: Option<String>,
    /// Until when that worker is certainly there.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_until: Option<Timestamp>,
    /// The execution it waits for.
    pub child_execution_id: Option<Id>,
    /// How that one stands; nothing while it is not started.
    pub child_status: Option<String>,
}

/// Why an execution ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndView {
    /// In one sentence.
    pub what: String,
    /// The step whose failure nobody handled.
    pub step: Option<String>,
    /// What kind of failure.
    pub kind: Option<String>,
    /// The failure's own sentence, or the reason that was given.
    pub message: Option<String>,
    /// The event that says so.
    pub event_id: Option<Id>,
    /// Its place in the log.
    pub seq: Option<u64>,
}

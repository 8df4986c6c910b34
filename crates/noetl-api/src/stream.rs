//! Messages of event streams other than events and log lines.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Data of the `end` message, the last message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// ID of the execution.
    pub execution_id: Id,
    /// Final status: `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: String,
    /// Failure as one sentence. `null` unless the execution failed.
    pub error: Option<String>,
    /// Number of events in the event log.
    pub events: u64,
}

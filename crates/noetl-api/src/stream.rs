//! Streams: what is sent besides the events of a log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The body of the event `end`, the last of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StreamEnd {
    /// The execution.
    pub execution_id: Id,
    /// `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
    /// How many events its log holds.
    pub events: u64,
}

//! Stored and wire form of an event: named columns, with JSON in `context`, `result`, and `meta`.
//!
//! Stores read and write rows; the engine folds [`crate::Event`]s. All conversions go through
//! [`EventRow::from`] and [`EventRow::decode`], so every store writes the same bytes. Rows omit
//! derivable values, such as the textual command ID and the previous event's ID; readers add them
//! for display.

pub mod body;
mod decode;
mod encode;
mod error;
mod foreign;
mod moved;
mod repeat;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use crate::event::SubscriptionEvent;
use crate::{CommandId, EventId, ExecutionId, Origin, Seq, Timestamp};

pub use error::RowError;

/// A row of the event log. JSON columns contain compact JSON text.
///
/// The type, node, and status are missing only in some imported rows.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Execution whose log holds the row.
    pub execution_id: ExecutionId,
    pub event_id: EventId,
    /// Sequence number in the log.
    pub seq: Seq,
    /// Time at which the engine decided the event.
    pub created_at: Timestamp,
    pub origin: Origin,
    /// Event type, such as `command.issued`.
    pub event_type: Option<Cow<'static, str>>,
    /// Step name, the catalog path for `playbook_started`, or `playbook`.
    pub node_name: Option<Arc<str>>,
    /// `execution`, the tool kind, or `None`.
    pub node_type: Option<Arc<str>>,
    /// Status text, such as `COMPLETED`.
    pub status: Option<Cow<'static, str>>,
    /// Command that the event refers to.
    pub command_id: Option<CommandId>,
    /// Parent execution. Set only on `playbook_started`.
    pub parent_execution_id: Option<ExecutionId>,
    /// Worker that caused the event.
    pub worker_id: Option<Arc<str>>,
    pub context: Option<String>,
    /// Result object: `status`, and optionally `context` and `reference`.
    pub result: Option<String>,
    /// Metadata of the event as JSON.
    pub meta: Option<String>,
    /// Failure as a single sentence.
    pub error: Option<String>,
    /// Duration. Set only on reported and imported rows.
    pub duration: Option<f64>,
    /// ID sent with a report, if the server assigned another.
    pub idempotency_key: Option<i64>,
    /// Further columns by name, as a JSON object. Set only on reported and imported rows.
    pub more: Option<String>,
}

/// Values of `event_type` for facts that the engine decides.
pub mod types {
    pub const PLAYBOOK_STARTED: &str = "playbook_started";
    pub const STEP_ENTER: &str = "step.enter";
    /// A step discarded join tokens without starting.
    pub const TOKENS_DROPPED: &str = "tokens.dropped";
    /// An admission policy denied join tokens.
    pub const STEP_DENIED: &str = "step.denied";
    /// An admission policy lets a token wait.
    pub const STEP_HELD: &str = "step.held";
    /// A loop over a collection started.
    pub const LOOP_STARTED: &str = "loop.started";
    /// Items of a loop were recorded.
    pub const LOOP_ITEMS: &str = "loop.items";
    pub const LOOP_DONE: &str = "loop.done";
    /// A loop over the rows of a cursor started.
    pub const STAGE_OPENED: &str = "stage.opened";
    /// A loop over the rows of a cursor has no row left.
    pub const STAGE_CLOSED: &str = "stage.closed";
    /// The claim of a frame's rows started.
    pub const FRAME_DISPATCHED: &str = "frame.dispatched";
    /// A frame's rows were claimed.
    pub const FRAME_STARTED: &str = "frame.started";
    /// All rows of a frame succeeded.
    pub const FRAME_COMMITTED: &str = "frame.committed";
    /// A row of a frame failed.
    pub const FRAME_FAILED: &str = "frame.failed";
    /// The engine issued a command.
    pub const COMMAND_ISSUED: &str = "command.issued";
    /// A worker claimed a command.
    pub const COMMAND_CLAIMED: &str = "command.claimed";
    pub const COMMAND_STARTED: &str = "command.started";
    /// A command was parked and occupies no worker.
    pub const COMMAND_PARKED: &str = "command.parked";
    pub const CALL_DONE: &str = "call.done";
    pub const CALL_ERROR: &str = "call.error";
    pub const COMMAND_COMPLETED: &str = "command.completed";
    pub const COMMAND_FAILED: &str = "command.failed";
    pub const COMMAND_EXPIRED: &str = "command.expired";
    /// A command was cancelled together with its execution.
    pub const COMMAND_CANCELLED: &str = "command.cancelled";
    pub const CTX_UPDATED: &str = "ctx.updated";
    pub const STEP_EXIT: &str = "step.exit";
    pub const PLAYBOOK_COMPLETED: &str = "playbook.completed";
    pub const PLAYBOOK_FAILED: &str = "playbook.failed";
    pub const PLAYBOOK_CANCELLED: &str = "playbook_cancelled";
}

/// Node name of rows that refer to the execution as a whole.
pub const PLAYBOOK_NODE: &str = "playbook";

/// Node ID and node type of subscription lifecycle rows. Their node name is the subscription's
/// path.
pub const SUBSCRIPTION_NODE: &str = "subscription";

/// Times among the further columns of a row.
#[derive(Deserialize)]
struct Times {
    event_time: Option<Timestamp>,
}

impl EventRow {
    /// Returns the event time given by the producer of a report, if present. `created_at` is the
    /// time at which the server received the report.
    pub fn produced_at(&self) -> Option<Timestamp> {
        let more = self.more.as_deref().filter(|_| self.origin == Origin::Reported)?;
        serde_json::from_str::<Times>(more).ok()?.event_time
    }

    /// Returns the node ID: the node's name, or a fixed ID where the name is a catalog path.
    pub fn node_id(&self) -> Option<&str> {
        let event_type = self.event_type.as_deref().unwrap_or_default();
        match event_type {
            types::PLAYBOOK_STARTED => Some(PLAYBOOK_NODE),
            _ if SubscriptionEvent::from_event_type(event_type).is_some() => {
                Some(SUBSCRIPTION_NODE)
            }
            _ => self.node_name.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests;

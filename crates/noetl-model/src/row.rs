//! The stored and wire shape of an event: named columns, JSON in `context`, `result` and `meta`.
//!
//! Stores keep rows, the engine folds [`crate::Event`]s; [`EventRow::from`] and [`EventRow::decode`] are
//! the only bridge, so every store writes the same bytes. Rows are lean: what can be derived (the
//! textual command id, the previous event's id) is added where a row is shown, not stored.

mod decode;
mod encode;
mod error;
mod foreign;
mod moved;
mod repeat;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use crate::event::Lifecycle;
use crate::{CommandId, EventId, ExecutionId, Origin, Seq, Timestamp};

pub use error::RowError;

/// One row of the log. JSON columns hold compact JSON text.
///
/// The type, the node and the status are missing in some imported rows and nowhere else.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Whose log it is in.
    pub execution_id: ExecutionId,
    pub event_id: EventId,
    /// Its place in the log.
    pub seq: Seq,
    /// When it was decided.
    pub created_at: Timestamp,
    /// Who put it into the log.
    pub origin: Origin,
    /// What happened, in the wire's vocabulary.
    pub event_type: Option<Cow<'static, str>>,
    /// The step, the catalog path for `playbook_started`, or `playbook`.
    pub node_name: Option<Arc<str>>,
    /// `execution`, the tool's kind, or nothing.
    pub node_type: Option<Arc<str>>,
    /// The wire's status text.
    pub status: Option<Cow<'static, str>>,
    /// The command it is about.
    pub command_id: Option<CommandId>,
    /// The execution that started this one; only on `playbook_started`.
    pub parent_execution_id: Option<ExecutionId>,
    /// The worker it came from.
    pub worker_id: Option<Arc<str>>,
    pub context: Option<String>,
    /// What came out: an object with `status` and at most `context` and `reference`.
    pub result: Option<String>,
    /// What helps to read the row.
    pub meta: Option<String>,
    /// The failure in one sentence.
    pub error: Option<String>,
    /// How long it took; only on reported and imported rows.
    pub duration: Option<f64>,
    /// The id a report came with, when the server gave it another.
    pub idempotency_key: Option<i64>,
    /// Further columns by name; only on reported and imported rows.
    pub more: Option<String>,
}

/// The `event_type` texts of the facts the engine decides.
pub mod types {
    pub const PLAYBOOK_STARTED: &str = "playbook_started";
    pub const STEP_ENTER: &str = "step.enter";
    /// Tokens ended at a step without starting it.
    pub const TOKENS_DROPPED: &str = "tokens.dropped";
    /// Admission refused tokens.
    pub const STEP_DENIED: &str = "step.denied";
    /// Admission lets a token wait.
    pub const STEP_HELD: &str = "step.held";
    /// A loop over a collection began.
    pub const LOOP_STARTED: &str = "loop.started";
    /// Items of a loop were recorded.
    pub const LOOP_ITEMS: &str = "loop.items";
    pub const LOOP_DONE: &str = "loop.done";
    /// A loop over rows began.
    pub const STAGE_OPENED: &str = "stage.opened";
    /// A loop over rows has no row left.
    pub const STAGE_CLOSED: &str = "stage.closed";
    /// A frame of rows is being claimed.
    pub const FRAME_DISPATCHED: &str = "frame.dispatched";
    /// A frame's rows were claimed.
    pub const FRAME_STARTED: &str = "frame.started";
    /// A frame's rows ended well.
    pub const FRAME_COMMITTED: &str = "frame.committed";
    /// A row of a frame failed.
    pub const FRAME_FAILED: &str = "frame.failed";
    /// Work was handed out.
    pub const COMMAND_ISSUED: &str = "command.issued";
    /// A worker took it.
    pub const COMMAND_CLAIMED: &str = "command.claimed";
    pub const COMMAND_STARTED: &str = "command.started";
    /// It waits, held by no worker.
    pub const COMMAND_PARKED: &str = "command.parked";
    pub const CALL_DONE: &str = "call.done";
    pub const CALL_ERROR: &str = "call.error";
    /// The command ended well.
    pub const COMMAND_COMPLETED: &str = "command.completed";
    /// The command ended badly.
    pub const COMMAND_FAILED: &str = "command.failed";
    /// The command's lease ended.
    pub const COMMAND_EXPIRED: &str = "command.expired";
    /// The command was stopped.
    pub const COMMAND_CANCELLED: &str = "command.cancelled";
    /// Context variables were set.
    pub const CTX_UPDATED: &str = "ctx.updated";
    pub const STEP_EXIT: &str = "step.exit";
    /// The execution ended well.
    pub const PLAYBOOK_COMPLETED: &str = "playbook.completed";
    /// The execution ended badly.
    pub const PLAYBOOK_FAILED: &str = "playbook.failed";
    /// The execution was stopped.
    pub const PLAYBOOK_CANCELLED: &str = "playbook_cancelled";
}

/// The node name of rows about the execution as a whole.
pub const PLAYBOOK_NODE: &str = "playbook";

/// The node id and the node type of rows about the life of a subscription; their name is its path.
pub const SUBSCRIPTION_NODE: &str = "subscription";

/// Times among the further columns of a row.
#[derive(Deserialize)]
struct Times {
    event_time: Option<Timestamp>,
}

impl EventRow {
    /// Returns the time that the producer of a report gave, if it gave one. `created_at` is the time
    /// at which the server took the report.
    pub fn produced_at(&self) -> Option<Timestamp> {
        let more = self.more.as_deref().filter(|_| self.origin == Origin::Reported)?;
        serde_json::from_str::<Times>(more).ok()?.event_time
    }

    /// The node id: the node's name, unless the name is a catalog path.
    pub fn node_id(&self) -> Option<&str> {
        let event_type = self.event_type.as_deref().unwrap_or_default();
        match event_type {
            types::PLAYBOOK_STARTED => Some(PLAYBOOK_NODE),
            _ if Lifecycle::from_event_type(event_type).is_some() => Some(SUBSCRIPTION_NODE),
            _ => self.node_name.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests;

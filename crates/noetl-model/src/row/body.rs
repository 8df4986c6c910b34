//! Encoding of the events that one append adds to a log, as one row.
//!
//! The body is a JSON array with one element per event. An element is an array as well:
//!
//! ```json
//! ["step.enter", "load", 2, null, {"m": {"generation": 1}}]
//! ```
//!
//! | index | value |
//! |---|---|
//! | 0 | event type, or null |
//! | 1 | node name, or null |
//! | 2 | ID of the append's last event minus the ID of this event |
//! | 3 | ID of the append's last event minus the command ID, or null |
//! | 4 | the other columns by the keys of `decode::Columns` |
//!
//! A difference that a 64-bit integer can't hold is replaced by the ID itself, as a text; the same holds
//! for the time difference `a`. Values at the end that are null, zero, or empty are omitted. JSON columns are embedded as they
//! are, so a decoded row has the same bytes. Stores show one row per event in the view `event`, which
//! unpacks bodies in SQL: a change of this format needs new views and stays readable here.

mod decode;
mod encode;

use super::types;
use crate::{EventId, ExecutionId, Seq, Timestamp};

pub use decode::decode;

/// Maximum size of a body with several events, in bytes. Larger appends are split into several rows.
pub const BODY_MAX: usize = 1 << 20;

/// Columns of an append beside its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendHead {
    pub execution: ExecutionId,
    /// Sequence number of the first event in the body.
    pub first_seq: Seq,
    /// Sequence number of the last event in the body.
    pub last_seq: Seq,
    /// ID of the event at `last_seq`.
    pub last_event: EventId,
    /// Time of the event at `last_seq`.
    pub created_at: Timestamp,
}

/// Consecutive events of one log, encoded as one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRow {
    pub head: AppendHead,
    pub body: String,
}

/// Start of a result, before its status.
const RESULT_START: &str = "{\"status\":\"";
/// Text between the status of a result and its context.
const RESULT_CONTEXT: &str = "\",\"context\":";
/// Start of a context that has only data.
const DATA_START: &str = "{\"data\":";

/// Returns the status that most decided events of a type have. Elements omit it.
fn usual_status(event_type: &str) -> Option<&'static str> {
    DECIDED.iter().find(|(known, _)| *known == event_type).map(|(_, status)| *status)
}

/// Types of decided events with their usual status. Stored bodies depend on this table and views
/// repeat it: add entries only together with new views, and don't change any.
pub const DECIDED: [(&str, &str); 20] = [
    (types::STEP_ENTER, "ENTERED"),
    (types::COMMAND_ISSUED, "PENDING"),
    (types::COMMAND_CLAIMED, "RUNNING"),
    (types::CALL_DONE, "COMPLETED"),
    (types::COMMAND_COMPLETED, "COMPLETED"),
    (types::STEP_EXIT, "COMPLETED"),
    (types::CTX_UPDATED, "CONTEXT"),
    (types::PLAYBOOK_STARTED, "STARTED"),
    (types::PLAYBOOK_COMPLETED, "COMPLETED"),
    (types::PLAYBOOK_FAILED, "FAILED"),
    (types::PLAYBOOK_CANCELLED, "CANCELLED"),
    (types::COMMAND_STARTED, "STARTED"),
    (types::COMMAND_PARKED, "WAITING"),
    (types::COMMAND_FAILED, "FAILED"),
    (types::COMMAND_EXPIRED, "EXPIRED"),
    (types::COMMAND_CANCELLED, "CANCELLED"),
    (types::CALL_ERROR, "FAILED"),
    (types::TOKENS_DROPPED, "DROPPED"),
    (types::STEP_DENIED, "DENIED"),
    (types::STEP_HELD, "WAITING"),
];

#[cfg(test)]
mod tests;

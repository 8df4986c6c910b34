//! Rows without effect on state: reports of workers and clients, and imported rows.

use std::sync::Arc;

use crate::{CommandId, ExecutionId, Map, Value};

/// A report of a worker or client, stored unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedEvent {
    /// Value of the column `event_type`.
    pub event_type: String,
    /// Step that the report names.
    pub step: Arc<str>,
    pub status: String,
    /// Payload of the report, stored as `result.context`.
    pub payload: Option<Value>,
    /// Value of the column `meta`.
    pub meta: Option<Value>,
    pub worker: Option<Arc<str>>,
    /// ID sent with the report, if the server assigned another. A resent report is recognized by
    /// either ID.
    pub key: Option<i64>,
    /// Columns that only some reports have. `None` if all of them are empty.
    pub columns: Option<Box<ReportColumns>>,
}

/// Columns of the published schema that only some reports have. Stored and shown, but without
/// effect on state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportColumns {
    /// Value of the column `node_type`.
    pub node_type: Option<Arc<str>>,
    /// Value of the column `command_id`.
    pub command: Option<CommandId>,
    /// Value of the column `parent_execution_id`.
    pub parent_execution: Option<ExecutionId>,
    /// Value of the column `duration`, in the unit that the producer chose.
    pub duration: Option<f64>,
    /// Value of the column `context`.
    pub context: Option<Value>,
    /// Value of the field `result.reference`.
    pub reference: Option<Value>,
    /// Value of the column `error`.
    pub error: Option<String>,
    /// Further columns, by their names in the published schema. `event_time` is the time given by
    /// the producer.
    pub more: Map,
}

impl ReportColumns {
    /// Returns the columns, or `None` if no column has a value.
    pub fn if_any(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// Returns mutable references to every JSON value, for validation and secret redaction.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        let own = [&mut self.context, &mut self.reference].into_iter().flatten();
        own.chain(self.more.values_mut())
    }

    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let own = [&self.context, &self.reference].into_iter().flatten();
        own.chain(self.more.values())
    }
}

/// A row of another database, column by column. No column is guaranteed to be valid or present.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportedEvent {
    /// Value of the column `event_type`.
    pub event_type: Option<String>,
    /// Value of the column `node_name`.
    pub node_name: Option<Arc<str>>,
    /// Value of the column `node_type`.
    pub node_type: Option<Arc<str>>,
    pub status: Option<String>,
    /// Command that the row refers to.
    pub command: Option<CommandId>,
    /// Parent of the row's execution.
    pub parent_execution: Option<ExecutionId>,
    pub worker: Option<Arc<str>>,
    /// Duration, in the unit that the producer chose.
    pub duration: Option<f64>,
    pub context: Option<Value>,
    pub result: Option<Value>,
    pub meta: Option<Value>,
    /// Failure as a text for people.
    pub error: Option<String>,
    /// ID sent with the row, if the server assigned another.
    pub key: Option<i64>,
    /// Further columns, by their names in the published schema. Stored, but unused by this control
    /// plane. Empty if the row had none.
    pub more: Map,
}

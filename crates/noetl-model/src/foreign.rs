//! Rows that decide nothing: said by workers and clients, or written elsewhere.

use std::sync::Arc;

use crate::{CommandId, ExecutionId, Map, Value};

/// A row said by a worker or client, kept as it was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// Its `event_type`.
    pub event_type: String,
    /// The step it names.
    pub step: Arc<str>,
    pub status: String,
    /// What it said, as `result.context`.
    pub payload: Option<Value>,
    /// Its `meta`.
    pub meta: Option<Value>,
    pub worker: Option<Arc<str>>,
    /// The id it came with, when the server gave it another; a repeat is known by either.
    pub key: Option<i64>,
    /// Columns that only some reports have; `None` when this one has none of them.
    pub columns: Option<Box<ReportColumns>>,
}

/// Columns of the published schema that only some reports have. They are kept and shown; nothing is
/// decided by them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportColumns {
    /// Its `node_type`.
    pub node_type: Option<Arc<str>>,
    /// Its `command_id`.
    pub command: Option<CommandId>,
    /// Its `parent_execution_id`.
    pub parent_execution: Option<ExecutionId>,
    /// Its `duration`, in the unit that its writer chose.
    pub duration: Option<f64>,
    /// Its `context`.
    pub context: Option<Value>,
    /// Its `result.reference`.
    pub reference: Option<Value>,
    /// Its `error`.
    pub error: Option<String>,
    /// Its further columns, by their names in the published schema. `event_time` is the time that
    /// the producer gave.
    pub more: Map,
}

impl ReportColumns {
    /// Returns the columns, or `None` when no column has a value.
    pub fn if_any(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// Returns every JSON value, for checks and for the removal of secrets.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        let own = [&mut self.context, &mut self.reference].into_iter().flatten();
        own.chain(self.more.values_mut())
    }

    /// Returns every JSON value.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let own = [&self.context, &self.reference].into_iter().flatten();
        own.chain(self.more.values())
    }
}

/// A row of another database, column by column. None of them can be relied on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// Its `event_type`.
    pub event_type: Option<String>,
    /// Its `node_name`.
    pub node_name: Option<Arc<str>>,
    /// Its `node_type`.
    pub node_type: Option<Arc<str>>,
    pub status: Option<String>,
    /// The command it is about.
    pub command: Option<CommandId>,
    /// The execution that started its execution.
    pub parent_execution: Option<ExecutionId>,
    pub worker: Option<Arc<str>>,
    /// How long it took, in the unit its writer chose.
    pub duration: Option<f64>,
    pub context: Option<Value>,
    pub result: Option<Value>,
    /// What helps to read it.
    pub meta: Option<Value>,
    /// The failure in words.
    pub error: Option<String>,
    /// The id it came with, when the server gave it another.
    pub key: Option<i64>,
    /// Its further columns, by their names in the published schema: none of ours needs them, so
    /// they are only kept. Empty when it had none.
    pub more: Map,
}

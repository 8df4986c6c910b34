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
    /// Its status text.
    pub status: String,
    /// What it said, as `result.context`.
    pub payload: Option<Value>,
    /// Its `meta`.
    pub meta: Option<Value>,
    /// Who said it.
    pub worker: Option<Arc<str>>,
    /// The id it came with, when the server gave it another; a repeat is known by either.
    pub key: Option<i64>,
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
    /// Its status text.
    pub status: Option<String>,
    /// The command it is about.
    pub command: Option<CommandId>,
    /// The execution that started its execution.
    pub parent_execution: Option<ExecutionId>,
    /// Who said it.
    pub worker: Option<Arc<str>>,
    /// How long it took, in the unit its writer chose.
    pub duration: Option<f64>,
    /// What went in.
    pub context: Option<Value>,
    /// What came out.
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

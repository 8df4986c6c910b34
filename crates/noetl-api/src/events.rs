//! Events: what workers say, and how the log is shown.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventRequest {
    /// The execution it is about.
    pub execution_id: Id,
    /// What is said about it.
    #[serde(flatten)]
    pub said: Said,
}

/// One thing said about an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Said {
    /// The step it is about.
    pub step: String,
    /// What kind of thing.
    #[serde(alias = "name")]
    pub event_type: String,
    /// What is said.
    #[serde(default, alias = "context")]
    pub payload: Value,
    /// What helps to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Who says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Where the result is: `data` for the payload, `ref` for `result_uri`, `refs` for `event_ids`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_kind: Option<String>,
    /// Where a result of kind `ref` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_uri: Option<String>,
    /// Which events hold the parts of a result of kind `refs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_ids: Option<Vec<Id>>,
    /// Whether it calls for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actionable: Option<bool>,
    /// Whether it is worth showing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub informative: Option<bool>,
    /// The id it was given, by which a repeat is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// Its status text; derived from the type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_at: Option<Timestamp>,
}

impl Said {
    /// A thing said about a step, with nothing but a type and a payload.
    pub fn new(step: impl Into<String>, event_type: impl Into<String>, payload: Value) -> Self {
        Self {
            step: step.into(),
            event_type: event_type.into(),
            payload,
            meta: None,
            worker_id: None,
            result_kind: None,
            result_uri: None,
            event_ids: None,
            actionable: None,
            informative: None,
            event_id: None,
            status: None,
            created_at: None,
        }
    }
}

/// The reply to one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventReply {
    /// `ok`.
    pub status: String,
    /// The id it has in the log.
    pub event_id: Id,
    /// Always 0: commands are issued by the journal, not by the request.
    pub commands_generated: usize,
}

/// The body of `POST /api/events/batch`. Its items are decoded one by one, so that one that is
/// wrong does not take the others with it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = EventBatchRequest)]
pub struct BatchRequest {
    /// The execution all of them are about.
    pub execution_id: Id,
    /// Who says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Each one a [`Said`].
    #[schema(value_type = Vec<Value>)]
    pub events: Vec<Box<RawValue>>,
}

/// The reply to a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EventBatchReply)]
pub struct BatchReply {
    /// `ok`.
    pub status: String,
    /// The ids of the events that were kept, in order.
    pub event_ids: Vec<Id>,
    /// Always 0.
    pub commands_generated: usize,
    /// What was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// An item of a batch that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rejected {
    /// Its place in the batch, from 0.
    pub index: usize,
    /// The id it came with.
    pub event_id: Option<Id>,
    /// Why it was not kept.
    pub error: String,
}

/// One row of an execution's log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// Whose log it is in.
    pub execution_id: Id,
    /// The catalog entry of that execution.
    pub catalog_id: Id,
    /// The execution that started that one.
    pub parent_execution_id: Option<Id>,
    /// The event that an imported row names as its parent. Other events follow one another by `seq`.
    pub parent_event_id: Option<Id>,
    /// Its place in the log: 1, 2, 3 …
    pub seq: u64,
    /// Its id.
    pub event_id: Id,
    /// What happened; an imported row may not say.
    pub event_type: Option<String>,
    /// The step, or `playbook`.
    pub node_id: Option<String>,
    /// The same again, but the catalog path for `playbook_started`.
    pub node_name: Option<String>,
    /// `execution`, the tool's kind, or nothing.
    pub node_type: Option<String>,
    /// Its status text.
    pub status: Option<String>,
    /// When it happened: for a report, the time that its producer gave, if it gave one.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the server wrote it. Time travel and durations use this time.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// How long what ends with it took, in seconds, where its beginning is in the same reply; for a
    /// reported or imported row, the value that it came with.
    pub duration: Option<f64>,
    /// `decided` by the engine, `reported` by a worker or client, or `imported`.
    pub origin: String,
    /// The worker it came from.
    pub worker_id: Option<String>,
    /// What went in.
    #[schema(value_type = Option<Value>)]
    pub context: Option<Box<RawValue>>,
    /// What came out.
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
    /// What helps to read the row; `command_id` in its textual form among it.
    pub meta: Option<Value>,
    /// The failure in one sentence.
    pub error: Option<String>,
}

/// The reply of `GET /api/executions/{id}/events`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventsReply {
    /// Whose log it is.
    pub execution_id: Id,
    /// A stretch of it, oldest first.
    pub events: Vec<EventView>,
    /// Where to go on: the `after` of the next request.
    pub next_after: u64,
    /// How many events the log holds.
    pub total_events: u64,
}

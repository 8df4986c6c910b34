//! Events: reports from workers and clients, and the event log of an execution.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventRequest {
    /// ID of the execution that the event belongs to.
    pub execution_id: Id,
    /// Reported event, with its fields at the top level of the body.
    #[serde(flatten)]
    pub said: EventReportBody,
}

/// An event reported by a worker or client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventReportBody {
    /// Step that the event belongs to.
    pub step: String,
    /// Event type, such as `call.done`. Also accepted as `name`.
    #[serde(alias = "name")]
    pub event_type: String,
    /// Event data. Also accepted as `context`.
    #[serde(default, alias = "context")]
    pub payload: Value,
    /// Metadata of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// Name of the reporting worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Location of the result: `data` for `payload`, `ref` for `result_uri`, `refs` for
    /// `event_ids`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_kind: Option<String>,
    /// URI of the result, for result kind `ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_uri: Option<String>,
    /// IDs of the events that hold the parts of the result, for result kind `refs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_ids: Option<Vec<Id>>,
    /// Whether the event requires work. Default: `true` for a single event, `false` in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actionable: Option<bool>,
    /// Whether the event is worth showing to users. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub informative: Option<bool>,
    /// Event ID chosen by the sender. Resending an event with the same ID has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// Status text of the event. Default: derived from the event type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Time of the event, by the sender's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub created_at: Option<Timestamp>,
}

impl EventReportBody {
    /// Creates an event with a step, type, and payload. All other fields are unset.
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

/// Response of `POST /api/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Event ID in the event log.
    pub event_id: Id,
    /// Always 0. The journal issues commands after the response.
    pub commands_generated: usize,
}

/// Body of `POST /api/events/batch`. The server decodes the items one by one, so a malformed item
/// doesn't affect the others.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = EventBatchRequest)]
pub struct EventBatchRequest {
    /// ID of the execution that all events belong to.
    pub execution_id: Id,
    /// Name of the reporting worker. Default for items without a `worker_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Events to report, at most 50,000. Each item is a [`EventReportBody`].
    #[schema(value_type = Vec<Value>)]
    pub events: Vec<Box<RawValue>>,
}

/// Response of `POST /api/events/batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EventBatchReply)]
pub struct EventBatchReply {
    /// Always `ok`, even if items were rejected.
    pub status: String,
    /// IDs of the stored events, in request order.
    pub event_ids: Vec<Id>,
    /// Always 0. The journal issues commands after the response.
    pub commands_generated: usize,
    /// Items that were not stored. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
}

/// An item of a batch that was not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rejected {
    /// Zero-based index in the batch.
    pub index: usize,
    /// Event ID of the item, if it has a readable one.
    pub event_id: Option<Id>,
    /// Reason for the rejection.
    pub error: String,
}

/// An event of an execution.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// ID of the execution that the event belongs to.
    pub execution_id: Id,
    /// Catalog entry ID of the execution's playbook.
    pub catalog_id: Id,
    /// ID of the parent execution.
    pub parent_execution_id: Option<Id>,
    /// Parent event named by an imported event. `null` for other events, which are ordered by
    /// `seq`.
    pub parent_event_id: Option<Id>,
    /// Sequence number in the event log, starting at 1 without gaps.
    pub seq: u64,
    /// Event ID, unique in the installation.
    pub event_id: Id,
    /// Event type, such as `step.enter`. `null` if an imported event has none.
    pub event_type: Option<String>,
    /// Step name, or `playbook` for `playbook_started`.
    pub node_id: Option<String>,
    /// Step name, or the catalog path for `playbook_started`.
    pub node_name: Option<String>,
    /// `execution`, the tool kind, or `null`.
    pub node_type: Option<String>,
    /// Status text of the event.
    pub status: Option<String>,
    /// Time of the event. For a reported event, the sender's time if it sent one.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time at which the server wrote the event. Replay and durations use this time.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// Duration in seconds of the command, step run, or execution that the event ends, if the same
    /// response contains its start. For a reported or imported event, the value it came with.
    pub duration: Option<f64>,
    /// Origin of the event: `decided` by the engine, `reported` by a worker or client, or
    /// `imported`.
    pub origin: String,
    /// Name of the worker that caused the event.
    pub worker_id: Option<String>,
    /// Input, such as the tool settings and arguments of a command.
    #[schema(value_type = Option<Value>)]
    pub context: Option<Box<RawValue>>,
    /// Output, such as the result of a command.
    #[schema(value_type = Option<Value>)]
    pub result: Option<Box<RawValue>>,
    /// Metadata of the event, including `command_id` as `<execution>:<step>:<event>`.
    pub meta: Option<Value>,
    /// Failure as one sentence.
    pub error: Option<String>,
}

/// Response of `GET /api/executions/{id}/events`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventsReply {
    /// ID of the execution that the events belong to.
    pub execution_id: Id,
    /// Page of events, oldest first.
    pub events: Vec<EventView>,
    /// Value of `after` for the next request.
    pub next_after: u64,
    /// Number of events in the event log.
    pub total_events: u64,
}

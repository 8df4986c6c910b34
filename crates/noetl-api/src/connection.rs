//! Messages of the connection between a worker and the control plane.
//!
//! `GET /api/worker/connect` upgrades to a WebSocket. Each frame is a text message with one JSON
//! object, or an array of objects; the member `type` selects the message. `docs/protocol.md` is
//! the reference for authors of workers.

mod frame;

use noetl_model::{Failure, Map, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::Id;
use crate::completions::{CompletionItem, ContentStored};
use crate::logs::LogLineItem;

pub use self::frame::{Frames, WireMessage, decode_frame};

/// Version of the protocol in `hello` and `welcome`.
pub const PROTOCOL: u32 = 1;

/// Maximum size of a frame, in bytes.
pub const FRAME_MAX: usize = 1 << 20;

/// Maximum number of messages in one frame.
pub const FRAME_MESSAGES_MAX: usize = 1000;

/// Message from a worker to the server.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerMessage {
    /// First message of a connection.
    Hello(Box<Hello>),
    /// Outcomes of commands that the worker ran.
    Completions(Completions),
    /// Commands that the worker holds, and lines that they printed.
    Heartbeat(Box<Heartbeat>),
    /// The worker accepts no more commands.
    Drain(Drain),
    /// Error after which the worker closes the connection.
    Error(ProtocolError),
}

/// Message from the server to a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// Parameters of the connection, in response to `hello`.
    Welcome(Box<Welcome>),
    /// Commands that are leased to the worker, to run.
    Commands(Commands),
    /// Outcomes of completions and heartbeats.
    Acks(Acks),
    /// Commands to stop, because their result is no longer needed.
    Cancel(Cancel),
    /// The server closes the connection soon.
    Drain(Drain),
    /// Error after which the server closes the connection.
    Error(ProtocolError),
}

/// Message `hello`: identity and capacity of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerHello)]
pub struct Hello {
    /// Version of the protocol that the worker speaks: 1.
    pub protocol: u32,
    /// Name of the worker, at most 200 bytes. Unique in the tenant.
    pub worker_id: String,
    /// Public key of the worker process. A different key under the same name means a new process:
    /// the leases of the previous process end. A worker that reads no sealed credentials may send
    /// any text that is unique to the process, at most 200 bytes.
    pub public_key: String,
    /// Worker pools whose commands the worker runs, at most 16. Default: the pool of the token, or
    /// `shared`.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Tool kinds that the worker supports, at most 1,000. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<KindDeclaration>>,
    /// Whether the worker also accepts commands of other kinds, which it then fails. Default:
    /// `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_kinds: bool,
    /// Maximum number of commands that the worker holds at a time, 1 to 10,000.
    pub slots: usize,
    /// Duration of the leases in seconds, 10 to 300. Default: 45, or what the server is configured
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u64>,
    /// Commands that the worker holds from an earlier connection: received, and without the ack of
    /// a completion. At most 10,000.
    #[serde(default)]
    pub holds: Vec<Id>,
}

/// A tool kind that a worker supports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KindDeclaration {
    /// Name of the kind, such as `http`.
    pub name: String,
    /// JSON Schema of the tool's settings. Default: an empty object, which accepts everything.
    #[serde(default = "empty")]
    #[schema(value_type = Object)]
    pub settings: Value,
    /// JSON Schema of the tool's result. Default: an empty object, which accepts everything.
    #[serde(default = "empty")]
    #[schema(value_type = Object)]
    pub result: Value,
}

impl KindDeclaration {
    /// Creates a declaration without schemas.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), settings: empty(), result: empty() }
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// Message `welcome`: parameters of the connection, and what became of the commands in `holds`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerWelcome)]
pub struct Welcome {
    /// Version of the protocol that the server speaks: 1.
    pub protocol: u32,
    /// Name of this connection in the server log.
    pub session: String,
    /// Interval of heartbeats with `commands`, in seconds.
    pub heartbeat_seconds: u64,
    /// Seconds without any frame or pong after which either side closes the connection.
    pub silence_seconds: u64,
    /// Duration of the leases in seconds.
    pub lease_seconds: u64,
    /// Maximum size of a frame, in bytes.
    pub frame_max_bytes: usize,
    /// Maximum number of commands that the server sends before it gets completions.
    pub slots: usize,
    /// Commands in `holds` that the worker still holds. Their leases are renewed.
    pub keep: Vec<Id>,
    /// Commands in `holds` that the worker no longer holds. Stop them; completions of them have no
    /// effect.
    pub drop: Vec<Id>,
    /// Commands in `keep` to stop, because their result is no longer needed. They still need a
    /// completion.
    pub cancel: Vec<Id>,
}

/// Message `commands`: commands that are claimed for and leased to the worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerCommands)]
pub struct Commands {
    /// Commands, each a `LeasedCommand`, oldest first.
    #[serde(default)]
    #[schema(value_type = Vec<crate::workers::LeasedCommand>)]
    pub commands: Vec<Box<RawValue>>,
    /// Commands that don't fit into a frame. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<LargeCommand>,
}

/// A command that doesn't fit into a frame. `GET /api/worker/content/{digest}` returns its
/// `LeasedCommand`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LargeCommand {
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Blob with the JSON of the command.
    pub content: ContentStored,
}

/// Message `completions`: outcomes of commands.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerCompletions)]
pub struct Completions {
    /// Completions, at most 1,000. Each item is a `ReportedCompletion`.
    #[schema(value_type = Vec<ReportedCompletion>)]
    pub completions: Vec<Box<RawValue>>,
    /// Whether the server may send a command that a completion issues with the completion's ack.
    /// Default: `true`.
    #[serde(default = "yes")]
    pub next: bool,
}

fn yes() -> bool {
    true
}

/// Completion of one command, sent until it has an ack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportedCompletion {
    /// ID of the completion, at most 200 bytes, which its ack repeats. A resent completion has the
    /// same ID.
    pub id: String,
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Result of the command. With `content`, only the small fields of the result.
    #[serde(default)]
    pub data: Value,
    /// Blob that holds the result, if the result is too large for the event log. Ignored if
    /// `failure` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentStored>,
    /// Failure of the command. If set, `data` and `content` are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub failure: Option<Failure>,
    /// Execution variables that the command set, keyed by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub ctx: Map,
    /// Variables that the command set for its step run only, keyed by dotted path.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub step: Map,
}

impl ReportedCompletion {
    /// Returns the ID of the completion, and the completion as `POST /api/worker/report` has it.
    pub fn into_item(self) -> (String, CompletionItem) {
        let Self { id, execution_id, event_id, data, content, failure, ctx, step } = self;
        (id, CompletionItem { execution_id, event_id, data, content, failure, ctx, step })
    }

    /// Creates a completion from the form of `POST /api/worker/report`.
    pub fn from_item(id: String, item: CompletionItem) -> Self {
        let CompletionItem { execution_id, event_id, data, content, failure, ctx, step } = item;
        Self { id, execution_id, event_id, data, content, failure, ctx, step }
    }
}

/// Message `acks`: outcomes of completions and heartbeats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerAcks)]
pub struct Acks {
    /// Outcomes of completions, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completions: Vec<CompletionOutcome>,
    /// Outcomes of heartbeats, in the order of the heartbeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<HeartbeatOutcome>,
}

/// Ack of one completion, which has at most one that is not `retry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletionOutcome {
    /// ID of the completion, as the worker sent it.
    pub id: String,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Whether the completion was committed, and whether to resend it.
    pub status: AckStatus,
    /// Error message for status `rejected` or `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Outcome of a completion, and whether to resend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AckStatus {
    /// The completion was committed and took effect.
    Accepted,
    /// The command had already ended, also by the same completion sent before, or is unknown. The
    /// completion has no effect.
    Late,
    /// The completion is invalid. Don't resend it; report a failure of the command instead.
    Rejected,
    /// The completion could not be committed. Resend it.
    Retry,
}

/// Message `heartbeat`: renews the leases of the listed commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerHeartbeat)]
pub struct Heartbeat {
    /// ID of the heartbeat, which its ack repeats. Default: 0.
    #[serde(default)]
    pub id: u64,
    /// Number of frames received on this connection, including the one with `welcome`. Default: 0.
    #[serde(default)]
    pub received: u64,
    /// Commands that the worker holds: received, and without the ack of a completion. At most
    /// 10,000. Absent in a heartbeat that only carries `logs`: it renews no leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Id>>,
    /// Lines that commands printed. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogBatch>,
}

/// Lines that one command printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogBatch {
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Printed lines in order, at most 1,000.
    pub lines: Vec<LogLineItem>,
}

/// Ack of one heartbeat, in the order of the heartbeats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatOutcome {
    /// ID of the heartbeat, as the worker sent it.
    pub id: u64,
    /// Commands that the worker no longer holds. Stop them, unless a completion is in flight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Id>,
    /// Error message, if leases were not renewed or lines not stored. Send the heartbeat again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Message `cancel`: commands to stop, because their result is no longer needed. They still need a
/// completion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerCancel)]
pub struct Cancel {
    /// IDs of the commands, without those that the worker was told to stop before.
    pub commands: Vec<Id>,
}

/// Message `drain`: the start of an orderly end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerDrain)]
pub struct Drain {
    /// Reason as readable text, absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Message `error`: a violation of the protocol, or the reason why a connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WorkerProtocolError)]
pub struct ProtocolError {
    /// Stable error code in snake case.
    pub code: String,
    /// Error message for people, without the location.
    pub message: String,
    /// Location of the error, such as `frame 3, message 1, completions[2]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

impl ProtocolError {
    /// Creates an error without a location.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), location: None }
    }

    /// Creates the error for a frame above [`FRAME_MAX`].
    pub fn too_large(size: usize) -> Self {
        let message = format!("a frame has at most {FRAME_MAX} bytes, not {size}");
        Self::new("frame_too_large", message)
    }

    /// Returns the error with this location.
    #[must_use]
    pub fn with_location(self, location: impl Into<String>) -> Self {
        Self { location: Some(location.into()), ..self }
    }
}

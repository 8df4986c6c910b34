//! Workers: that they are there, what they run, what they hold.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::Id;
use crate::commands::CommandMeta;

/// The body of `POST /api/worker/pool/register`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RegisterRuntimeRequest)]
pub struct RegisterRequest {
    /// Its name: with the kind, which runtime it is.
    pub name: String,
    /// `worker_pool`, `server_api` or `broker`.
    #[serde(default = "worker_pool", alias = "component_type")]
    pub kind: String,
    /// Where it is reached.
    #[serde(default)]
    pub uri: Option<String>,
    /// How it stands.
    #[serde(default = "active")]
    pub status: String,
    /// Its labels.
    #[serde(default)]
    pub labels: Option<Value>,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Option<Value>,
    /// How much it can do at once.
    #[serde(default)]
    pub capacity: Option<i32>,
    /// What else it says; a worker's key is at `worker_public_key`.
    #[serde(default)]
    pub runtime: Option<Value>,
}

fn worker_pool() -> String {
    "worker_pool".to_owned()
}

fn active() -> String {
    "active".to_owned()
}

/// A runtime that registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeView {
    /// Its id.
    pub runtime_id: Id,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Where it is reached.
    pub uri: Option<String>,
    /// How it says it stands.
    pub status: String,
    /// Its labels.
    pub labels: Option<Value>,
    /// What it can do.
    pub capabilities: Option<Value>,
    /// How much it can do at once.
    pub capacity: Option<i32>,
    /// What else it says.
    pub runtime: Option<Value>,
    /// When it was last heard of.
    #[schema(value_type = String, format = DateTime)]
    pub heartbeat: Timestamp,
    /// When it first registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its row last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// The body of a heartbeat by name, and of a goodbye.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeNamed {
    /// Its name.
    pub name: String,
    /// Its kind.
    #[serde(default = "worker_pool", alias = "component_type")]
    pub kind: String,
    /// With a goodbye: whether what it still holds is handed out again at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeReply {
    /// `ok`.
    pub status: String,
    /// What was done.
    pub message: String,
}

/// Which runtimes to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RuntimeQuery {
    /// Only this kind; `worker_pool` when nothing is said.
    #[serde(default)]
    pub kind: Option<String>,
    /// Only this status.
    #[serde(default)]
    pub status: Option<String>,
    /// Only names that contain this text.
    #[serde(default)]
    pub name: Option<String>,
}

/// The body of `POST /api/worker/lease`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRequest {
    /// Who asks.
    pub worker_id: String,
    /// The pool it is of; `shared` when nothing is said.
    #[serde(default)]
    pub pool: Option<String>,
    /// The kinds of tools it has; all when nothing is said.
    #[serde(default)]
    pub kinds: Option<Vec<String>>,
    /// How many commands it takes at most.
    #[serde(default = "one")]
    pub max: usize,
    /// How many seconds it waits for the first: up to 30, 0 for not at all.
    #[serde(default)]
    pub wait_seconds: f64,
    /// Its public key. Another one under the same name is another process, and what the one before
    /// it held is lost.
    #[serde(default)]
    pub public_key: Option<String>,
}

fn one() -> usize {
    1
}

/// What a worker is to run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeaseReply {
    /// Commands it holds from now on.
    pub commands: Vec<LeasedCommand>,
    /// How long it holds them without a heartbeat that names them.
    pub lease_seconds: u64,
}

/// A command that was handed out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeasedCommand {
    /// The command: the id of its `command.issued` event.
    pub event_id: Id,
    /// Whose execution it is of.
    pub tenant_id: String,
    /// Its execution.
    pub execution_id: Id,
    /// Its step.
    pub node_name: String,
    /// The kind of its tool.
    pub action: String,
    /// What helps to read it.
    pub meta: CommandMeta,
    /// What to run, as its execution's log has it.
    pub issued: IssuedRow,
}

/// A `command.issued` as a log has it: everything that whoever runs the command may know.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct IssuedRow {
    /// Its place in the log.
    pub seq: u64,
    /// When it was issued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Settings, arguments and what templates may name.
    #[schema(value_type = Object)]
    pub context: Option<Box<RawValue>>,
    /// Generation, attempt, limit, item of a loop.
    #[schema(value_type = Object)]
    pub meta: Option<Box<RawValue>>,
}

/// The body of `POST /api/worker/heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRequest {
    /// Who is there.
    pub worker_id: String,
    /// The commands it holds.
    #[serde(default)]
    pub commands: Vec<Id>,
}

/// What a worker need not run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReply {
    /// `ok`.
    pub status: String,
    /// Not wanted any more: to be stopped.
    pub cancel: Vec<Id>,
    /// Held by it no more: whatever it says of them changes nothing.
    pub lost: Vec<Id>,
    /// How long it holds the others without another heartbeat.
    pub lease_seconds: u64,
}

/// The reply of `GET /api/worker/load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadReply {
    /// One for each worker that holds something, by name.
    pub workers: Vec<LoadView>,
    /// Whether everything that is under way was counted; else there is more.
    pub complete: bool,
}

/// What a worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadView {
    /// Its name.
    pub worker: String,
    /// How many commands it holds.
    pub held: u64,
    /// When the oldest of them was issued.
    #[schema(value_type = String, format = DateTime)]
    pub oldest: Timestamp,
}

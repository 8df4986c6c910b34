//! Workers: registration, command leases, heartbeats, and load.

use noetl_model::{Timestamp, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::Id;
use crate::commands::CommandMeta;

/// Body of `POST /api/worker/pool/register`. Updates the runtime if the name and kind are already
/// registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RegisterRuntimeRequest)]
pub struct RegisterRequest {
    /// Name of the runtime, at most 200 bytes. Unique with `kind` in the tenant.
    pub name: String,
    /// Kind: `worker_pool`, `server_api`, or `broker`. Default: `worker_pool`. Also accepted as
    /// `component_type`.
    #[serde(default = "worker_pool", alias = "component_type")]
    pub kind: String,
    /// URI at which the runtime can be reached.
    #[serde(default)]
    pub uri: Option<String>,
    /// Status of the runtime, as free text. Default: `active`.
    #[serde(default = "active")]
    pub status: String,
    /// Labels of the runtime. `pool_name` names a worker's pool.
    #[serde(default)]
    pub labels: Option<Value>,
    /// Capabilities of the runtime. `tools` lists a worker's tool kinds.
    #[serde(default)]
    pub capabilities: Option<Value>,
    /// Number of commands that the runtime can run concurrently.
    #[serde(default)]
    pub capacity: Option<i32>,
    /// Additional properties. A worker's public key is in `worker_public_key`; a different key
    /// means a new process, and the leases of the previous process end.
    #[serde(default)]
    pub runtime: Option<Value>,
}

fn worker_pool() -> String {
    "worker_pool".to_owned()
}

fn active() -> String {
    "active".to_owned()
}

/// A registered runtime: a worker pool, server, or broker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeView {
    /// ID of the runtime.
    pub runtime_id: Id,
    /// Name of the runtime. Unique with `kind` in the tenant.
    pub name: String,
    /// Kind: `worker_pool`, `server_api`, or `broker`.
    pub kind: String,
    /// URI at which the runtime can be reached.
    pub uri: Option<String>,
    /// Status that the runtime reported.
    pub status: String,
    /// Labels of the runtime. `pool_name` names a worker's pool.
    pub labels: Option<Value>,
    /// Capabilities of the runtime. `tools` lists a worker's tool kinds.
    pub capabilities: Option<Value>,
    /// Number of commands that the runtime can run concurrently.
    pub capacity: Option<i32>,
    /// Additional properties, such as a worker's `worker_public_key`.
    pub runtime: Option<Value>,
    /// Time of the last heartbeat.
    #[schema(value_type = String, format = DateTime)]
    pub heartbeat: Timestamp,
    /// Time at which the runtime first registered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time at which the registration last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// Body of `POST /api/worker/pool/heartbeat` and of `/api/worker/pool/deregister`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeNamed {
    /// Name of the runtime.
    pub name: String,
    /// Kind: `worker_pool`, `server_api`, or `broker`. Default: `worker_pool`. Also accepted as
    /// `component_type`.
    #[serde(default = "worker_pool", alias = "component_type")]
    pub kind: String,
    /// Whether to end the worker's leases, so that its commands are reissued without waiting for
    /// the leases to expire. Only for `deregister`. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,
}

/// Response of `POST /api/worker/pool/heartbeat` and of `/api/worker/pool/deregister`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuntimeReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Confirmation as readable text.
    pub message: String,
}

/// Query of `GET /api/worker/pools`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RuntimeQuery {
    /// Kind to list. Default: `worker_pool`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Status to list, exact match. Default: all.
    #[serde(default)]
    pub status: Option<String>,
    /// Text that the name must contain, case-sensitive. Default: all names.
    #[serde(default)]
    pub name: Option<String>,
}

/// Body of `POST /api/worker/lease`, a long poll for commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandLeaseRequest {
    /// Name of the worker, at most 200 bytes.
    pub worker_id: String,
    /// Worker pool to claim commands from. Default: `shared`.
    #[serde(default)]
    pub pool: Option<String>,
    /// Tool kinds that the worker supports. Default: all.
    #[serde(default)]
    pub kinds: Option<Vec<String>>,
    /// Maximum number of commands to claim, 1 to 1,000. Default: 1.
    #[serde(default = "one")]
    pub max: usize,
    /// Maximum time to wait for the first command, in seconds, 0 to 30. Default: 0, which doesn't
    /// wait.
    #[serde(default)]
    pub wait_seconds: f64,
    /// Public key of the worker. A different key under the same name means a new process: the
    /// leases of the previous process end.
    #[serde(default)]
    pub public_key: Option<String>,
}

fn one() -> usize {
    1
}

/// Response of `POST /api/worker/lease`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeaseReply {
    /// Commands claimed for and leased to the worker. Empty if none arrived within `wait_seconds`.
    pub commands: Vec<LeasedCommand>,
    /// Duration of the leases in seconds. A heartbeat that names a command renews its lease.
    pub lease_seconds: u64,
}

/// A command leased to a worker.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LeasedCommand {
    /// Command ID: the ID of the `command.issued` event.
    pub event_id: Id,
    /// Tenant of the execution.
    pub tenant_id: String,
    /// ID of the command's execution.
    pub execution_id: Id,
    /// Name of the command's step.
    pub node_name: String,
    /// Tool kind, such as `http`.
    pub action: String,
    /// Identifiers and attempt counts.
    pub meta: CommandMeta,
    /// The `command.issued` event, which specifies the work.
    pub issued: IssuedRow,
}

/// A `command.issued` event as stored in the event log, with all data that the worker may read.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct IssuedRow {
    /// Sequence number in the event log.
    pub seq: u64,
    /// Time at which the command was issued.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Tool settings, arguments, and template variables.
    #[schema(value_type = Object)]
    pub context: Option<Box<RawValue>>,
    /// Step run number (`generation`), attempt, time limit, and loop item.
    #[schema(value_type = Object)]
    pub meta: Option<Box<RawValue>>,
}

/// Body of `POST /api/worker/heartbeat`. Renews the leases of all listed commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRequest {
    /// Name of the worker.
    pub worker_id: String,
    /// IDs of the commands that the worker runs, at most 1,000. Default: none.
    #[serde(default)]
    pub commands: Vec<Id>,
}

/// Response of `POST /api/worker/heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReply {
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
    /// Commands to stop, because their result is no longer needed.
    pub cancel: Vec<Id>,
    /// Commands that the worker no longer holds. Reports about them have no effect.
    pub lost: Vec<Id>,
    /// Duration of the renewed leases in seconds.
    pub lease_seconds: u64,
}

/// Response of `GET /api/worker/load`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadReply {
    /// Workers that hold commands, sorted by name.
    pub workers: Vec<LoadView>,
    /// Whether all open commands were counted. If `false`, the counts are too low.
    pub complete: bool,
}

/// Number of commands that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadView {
    /// Name of the worker.
    pub worker: String,
    /// Number of commands that the worker holds.
    pub held: u64,
    /// Time at which the oldest of them was issued.
    #[schema(value_type = String, format = DateTime)]
    pub oldest: Timestamp,
}

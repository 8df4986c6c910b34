//! Registered runtimes (workers, servers, and brokers) and their heartbeats.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{RuntimeId, Tenant, Timestamp, Value};

use crate::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKind {
    /// A broker, which delivers messages.
    Broker,
    /// A server of the API.
    ServerApi,
    /// A worker pool, which runs commands.
    WorkerPool,
}

impl RuntimeKind {
    /// Returns the text stored and sent on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::ServerApi => "server_api",
            Self::WorkerPool => "worker_pool",
        }
    }

    /// Returns `true` if a purge removes runtimes of this kind that no longer send heartbeats.
    pub const fn is_purged(self) -> bool {
        match self {
            Self::WorkerPool => true,
            Self::Broker | Self::ServerApi => false,
        }
    }

    /// Returns the kind with this text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Broker, Self::ServerApi, Self::WorkerPool]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewRuntime {
    /// Runtime ID if the runtime is new; a known one retains its ID.
    pub id: RuntimeId,
    pub kind: RuntimeKind,
    /// Name. Identifies the runtime together with tenant and kind.
    pub name: String,
    pub uri: Option<String>,
    /// Status that the runtime reports, such as `active`.
    pub status: String,
    pub labels: Option<Value>,
    /// Capabilities that the runtime reports.
    pub capabilities: Option<Value>,
    /// Number of commands the runtime can run concurrently.
    pub capacity: Option<i32>,
    /// Further properties that the runtime reports.
    pub runtime: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeRow {
    /// Latest registration, with the ID of the first one.
    pub said: NewRuntime,
    /// Time of the last heartbeat.
    pub heartbeat: Timestamp,
    /// Time of the first registration.
    pub created_at: Timestamp,
    /// Time of the last change of the row.
    pub updated_at: Timestamp,
}

/// Filter of a runtime listing.
#[derive(Debug, Clone, Default)]
pub struct RuntimeFilter {
    /// Includes only runtimes of this kind; `None` includes all.
    pub kind: Option<RuntimeKind>,
    /// Includes only runtimes with this status; `None` includes all.
    pub status: Option<String>,
    /// Includes only names that contain this text (case-sensitive).
    pub name: Option<String>,
}

impl RuntimeFilter {
    /// Returns `true` if the runtime matches the filter. Every store calls this function.
    pub fn takes(&self, runtime: &NewRuntime) -> bool {
        self.kind.is_none_or(|kind| runtime.kind == kind)
            && self.status.as_ref().is_none_or(|status| runtime.status == *status)
            && self.name.as_ref().is_none_or(|text| runtime.name.contains(text))
    }
}

/// Runtimes by tenant, kind, and name. Times are the store's.
#[async_trait]
pub trait RuntimeStore: Send + Sync {
    /// Registers a runtime or updates the registration of a known one, and records a heartbeat.
    /// Concurrent callers create one row. An ID that belongs to another runtime is a bug of the
    /// caller, and an error.
    async fn register_runtime(
        &self,
        tenant: &Tenant,
        runtime: NewRuntime,
    ) -> Result<RuntimeRow, StoreError>;

    /// Records a heartbeat of a runtime. Returns the time since its last one by the store's clock,
    /// or `None` if the runtime is unknown.
    async fn heartbeat(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<Option<Duration>, StoreError>;

    /// Returns runtimes of a tenant by kind, then by name, both in byte order.
    async fn runtimes(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError>;

    /// Removes a runtime. Returns `false` if it is unknown.
    async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Removes worker pools of all tenants whose last heartbeat is at least `older_than` ago, and
    /// returns their number. Servers and brokers stay, because they may send no heartbeat.
    async fn purge_stale(&self, older_than: Duration) -> Result<usize, StoreError>;
}

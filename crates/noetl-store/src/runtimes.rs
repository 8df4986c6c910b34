//! Runtimes: the programs that said they are there, and when they last did.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{RuntimeId, Tenant, Timestamp, Value};

use crate::StoreError;

/// What a runtime is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeKind {
    /// Carries messages.
    Broker,
    /// Serves the API.
    ServerApi,
    /// Runs commands.
    WorkerPool,
}

impl RuntimeKind {
    /// The stored and wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::ServerApi => "server_api",
            Self::WorkerPool => "worker_pool",
        }
    }

    /// Returns `true` if a purge removes runtimes of this kind that send no heartbeat anymore.
    pub const fn is_purged(self) -> bool {
        match self {
            Self::WorkerPool => true,
            Self::Broker | Self::ServerApi => false,
        }
    }

    /// The kind of this text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Broker, Self::ServerApi, Self::WorkerPool]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRuntime {
    /// Its id when it is new; one that is known keeps the id it has.
    pub id: RuntimeId,
    pub kind: RuntimeKind,
    /// Its name: with tenant and kind, which runtime it is.
    pub name: String,
    /// Where it is reached.
    pub uri: Option<String>,
    /// How it says it stands, as `active`.
    pub status: String,
    pub labels: Option<Value>,
    /// What it can do.
    pub capabilities: Option<Value>,
    /// How much it can do at once.
    pub capacity: Option<i32>,
    /// What else it says.
    pub runtime: Option<Value>,
}

/// A runtime that registered.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeRow {
    /// What it said last, with the id it was first given.
    pub said: NewRuntime,
    /// When it was last heard of.
    pub heartbeat: Timestamp,
    /// When it first registered.
    pub created_at: Timestamp,
    /// When its row last changed.
    pub updated_at: Timestamp,
}

/// Which runtimes to list.
#[derive(Debug, Clone, Default)]
pub struct RuntimeFilter {
    /// Only this kind.
    pub kind: Option<RuntimeKind>,
    /// Only this status.
    pub status: Option<String>,
    /// Only names that contain this text, in this case.
    pub name: Option<String>,
}

impl RuntimeFilter {
    /// Whether this runtime is to be listed. Every store asks this one function.
    pub fn takes(&self, runtime: &NewRuntime) -> bool {
        self.kind.is_none_or(|kind| runtime.kind == kind)
            && self.status.as_ref().is_none_or(|status| runtime.status == *status)
            && self.name.as_ref().is_none_or(|text| runtime.name.contains(text))
    }
}

/// Programs by tenant, kind and name. Times are the store's own.
#[async_trait]
pub trait Runtimes: Send + Sync {
    /// Registers a runtime, or takes over what a known one says now; a heartbeat either way. Two
    /// callers at once make one row. An id that another runtime has is a bug of the caller, and an
    /// error.
    async fn register_runtime(
        &self,
        tenant: &Tenant,
        runtime: NewRuntime,
    ) -> Result<RuntimeRow, StoreError>;

    /// Records a heartbeat of a runtime. Returns the time since its last one by the store's clock, or
    /// `None` if the runtime is unknown.
    async fn heartbeat(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<Option<Duration>, StoreError>;

    /// Runtimes of a tenant by kind, then by name, both in byte order.
    async fn runtimes(
        &self,
        tenant: &Tenant,
        filter: &RuntimeFilter,
    ) -> Result<Vec<RuntimeRow>, StoreError>;

    /// Removes a runtime. False when it is unknown.
    async fn deregister(
        &self,
        tenant: &Tenant,
        kind: RuntimeKind,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Removes worker pools of every tenant whose last heartbeat is `older_than` ago or earlier, and
    /// returns how many. Servers and brokers stay: they may send no heartbeat.
    async fn purge_stale(&self, older_than: Duration) -> Result<usize, StoreError>;
}

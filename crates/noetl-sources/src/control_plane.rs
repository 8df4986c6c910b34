//! Control-plane client interface of the runtime.
//!
//! [`Local`](crate::Local) implements it within the process, [`Remote`](crate::Remote) over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, SubscriptionId, Value};
use noetl_playbook::subscription::{MessageRejection, MessageStart};
use noetl_store::{SubscriptionAction, SubscriptionState};
use noetl_tools::ToolCredential;
use noetl_work::{DeadLetter, MessageCounts};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlPlaneError {
    /// The control plane is unavailable. Retry later.
    #[error("{0}")]
    Away(String),
    #[error("{0}")]
    Refused(String),
}

/// Status of a subscription. Two values are equal if the subscription did not change in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionView {
    pub id: SubscriptionId,
    /// Catalog path of the subscription's document.
    pub path: String,
    pub state: SubscriptionState,
    /// Opaque version that changes with every change of the subscription.
    pub moved_at: String,
}

/// Measurements that a runtime reports with a lease renewal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeReport {
    /// Number of messages waiting at the source, if it is known.
    pub backlog: Option<u64>,
    /// Message outcomes since the last report.
    pub counts: MessageCounts,
}

/// Response to a lease request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriptionGrant {
    /// Whether the requester holds the lease.
    pub is_held: bool,
    /// Whether another runtime waits for the lease.
    pub is_awaited: bool,
}

/// Outcome of a start request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The execution is durable.
    New(ExecutionId),
    /// A start with the same key created this execution before.
    Duplicate(ExecutionId),
    /// The execution was not started.
    Failed(StartFailure),
}

/// Reason an execution was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFailure {
    /// Party at fault, which determines whether a retry can succeed.
    pub of: FaultOwner,
    pub code: String,
    pub reason: String,
}

impl From<MessageRejection> for StartFailure {
    fn from(rejection: MessageRejection) -> Self {
        let code = rejection.code().to_owned();
        Self { of: FaultOwner::Message, code, reason: rejection.to_string() }
    }
}

/// Party at fault for a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOwner {
    /// The control plane, temporarily.
    Plane,
    /// The playbook: it doesn't exist or doesn't compile.
    Playbook,
    /// The message: its content is rejected.
    Message,
}

/// An event for an execution's or a subscription's event log.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeEvent {
    /// Event log to append to: that of an execution or of a subscription.
    pub log: ExecutionId,
    /// Event type, such as `subscription.source.connected`.
    pub event_type: &'static str,
    pub status: &'static str,
    pub payload: Value,
}

/// Client of the control plane.
#[async_trait]
pub trait ControlPlaneClient: Send + Sync {
    /// Returns the newest document at a path.
    async fn document(&self, path: &str) -> Result<String, ControlPlaneError>;

    /// Returns the credential of this name with its secrets.
    async fn credential(&self, name: &str) -> Result<ToolCredential, ControlPlaneError>;

    /// Registers the subscription at a path, or returns the existing one.
    async fn register(&self, path: &str) -> Result<SubscriptionView, ControlPlaneError>;

    /// Returns every subscription, including deactivated ones.
    async fn list(&self) -> Result<Vec<SubscriptionView>, ControlPlaneError>;

    async fn view(&self, id: SubscriptionId) -> Result<SubscriptionView, ControlPlaneError>;

    /// Changes the state of a subscription.
    async fn act(
        &self,
        id: SubscriptionId,
        action: SubscriptionAction,
    ) -> Result<SubscriptionView, ControlPlaneError>;

    /// Waits until the subscription's status differs from `seen`, at most a second after the
    /// change. Retries while the control plane is unavailable.
    async fn changed(&self, seen: &SubscriptionView) -> SubscriptionView;

    /// Waits until a subscription may have been registered or changed since the last return.
    async fn stirred(&self);

    /// Acquires or renews the lease of a subscription for `holder`, and records its measurements.
    async fn hold(
        &self,
        view: &SubscriptionView,
        holder: &str,
        ttl: Duration,
        reading: RuntimeReport,
    ) -> Result<SubscriptionGrant, ControlPlaneError>;

    /// Releases the lease of a subscription.
    async fn let_go(&self, view: &SubscriptionView, holder: &str) -> Result<(), ControlPlaneError>;

    /// Starts executions and returns an outcome for each, in request order. `together` limits how
    /// many a batch request contains; `None` sends them individually.
    async fn start(&self, starts: Vec<MessageStart>, together: Option<usize>) -> Vec<StartOutcome>;

    /// Appends an event to an event log.
    async fn note(&self, note: RuntimeEvent) -> Result<(), ControlPlaneError>;

    /// Stores a dead letter for a message that cannot be dispatched.
    async fn bury(&self, id: SubscriptionId, letter: DeadLetter) -> Result<(), ControlPlaneError>;
}

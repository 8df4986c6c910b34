//! What the runtime asks of the control plane, wherever that is.
//!
//! [`Local`](crate::Local) is one in the same process, [`Remote`](crate::Remote) one behind HTTP.

use std::time::Duration;

use async_trait::async_trait;
use noetl_control::{DeadLetter, MessageCounts};
use noetl_model::{ExecutionId, Map, SubscriptionId, Value};
use noetl_store::{SubscriptionAction, SubscriptionState};
use noetl_tools::Credential;

/// Why the control plane did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaneError {
    /// It did not answer, or cannot do so now.
    #[error("{0}")]
    Away(String),
    #[error("{0}")]
    Refused(String),
}

/// Where a subscription stands. Two are equal when nothing moved it in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub id: SubscriptionId,
    /// The path of its document.
    pub path: String,
    pub state: SubscriptionState,
    /// When it last moved.
    pub moved_at: String,
}

/// What a runtime that acts on a subscription says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// How much waits at the source, if it is known.
    pub backlog: Option<u64>,
    /// What became of messages since it was last said.
    pub counts: MessageCounts,
}

/// Whether a runtime may act on a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Whether it may.
    pub is_held: bool,
    /// Whether another waits to.
    pub is_awaited: bool,
}

/// An execution to start for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct NewStart {
    pub playbook: String,
    /// What it is given.
    pub payload: Map,
    /// Which pool runs it.
    pub pool: Option<String>,
    /// The trace it goes on with.
    pub trace: Option<Map>,
    pub subscription: SubscriptionId,
    /// By what a repeat is known, and for how long; none when repeats are not known.
    pub once: Option<(String, Duration)>,
    /// How large the message was.
    pub bytes: usize,
}

/// What became of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It is durable, and will go on.
    New(ExecutionId),
    /// It was started before, as this.
    Duplicate(ExecutionId),
    /// It was not started.
    Failed(Fault),
}

/// Why an execution was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Whose fault it is.
    pub of: FaultOf,
    /// In a word.
    pub code: String,
    /// In a sentence.
    pub reason: String,
}

/// Whose fault it is that an execution was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultOf {
    /// The control plane's, for now.
    Plane,
    /// The playbook's: it is not there, or cannot be used.
    Playbook,
    /// The message's: it is refused for what it is.
    Message,
}

/// Something to be told in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Whose log: an execution's, or that of a subscription.
    pub log: ExecutionId,
    /// What kind of thing.
    pub event_type: &'static str,
    pub status: &'static str,
    pub payload: Value,
}

/// What the runtime asks of the control plane.
#[async_trait]
pub trait Plane: Send + Sync {
    /// The newest document at a path.
    async fn document(&self, path: &str) -> Result<String, PlaneError>;

    /// The credential of this name.
    async fn credential(&self, name: &str) -> Result<Credential, PlaneError>;

    /// Makes the subscription at a path known, or finds it.
    async fn register(&self, path: &str) -> Result<Standing, PlaneError>;

    /// Every subscription, those that are over too.
    async fn list(&self) -> Result<Vec<Standing>, PlaneError>;

    async fn standing(&self, id: SubscriptionId) -> Result<Standing, PlaneError>;

    /// Moves a subscription.
    async fn act(
        &self,
        id: SubscriptionId,
        action: SubscriptionAction,
    ) -> Result<Standing, PlaneError>;

    /// Resolves when the subscription stands elsewhere than where it was seen, within a second of
    /// that. A control plane that does not answer is waited for.
    async fn changed(&self, seen: &Standing) -> Standing;

    /// Resolves when a subscription may have been registered or moved since this last resolved.
    async fn stirred(&self);

    /// Lets `holder` act on a subscription for so long, or go on with it, and takes its reading.
    async fn hold(
        &self,
        standing: &Standing,
        holder: &str,
        ttl: Duration,
        reading: Reading,
    ) -> Result<Hold, PlaneError>;

    /// Ends that.
    async fn let_go(&self, standing: &Standing, holder: &str) -> Result<(), PlaneError>;

    /// Starts executions, and says of each what became of it, in the order asked. `together` is how many
    /// may go in one request, when that is wanted.
    async fn start(&self, starts: Vec<NewStart>, together: Option<usize>) -> Vec<Started>;

    /// Tells something in a log.
    async fn note(&self, note: Note) -> Result<(), PlaneError>;

    /// Keeps a message that cannot be dispatched, with the reason.
    async fn bury(&self, id: SubscriptionId, letter: DeadLetter) -> Result<(), PlaneError>;
}

//! Events: the facts of an execution's event log, in the order they were recorded.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::blob::BlobRef;
pub use crate::command_spec::{CommandSpec, LoopItem};
pub use crate::external::{ImportedEvent, ReportColumns, ReportedEvent};
pub use crate::lifecycle::{SubscriptionEvent, SubscriptionTransition};
pub use crate::loops::{LoopEvent, LoopFact, LoopItemRef};
pub use crate::parked::{Callback, ChildExecution, ParkReason};
pub use crate::tool_run::ToolRun;
use crate::trace::{self, TraceContext};
use crate::{CatalogId, CommandId, EventId, ExecutionId, Failure, Map, Timestamp, Value};

/// Sequence number: index of an event in its execution's log. Starts at 1 and has no gaps; 0 stands
/// for the position before the first event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Position before the first event.
    pub const START: Self = Self(0);

    /// Returns the sequence number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Producer of a row in the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The engine decided the event. Only these rows drive state.
    Decided,
    /// A worker or client reported the event. Stored and shown, but without effect on state.
    Reported,
    /// The event was imported, or comes from another database, for an execution that did not start
    /// here. Listed and replayed, but never driven.
    Imported,
}

impl Origin {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Reported => "reported",
            Self::Imported => "imported",
        }
    }

    /// Returns the origin with this stored text, or `None` if the text is unknown.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Decided, Self::Reported, Self::Imported]
            .into_iter()
            .find(|origin| origin.as_str() == text)
    }
}

/// A fact of an execution's event log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Execution whose log holds the event.
    pub execution: ExecutionId,
    /// Event ID. Larger than the IDs of all earlier events in the log.
    pub id: EventId,
    /// Sequence number in the log.
    pub seq: Seq,
    /// Time at which the engine decided the event.
    pub at: Timestamp,
    pub fact: Fact,
    /// Identity of the caller who requested the change: `token:ID`, `oidc:SUBJECT`,
    /// `session:CREDENTIAL/USER_ID via token:ID`, or `internal`. `None` if the control plane or a
    /// worker caused the event, and where callers have no identity. Only events that the engine
    /// decides have an actor.
    pub actor: Option<Arc<str>>,
}

impl Event {
    /// Returns the producer of the event, derived from the fact.
    pub fn origin(&self) -> Origin {
        match self.fact {
            Fact::Reported(_) => Origin::Reported,
            Fact::Imported(_) => Origin::Imported,
            _ => Origin::Decided,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// An execution started. Boxed, because it is the largest fact and the rarest.
    PlaybookStarted(Box<ExecutionStart>),
    StepEntered {
        step: Arc<str>,
        /// Number of the step run, from 1.
        run: u32,
        /// Number of waiting join tokens that the step consumed. 0 for the first step and for back
        /// arcs.
        tokens: u32,
        /// Round in which a step with `join: any` ran, so that later tokens of the round are
        /// dropped. `None` for other steps.
        round: Option<u32>,
        /// Time at which the step run fails if it is still unfinished.
        deadline: Option<Timestamp>,
    },
    /// A step discarded join tokens without starting.
    TokensDropped { step: Arc<str>, tokens: u32 },
    /// The step's admission policy denied join tokens.
    StepDenied {
        step: Arc<str>,
        /// Number of denied tokens. 0 if a token that waited for admission timed out.
        tokens: u32,
    },
    /// The step's admission policy lets a token wait for a change of variables.
    StepHeld {
        step: Arc<str>,
        /// Number of join tokens merged into the waiting token.
        tokens: u32,
        /// Step whose arc led here.
        from: Option<Arc<str>>,
        /// Time at which the waiting token is denied.
        until: Timestamp,
    },
    /// A loop, a frame, or a set of loop items changed.
    Loop(Box<LoopFact>),
    /// The engine issued a command. The command's ID is this event's ID. Shared with the worker
    /// that runs the command and with the state that may reissue it.
    CommandIssued(Arc<CommandSpec>),
    /// A worker claimed the command.
    CommandClaimed {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        worker: Arc<str>,
    },
    /// The worker reported that it started the command.
    CommandStarted {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        worker: Arc<str>,
    },
    /// The command is parked and occupies no worker.
    CommandParked {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        /// Reason that the command is parked.
        on: ParkReason,
    },
    CallDone {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        /// Result of the tool. With a reference, the top-level fields of the referenced value.
        data: Value,
        /// Blob that holds the result if it is too large for the log.
        reference: Option<Arc<BlobRef>>,
        /// Exit code and duration of the tool, if the worker reported them.
        run: Option<Box<ToolRun>>,
    },
    CallFailed {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        failure: Failure,
    },
    CommandCompleted {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        /// Loop item that the command was for. Denormalized for readers of the row.
        item: Option<Box<LoopItemRef>>,
    },
    /// The command ended with a failure.
    CommandFailed {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        failure: Failure,
        /// Loop item that the command was for. Denormalized for readers of the row.
        item: Option<Box<LoopItemRef>>,
    },
    /// The command's lease expired without a result.
    CommandExpired {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
        reason: String,
    },
    /// The command was cancelled together with its execution.
    CommandCancelled {
        command: CommandId,
        /// Step of the command. Denormalized for readers of the row.
        step: Arc<str>,
    },
    /// Context variables were set at the end of a step run.
    ContextUpdated {
        /// Step whose `set`, or whose arc's `set`, applied the values.
        step: Arc<str>,
        /// Number of the step run, from 1.
        run: u32,
        /// Values by dotted path below `ctx`.
        values: Map,
        /// Values by dotted path below `step`. Visible only within the step run.
        locals: Map,
    },
    /// A step run ended, and its arcs were evaluated.
    StepExited {
        step: Arc<str>,
        /// Number of the step run, from 1.
        run: u32,
        outcome: StepOutcome,
        /// Arcs that were and were not taken.
        next: Routing,
    },
    PlaybookCompleted {
        /// Data of the last completed leaf step, `end` preferred. With a reference, the top-level
        /// fields of the referenced value.
        result: Value,
        /// Blob that holds the result if it is too large for the log.
        reference: Option<Arc<BlobRef>>,
    },
    /// The execution ended with a failure.
    PlaybookFailed {
        /// Step whose failure no arc handled.
        step: Arc<str>,
        failure: Failure,
    },
    PlaybookCancelled {
        /// Reason given by the caller.
        reason: Option<String>,
    },
    /// A subscription changed state. Its log has the subscription's own ID, and no execution has
    /// such an event.
    SubscriptionMoved(Box<SubscriptionTransition>),
    /// A report of a worker or client that does not affect state.
    Reported(Box<ReportedEvent>),
    /// A row written by another control plane, stored unchanged. Does not affect state.
    Imported(Box<ImportedEvent>),
}

impl Fact {
    /// Returns `true` if the fact ends an execution.
    pub const fn is_end(&self) -> bool {
        matches!(
            self,
            Self::PlaybookCompleted { .. }
                | Self::PlaybookFailed { .. }
                | Self::PlaybookCancelled { .. }
        )
    }
}

/// Data of the event that starts an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStart {
    /// Catalog entry that the execution is pinned to.
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    /// Rendered workload: the playbook's defaults, overridden by the request's payload.
    pub workload: Map,
    /// Execution that started this one, if any.
    pub parent: Option<ExecutionId>,
    /// Worker pool of the execution's commands. `None` for the default pool.
    pub pool: Option<Arc<str>>,
    /// Parent's command that waits for this execution to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_command: Option<CommandId>,
    /// Step whose data the parent requested as the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Time at which the execution fails if it is still unfinished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Execution whose events this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkedFrom>,
    /// Parent span of the execution's span.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept")]
    pub trace: Option<TraceContext>,
}

/// Source of a forked execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    #[serde(rename = "execution_id", with = "crate::parked::id_text")]
    pub execution: ExecutionId,
    /// Sequence number of the last shared event. 0 if only the workload was copied.
    pub seq: Seq,
    /// ID of the last shared event. 0 if there is none.
    #[serde(rename = "event_id", with = "crate::parked::id_text")]
    pub event: EventId,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// Outcome of a step run.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// The step succeeded. Its result is the data of its command's `call.done`.
    Done,
    /// The step's own condition was false, and nothing ran.
    Skipped,
    Failed {
        failure: Failure,
        /// Whether an arc handled the failure.
        handled: bool,
        /// Whether an unhandled failure lets parallel branches finish before the execution fails.
        drains: bool,
    },
}

/// Recorded routing decision of a step run: arcs by target name, in document order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Routing {
    pub taken: Vec<TakenArc>,
    /// Targets of the arcs that were not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<Arc<str>>,
}

/// An arc that a step run took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenArc {
    /// Step that the arc leads to.
    pub step: Arc<str>,
    /// Whether the arc closes a loop, so that its target starts at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
}

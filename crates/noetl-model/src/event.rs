//! Events: what happened to an execution, in the order it happened.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::foreign::{Imported, ReportColumns, Reported};
pub use crate::issued::{Issued, LoopItem};
pub use crate::lifecycle::{Lifecycle, SubscriptionMoved};
pub use crate::parked::{Callback, Child, Parked};
pub use crate::repeat::{ItemOf, LoopEvent, LoopFact};
pub use crate::tool_run::ToolRun;
use crate::trace::{self, TraceContext};
use crate::{CatalogId, CommandId, EventId, ExecutionId, Failure, Map, Timestamp, Value};

/// Place in an execution's log: 1, 2, 3 … without a gap. 0 is "before the first".
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// The place after this one.
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

/// Who put a row into the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The engine decided it. Only these rows drive state.
    Decided,
    /// A worker or client said it; kept and shown.
    Reported,
    /// It came from another database, or by import, for an execution that was not started here.
    /// Listed and replayed, never driven.
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

    /// The origin of this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Decided, Self::Reported, Self::Imported]
            .into_iter()
            .find(|origin| origin.as_str() == text)
    }
}

/// One fact of one execution's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Whose log it is in.
    pub execution: ExecutionId,
    /// Its id, larger than those before it.
    pub id: EventId,
    /// Its place in the log.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    pub fact: Fact,
    /// Identity of the caller who asked for it: `token:ID`, `oidc:SUBJECT`,
    /// `session:CREDENTIAL/USER_ID via token:ID`, or `internal`. Absent if the control plane or a
    /// worker caused the event, and where callers have no identity. Only events that the engine
    /// decides have one.
    pub actor: Option<Arc<str>>,
}

impl Event {
    /// Who put it into the log.
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
    /// An execution began. Boxed: it is the largest fact and the rarest.
    PlaybookStarted(Box<Started>),
    /// A visit of a step began.
    StepEntered {
        step: Arc<str>,
        /// Which visit of it this is, from 1.
        generation: u32,
        /// How many waiting tokens it used up; none for the first step and for back arcs.
        tokens: u32,
        /// For a step that joins `any`: the round it ran in, so that later tokens are dropped.
        round: Option<u32>,
        /// When it fails if it has not ended by then.
        deadline: Option<Timestamp>,
    },
    /// Tokens ended at a step without starting it.
    TokensDropped { step: Arc<str>, tokens: u32 },
    /// The step's admission refused them.
    StepDenied {
        step: Arc<str>,
        /// How many tokens ended.
        tokens: u32,
    },
    /// The step's admission lets a token wait for a change of variables.
    StepHeld {
        step: Arc<str>,
        /// How many tokens became this one.
        tokens: u32,
        /// The step whose arc led here.
        from: Option<Arc<str>>,
        /// When it is refused.
        until: Timestamp,
    },
    /// Something happened to a loop.
    Loop(Box<LoopFact>),
    /// Work was handed out. The command's id is this event's id. Shared with the worker that runs
    /// it and with the state that may hand it out again.
    CommandIssued(Arc<Issued>),
    /// A worker took the command.
    CommandClaimed {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        worker: Arc<str>,
    },
    /// The worker said it began.
    CommandStarted {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        worker: Arc<str>,
    },
    /// The command waits, held by no worker.
    CommandParked {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        /// What it waits for.
        on: Parked,
    },
    CallDone {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        /// What it answered; with a reference, top-level fields of what is kept there.
        data: Value,
        /// Where the answer is kept, when it is too large for the log.
        reference: Option<Arc<BlobRef>>,
        /// How the tool ran, if the worker reported it.
        run: Option<Box<ToolRun>>,
    },
    CallFailed {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        failure: Failure,
    },
    /// The command ended well.
    CommandCompleted {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        /// Which item of a loop it was for, for readers of the row.
        item: Option<Box<ItemOf>>,
    },
    /// The command ended badly.
    CommandFailed {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        failure: Failure,
        /// Which item of a loop it was for, for readers of the row.
        item: Option<Box<ItemOf>>,
    },
    /// The command's lease ended without a result.
    CommandExpired {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
        /// What ended the lease.
        reason: String,
    },
    /// The command was stopped with its execution.
    CommandCancelled {
        command: CommandId,
        /// Its step, for readers of the row.
        step: Arc<str>,
    },
    /// Context variables were set when a visit ended.
    ContextUpdated {
        /// The step whose `set`, or whose arc's `set`, it was.
        step: Arc<str>,
        /// Which visit of it.
        generation: u32,
        /// Dotted path below `ctx` to value.
        values: Map,
        /// Dotted path below `step` to value: what only this visit sees.
        locals: Map,
    },
    /// A visit of a step ended, and its arcs were decided.
    StepExited {
        step: Arc<str>,
        /// Which visit of it this was.
        generation: u32,
        outcome: Outcome,
        /// Which way it goes on.
        next: Routing,
    },
    /// The execution ended well.
    PlaybookCompleted {
        /// Data of the last completed leaf, `end` preferred; with a reference, top-level fields
        /// of what is kept there.
        result: Value,
        /// Where that data is kept, when it is too large for the log.
        reference: Option<Arc<BlobRef>>,
    },
    /// The execution ended badly.
    PlaybookFailed {
        /// The step whose failure nobody handled.
        step: Arc<str>,
        failure: Failure,
    },
    /// The execution was stopped.
    PlaybookCancelled {
        /// What the caller gave as a reason.
        reason: Option<String>,
    },
    /// A subscription moved. Its log is under its own id, and no execution has such an event.
    SubscriptionMoved(Box<SubscriptionMoved>),
    /// Something a worker or client said that decides nothing.
    Reported(Box<Reported>),
    /// A row that was not written here, kept as it was. It decides nothing.
    Imported(Box<Imported>),
}

/// Where a value is kept that is too large for the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    /// What the bytes hash to, by which they are found.
    pub digest: Arc<str>,
    /// How many bytes there are.
    pub bytes: u64,
    /// How to read them.
    pub media_type: Arc<str>,
}

impl Fact {
    /// Whether an execution ends with it.
    pub const fn is_end(&self) -> bool {
        matches!(
            self,
            Self::PlaybookCompleted { .. }
                | Self::PlaybookFailed { .. }
                | Self::PlaybookCancelled { .. }
        )
    }
}

/// The beginning of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The catalog entry it is pinned to.
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    /// Playbook defaults with the request's payload laid over them, rendered.
    pub workload: Map,
    /// Who started it, if another execution did.
    pub parent: Option<ExecutionId>,
    /// Which workers its commands go to; the default pool when `None`.
    pub pool: Option<Arc<str>>,
    /// The command of the parent that waits for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_command: Option<CommandId>,
    /// The step whose data the parent asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Arc<str>>,
    /// How many executions are above it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// When it fails if it has not ended by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The execution whose past it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkedFrom>,
    /// The span it is below.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept")]
    pub trace: Option<TraceContext>,
}

/// The past that an execution has from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    #[serde(rename = "execution_id", with = "crate::parked::id_text")]
    pub execution: ExecutionId,
    /// The place of the last event they share; 0 when nothing but the workload was taken over.
    pub seq: Seq,
    /// That event; 0 when there is none.
    #[serde(rename = "event_id", with = "crate::parked::id_text")]
    pub event: EventId,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// How a visit ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Well; its result is the data of its command's `call.done`.
    Done,
    /// Its own condition did not hold, and nothing was run.
    Skipped,
    Failed {
        failure: Failure,
        /// Whether an arc took care of it.
        handled: bool,
        /// Whether, unhandled, it lets the branches beside it end first.
        drains: bool,
    },
}

/// The recorded decision of one step's arcs, by target name in document order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Routing {
    /// The arcs that were taken.
    pub taken: Vec<TakenArc>,
    /// Targets of the arcs that were not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<Arc<str>>,
}

/// An arc that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenArc {
    /// The step it leads to.
    pub step: Arc<str>,
    /// Whether it closes a loop, so that its target starts at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
}

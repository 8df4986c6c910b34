//! Inputs that [`decide`](crate::decide) accepts.

use std::sync::Arc;

use noetl_model::event::{BlobRef, ForkedFrom, ReportedEvent, ToolRun};
use noetl_model::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Failure, Map, Seq, Timestamp, TraceContext,
    Value,
};

/// A request to change an execution, or a report about one.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Starts an execution of a playbook.
    Start(Box<StartInput>),
    /// Starts an execution with a copy of another execution's event log.
    Fork(Box<Fork>),
    /// Assigns a command to a worker.
    Claim(Claim),
    /// Reports that a worker started a command.
    Begin(MarkStarted),
    /// Reports that a command succeeded.
    Complete(Complete),
    /// Reports that a command failed.
    Fail(Fail),
    /// Expires the lease of a command.
    Expire(Expire),
    /// Cancels the execution and its commands.
    Cancel(Cancel),
    /// Ends a failing execution's wait for commands that did not stop.
    Abandon(Abandon),
    /// Records a report of a worker or client.
    Keep(Box<RecordReport>),
    /// Fires the timer of a parked command.
    Wake(Wake),
    /// Delivers the answer that a parked command waits for.
    Answer(Box<Answer>),
    /// Fires the timeout of a step run, an admission, or the execution.
    Timeout(Timeout),
    /// Completes or fails the execution at once, whatever is in flight.
    Finalize(Finalize),
}

/// Input that fires the timer of a parked command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    pub command: CommandId,
    /// Due time of the timer. If the command now waits for another time, the input changes nothing.
    pub at: Timestamp,
}

/// Input that delivers the answer that a parked command waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub command: CommandId,
    pub from: AnswerSource,
    /// Result or failure to end the command with.
    pub outcome: Result<Value, Failure>,
    /// Blob that holds the answer, if the answer is too large for the event log.
    pub reference: Option<Arc<BlobRef>>,
    /// Caller that sent the answer; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerSource {
    /// Execution that the command started.
    Child(ExecutionId),
    /// Callback token; must equal the command's token.
    Token(Arc<str>),
    /// A caller that the control plane has already authorized.
    Trusted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timeout {
    /// Timeout of a step run.
    Step {
        step: Arc<str>,
        /// Run number of the step, from 1.
        run: u32,
    },
    /// Timeout of a token that waits for admission.
    Admission {
        step: Arc<str>,
        /// Time until which the token may wait.
        until: Timestamp,
    },
    Execution,
}

/// Input that completes or fails the execution at once, whatever is in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finalize {
    /// Failure message. The execution completes if `None`.
    pub error: Option<String>,
    /// Caller that requested it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Input that starts an execution of a playbook.
#[derive(Debug, Clone, PartialEq)]
pub struct StartInput {
    /// Catalog entry that the execution stays pinned to.
    pub catalog: CatalogId,
    pub path: Arc<str>,
    pub version: u32,
    /// Values merged over the playbook's workload.
    pub payload: Map,
    /// Execution that starts this one.
    pub parent: Option<ExecutionId>,
    /// Worker pool for the execution's commands; `None` selects the default pool.
    pub pool: Option<Arc<str>>,
    /// Command of the parent that waits for this execution to end.
    pub parent_command: Option<CommandId>,
    /// Step whose data the parent requested as the result.
    pub returns: Option<Arc<str>>,
    /// Number of ancestor executions; 0 for an execution without a parent.
    pub depth: u32,
    /// Execution whose workload this one copies.
    pub forked: Option<ForkedFrom>,
    /// Parent span of the execution's span.
    pub trace: Option<TraceContext>,
    /// Caller that requested it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Input that starts an execution with a copy of another execution's event log.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// Event log of the origin from its first event, with at least one event after `cut` if there
    /// is one.
    pub log: Arc<[Event]>,
    /// Sequence number of the last event to copy. The engine may choose an earlier one: see
    /// [`crate::fork`].
    pub cut: Seq,
    /// Values merged over the origin's workload.
    pub workload: Map,
    /// Parent span of the fork's span; the fork does not inherit the origin's.
    pub trace: Option<TraceContext>,
    /// Playbook version to continue with, as catalog entry and version number, if it differs from
    /// the origin's. [`crate::fork::first_incompatibility`] checks whether the version is compatible.
    pub version: Option<(CatalogId, u32)>,
    /// Caller that requested it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Input that assigns a command to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub command: CommandId,
    pub worker: Arc<str>,
}

/// Input that reports that a worker started a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkStarted {
    pub command: CommandId,
    pub worker: Arc<str>,
}

/// Input that reports that a command succeeded, or that its tool returned a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    pub command: CommandId,
    /// Tool result; `None` if reported before. With a reference: top-level fields of the result,
    /// each either exact or null.
    pub data: Option<Value>,
    /// Blob that holds the result, if the result is too large for the event log.
    pub reference: Option<Arc<BlobRef>>,
    /// Whether this report ends the command. A worker that reports in two parts sends the result
    /// first.
    pub is_final: bool,
    /// Variables that the command's tasks set, by dotted path below `ctx`.
    pub ctx: Map,
    /// Variables that the command's tasks set for the step run alone, by dotted path below `step`.
    pub step: Map,
    /// Statistics of the tool's run, if the worker reported them.
    pub run: Option<Box<ToolRun>>,
}

/// Input that reports that a command failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub command: CommandId,
    pub failure: Failure,
    /// Variables that tasks set before the failure, by dotted path below `ctx`.
    pub ctx: Map,
    /// Variables that tasks set for the step run alone before the failure, by dotted path below
    /// `step`.
    pub step: Map,
}

/// Input that expires the lease of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expire {
    pub command: CommandId,
    pub reason: String,
    /// Maximum number of attempts. The engine issues another command only below this number.
    pub attempts_max: u32,
    /// Whether the tool may have run. If not, the engine issues the command again whatever the
    /// number of attempts and even if the tool is not idempotent.
    pub may_have_run: bool,
}

/// Input that cancels the execution and its commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cancel {
    /// Reason given by the caller.
    pub reason: Option<String>,
    /// Caller that requested it; see [`Event::actor`].
    pub actor: Option<Arc<str>>,
}

/// Input that ends a failing execution's wait for commands that did not stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Abandon;

/// Input that records a report of a worker or client. The report is shown and does not affect
/// state.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordReport {
    pub said: ReportedEvent,
    /// Event ID sent with the report, which deduplicates resent reports. The engine mints one if
    /// `None`.
    pub id: Option<EventId>,
    /// Event ID sent with the report, if it cannot be stored as the event's ID; also deduplicates
    /// resent reports.
    pub key: Option<i64>,
}

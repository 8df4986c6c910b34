//! Timers: actions due later, or addressed to another execution. The store writes them in the
//! transaction of the decision and delivers them at least once.

use std::sync::Arc;

use noetl_model::event::{BlobRef, ChildExecution, CommandSpec};
use noetl_model::trace::{self, SpanId, TraceContext};
use noetl_model::{
    CommandId, Event, ExecutionId, Fact, Failure, FailureKind, Map, Timestamp, Value,
};
use serde::{Deserialize, Serialize};

use crate::execution::Execution;

#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// Execution the timer fires on.
    pub target: ExecutionId,
    pub at: Timestamp,
    pub kind: TimerKind,
}

/// Action of a timer. Its JSON form is the payload of a `due` row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "due", rename_all = "snake_case")]
pub enum TimerKind {
    /// Wakes a parked command.
    Wake {
        command: CommandId,
        /// Time the command waits for.
        at: Timestamp,
    },
    /// Fails a step run that has not ended.
    StepTimeout {
        step: Arc<str>,
        /// Run number of the step, from 1.
        #[serde(rename = "generation")]
        run: u32,
    },
    /// Denies a token that still waits for admission.
    AdmissionTimeout {
        step: Arc<str>,
        /// Time until which the token may wait.
        until: Timestamp,
    },
    /// Fails an execution that has not ended by its deadline.
    Deadline,
    /// Ends a failing execution whose stopped commands have not ended.
    Abandon,
    StartChild {
        parent: ExecutionId,
        /// Command of the parent that starts the child.
        command: CommandId,
        child: Box<ChildExecution>,
        /// Payload of the child's start.
        payload: Map,
        /// Worker pool for the child's commands; `None` selects the default pool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pool: Option<Arc<str>>,
        /// Parent span of the child's span.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "trace::kept"
        )]
        trace: Option<TraceContext>,
    },
    /// Reports the outcome of a child execution to the command that waits for it.
    ChildEnded { command: CommandId, child: ExecutionId, outcome: ChildOutcome },
    /// Cancels a child execution that its parent no longer needs.
    CancelChild {
        /// Execution that requests the cancellation.
        parent: ExecutionId,
    },
    /// Sends a notification about an execution.
    Notify {
        /// Event to report: `failed`, `waiting`, or `completed`.
        what: Arc<str>,
        /// Step that the notification is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Arc<str>>,
        /// Failure message in one sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// Outcome of a child execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildOutcome {
    Completed {
        result: Value,
        /// Blob that holds the result, if the result is too large for the event log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<Arc<BlobRef>>,
    },
    Failed(Failure),
    Cancelled(Option<String>),
}

/// Returns the message that starts the child execution of a parked command.
pub(crate) fn start_child(
    state: &Execution,
    events: &[Arc<Event>],
    event: &Event,
    command: CommandId,
    child: &ChildExecution,
) -> Timer {
    // A command that does not wait for its child has ended by now; then `events` contains its
    // issue.
    let issued = state.open_command(command).map(|open| open.issued.clone());
    let issued = issued.or_else(|| issued_in(events, command));
    let payload = issued.as_deref().map(payload).unwrap_or_default();
    let started = state.started();
    let pool = started.and_then(|started| started.pool.clone());
    let trace = started.and_then(|started| started.trace.as_ref());
    let trace = trace.map(|trace| trace.with_span(SpanId::of_command(command)));
    let (parent, child) = (event.execution, Box::new(child.clone()));
    let target = child.execution;
    Timer {
        target,
        at: event.at,
        kind: TimerKind::StartChild { parent, command, child, payload, pool, trace },
    }
}

fn issued_in(events: &[Arc<Event>], command: CommandId) -> Option<Arc<CommandSpec>> {
    events.iter().find_map(|event| match &event.fact {
        Fact::CommandIssued(issued) if CommandId::from(event.id) == command => Some(issued.clone()),
        _ => None,
    })
}

/// Returns the payload of a child's start: the named arguments, or else `payload` or `workload`.
fn payload(issued: &CommandSpec) -> Map {
    if !issued.input.is_empty() {
        return issued.input.clone();
    }
    match issued.config.get("payload").or_else(|| issued.config.get("workload")) {
        Some(Value::Object(payload)) => payload.clone(),
        _ => Map::new(),
    }
}

/// Returns the message that cancels the child execution of a command that no longer waits for it.
pub(crate) fn cancel_child(state: &Execution, event: &Event, command: CommandId) -> Option<Timer> {
    let target = state.children.get(&command).copied()?;
    Some(cancel(target, event))
}

/// Returns the messages that cancel the child executions that no command waits for.
pub(crate) fn cancel_sent(state: &Execution, event: &Event) -> impl Iterator<Item = Timer> {
    state.sent.iter().map(|target| cancel(*target, event))
}

fn cancel(target: ExecutionId, event: &Event) -> Timer {
    Timer { target, at: event.at, kind: TimerKind::CancelChild { parent: event.execution } }
}

/// Returns the message that reports the outcome of this execution to the parent's command that waits
/// for it.
pub(crate) fn report_to_parent(state: &Execution, event: &Event) -> Option<Timer> {
    let started = state.started()?;
    let (target, command) = (started.parent?, started.parent_command?);
    let outcome = match &event.fact {
        Fact::PlaybookCompleted { result, reference } => {
            ChildOutcome::Completed { result: result.clone(), reference: reference.clone() }
        }
        Fact::PlaybookFailed { failure, .. } => ChildOutcome::Failed(failure.clone()),
        Fact::PlaybookCancelled { reason } => ChildOutcome::Cancelled(reason.clone()),
        _ => return None,
    };
    let child = event.execution;
    Some(Timer { target, at: event.at, kind: TimerKind::ChildEnded { command, child, outcome } })
}

impl ChildOutcome {
    /// Returns the result or failure of the command that waited for the child, and the blob of a
    /// large result.
    pub fn answer(self, child: ExecutionId) -> (Result<Value, Failure>, Option<Arc<BlobRef>>) {
        let meta = |status: &str| serde_json::json!({ "execution_id": child.to_string(), "status": status });
        match self {
            Self::Completed { result: Value::Object(mut result), reference: None } => {
                result.entry("_meta").or_insert_with(|| meta("COMPLETED"));
                (Ok(Value::Object(result)), None)
            }
            Self::Completed { result, reference } => (Ok(result), reference),
            Self::Failed(failure) => {
                let message = format!("execution {child} failed: {failure}");
                let mut about = meta("FAILED");
                about["error"] = serde_json::json!({
                    "kind": failure.kind,
                    "message": failure.message,
                });
                (Err(child_failed(message, about)), None)
            }
            Self::Cancelled(reason) => {
                let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                let message = format!("execution {child} was cancelled{why}");
                (Err(child_failed(message, meta("CANCELLED"))), None)
            }
        }
    }
}

/// Returns the failure of a command whose child failed or was cancelled. The child's ID, status,
/// and error are under `_meta`, as after a success: at the top level they would hide the failure's
/// own `status` and `error`.
fn child_failed(message: String, about: Value) -> Failure {
    let details = serde_json::json!({ "_meta": about });
    Failure::new(FailureKind::ChildFailed, message).with_details(details)
}

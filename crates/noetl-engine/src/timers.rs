//! Timers: actions due later, or addressed to another execution. The store writes them in the
//! transaction of the decision and delivers them at least once.

use std::sync::Arc;

use noetl_model::event::{BlobRef, ChildExecution, CommandSpec, ParkReason};
use noetl_model::trace::{self, SpanId, TraceContext};
use noetl_model::{
    CommandId, Event, ExecutionId, Fact, Failure, FailureKind, Map, Timestamp, Value,
};
use serde::{Deserialize, Serialize};

use crate::execution::Execution;

/// A timer to store.
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
        generation: u32,
    },
    /// Denies a token that still waits for admission.
    AdmissionTimeout {
        step: Arc<str>,
        /// Time until which the token may wait.
        until: Timestamp,
    },
    /// Fails an execution that has not ended by its deadline.
    Deadline,
    /// Starts a child execution.
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

/// Returns the timers that `events` create. `state` is the state after the events; `notify` returns
/// `true` for the kinds of notification to send.
pub fn timers_of(
    state: &Execution,
    notify: impl Fn(&str) -> bool,
    events: &[Arc<Event>],
) -> Vec<Timer> {
    let mut due = Vec::new();
    for event in events {
        let here = |kind, at| Timer { target: event.execution, at, kind };
        match &event.fact {
            Fact::PlaybookStarted(started) => {
                due.extend(started.deadline.map(|at| here(TimerKind::Deadline, at)));
            }
            Fact::StepEntered { step, generation, deadline: Some(at), .. } => {
                let (step, generation) = (step.clone(), *generation);
                due.push(here(TimerKind::StepTimeout { step, generation }, *at));
            }
            Fact::StepHeld { step, until, .. } => {
                let (step, until) = (step.clone(), *until);
                due.push(here(TimerKind::AdmissionTimeout { step, until }, until));
            }
            Fact::CommandParked { command, on, step } => {
                let command = *command;
                match on {
                    ParkReason::Until(at) | ParkReason::Retry(at) => {
                        due.push(here(TimerKind::Wake { command, at: *at }, *at));
                    }
                    ParkReason::Callback(callback) => {
                        let at = callback.until;
                        due.push(here(TimerKind::Wake { command, at }, at));
                        if notify("waiting") {
                            let (step, error) = (Some(step.clone()), None);
                            let what = Arc::from("waiting");
                            due.push(here(TimerKind::Notify { what, step, error }, event.at));
                        }
                    }
                    ParkReason::Child(child) => {
                        due.push(start_child(state, events, event, command, child));
                        due.extend(child.until.map(|at| here(TimerKind::Wake { command, at }, at)));
                    }
                }
            }
            Fact::CommandCancelled { command, .. } | Fact::CommandFailed { command, .. } => {
                due.extend(unwanted(state, event, *command));
            }
            Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => {
                due.extend(ended(state, event));
                if matches!(event.fact, Fact::PlaybookCancelled { .. }) {
                    let kind = TimerKind::CancelChild { parent: event.execution };
                    let cancel = |target: &ExecutionId| Timer {
                        target: *target,
                        at: event.at,
                        kind: kind.clone(),
                    };
                    due.extend(state.sent.iter().map(cancel));
                }
                let (what, error) = match &event.fact {
                    Fact::PlaybookFailed { failure, .. } => ("failed", Some(failure.to_string())),
                    Fact::PlaybookCompleted { .. } => ("completed", None),
                    _ => continue,
                };
                if notify(what) {
                    let (what, step) = (Arc::from(what), state.current_step.clone());
                    due.push(here(TimerKind::Notify { what, step, error }, event.at));
                }
            }
            _ => {}
        }
    }
    due
}

fn start_child(
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

/// Cancels the child execution of a command that was cancelled or timed out.
fn unwanted(state: &Execution, event: &Event, command: CommandId) -> Option<Timer> {
    let gave_up = match &event.fact {
        Fact::CommandFailed { failure, .. } => failure.kind == FailureKind::Timeout,
        _ => true,
    };
    let target = state.children.get(&command).copied().filter(|_| gave_up)?;
    Some(Timer { target, at: event.at, kind: TimerKind::CancelChild { parent: event.execution } })
}

/// Reports the outcome of this execution to the parent's command that waits for it.
fn ended(state: &Execution, event: &Event) -> Option<Timer> {
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

//! Conversion from events to rows.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::foreign;
use super::moved::subscription_moved;
use super::repeat::{self, ItemMeta};
use super::{EventRow, PLAYBOOK_NODE, types};
use crate::event::{BlobRef, CommandSpec, ExecutionStart, ForkedFrom};
use crate::scope::CommandScope;
use crate::trace::{SpanId, TraceContext};
use crate::{CommandId, Event, Fact, Failure, Map, Origin, Routing, StepOutcome, Timestamp, Value};

/// Status of a step run whose condition was false.
pub(super) const SKIPPED: &str = "SKIPPED";

/// Metadata key for the identity of the caller who requested the recorded change.
pub(super) const ACTOR: &str = "actor";

impl From<&Event> for EventRow {
    fn from(event: &Event) -> Self {
        let mut row = Self::of_fact(event);
        if let Some(actor) = &event.actor {
            let meta = row.meta.as_deref().and_then(|meta| serde_json::from_str(meta).ok());
            let mut meta: Map = meta.unwrap_or_default();
            meta.insert(ACTOR.to_owned(), Value::from(&**actor));
            row.meta = Some(json(&meta));
        }
        row
    }
}

impl EventRow {
    fn of_fact(event: &Event) -> Self {
        match &event.fact {
            Fact::PlaybookStarted(started) => playbook_started(event, started),
            Fact::StepEntered { step, run, tokens, round, deadline } => {
                let visit =
                    RunMeta { run: *run, tokens: *tokens, round: *round, deadline: *deadline };
                Self { meta: Some(json(&visit)), ..row(event, types::STEP_ENTER, step, "ENTERED") }
            }
            Fact::TokensDropped { step, tokens } => Self {
                meta: Some(json(&Dropped { tokens: *tokens })),
                ..row(event, types::TOKENS_DROPPED, step, "DROPPED")
            },
            Fact::StepDenied { step, tokens } => Self {
                meta: Some(json(&Dropped { tokens: *tokens })),
                ..row(event, types::STEP_DENIED, step, "DENIED")
            },
            Fact::StepHeld { step, tokens, from, until } => Self {
                meta: Some(json(&HeldTokenMeta {
                    tokens: *tokens,
                    from: from.clone(),
                    until: *until,
                })),
                ..row(event, types::STEP_HELD, step, "WAITING")
            },
            Fact::Loop(fact) => repeat::encode(event, fact),
            Fact::CommandParked { command, step, on } => Self {
                context: Some(json(on)),
                ..about(event, types::COMMAND_PARKED, step, "WAITING", *command)
            },
            Fact::CommandIssued(issued) => command_issued(event, issued),
            Fact::CommandClaimed { command, step, worker } => Self {
                worker_id: Some(worker.clone()),
                ..about(event, types::COMMAND_CLAIMED, step, "RUNNING", *command)
            },
            Fact::CommandStarted { command, step, worker } => Self {
                worker_id: Some(worker.clone()),
                ..about(event, types::COMMAND_STARTED, step, "STARTED", *command)
            },
            Fact::CallDone { command, step, data, reference, run } => Self {
                result: Some(data_result(data, reference.as_deref())),
                meta: run.as_deref().map(json),
                ..about(event, types::CALL_DONE, step, "COMPLETED", *command)
            },
            Fact::CallFailed { command, step, failure } => Self {
                ..failed(about(event, types::CALL_ERROR, step, "FAILED", *command), failure)
            },
            Fact::CommandCompleted { command, step, item } => Self {
                meta: ItemMeta::ended(step, item.as_deref()),
                ..about(event, types::COMMAND_COMPLETED, step, "COMPLETED", *command)
            },
            Fact::CommandFailed { command, step, failure, item } => Self {
                meta: ItemMeta::ended(step, item.as_deref()),
                ..failed(about(event, types::COMMAND_FAILED, step, "FAILED", *command), failure)
            },
            Fact::CommandExpired { command, step, reason } => Self {
                error: Some(reason.clone()),
                ..about(event, types::COMMAND_EXPIRED, step, "EXPIRED", *command)
            },
            Fact::CommandCancelled { command, step } => {
                about(event, types::COMMAND_CANCELLED, step, "CANCELLED", *command)
            }
            Fact::ContextUpdated { step, run, values, locals } => {
                let context = Update { step, run: *run, values, locals };
                let result = Some(json(&StatusContext { status: "CONTEXT", context }));
                Self { result, ..row(event, types::CTX_UPDATED, step, "CONTEXT") }
            }
            Fact::StepExited { step, run, outcome, next } => {
                step_exited(event, step, *run, outcome, next)
            }
            Fact::PlaybookCompleted { result, reference } => Self {
                result: Some(data_result(result, reference.as_deref())),
                ..playbook(event, types::PLAYBOOK_COMPLETED, "COMPLETED")
            },
            Fact::PlaybookFailed { step, failure } => Self {
                meta: Some(json(&FailedSteps { failed_steps: [step] })),
                ..failed(playbook(event, types::PLAYBOOK_FAILED, "FAILED"), failure)
            },
            Fact::PlaybookCancelled { reason } => Self {
                error: reason.clone(),
                ..playbook(event, types::PLAYBOOK_CANCELLED, "CANCELLED")
            },
            Fact::SubscriptionMoved(moved) => subscription_moved(event, moved),
            Fact::Reported(reported) => foreign::reported(event, reported),
            Fact::Imported(imported) => foreign::imported(event, imported),
        }
    }
}

#[derive(Serialize)]
struct RunMeta {
    #[serde(rename = "generation")]
    run: u32,
    #[serde(skip_serializing_if = "is_one")]
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct HeldTokenMeta {
    #[serde(default)]
    pub(super) tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Arc<str>>,
    pub(super) until: Timestamp,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Dropped {
    pub(super) tokens: u32,
}

/// Returns `true` for the most frequent token count, which rows omit.
fn is_one(tokens: &u32) -> bool {
    *tokens == 1
}

#[derive(Serialize)]
pub(super) struct StatusContext<'a, C> {
    pub(super) status: &'a str,
    pub(super) context: C,
}

/// Result of a tool: the data, or a blob reference and some fields of the data.
#[derive(Serialize)]
struct Answered<'a> {
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a BlobRef>,
    context: DataColumn<'a>,
}

#[derive(Serialize)]
struct DataColumn<'a> {
    data: &'a Value,
}

#[derive(Serialize)]
struct Update<'a> {
    step: &'a str,
    #[serde(rename = "gen")]
    run: u32,
    values: &'a Map,
    #[serde(skip_serializing_if = "Map::is_empty")]
    locals: &'a Map,
}

#[derive(Serialize)]
struct FailedSteps<'a> {
    failed_steps: [&'a str; 1],
}

#[derive(Serialize)]
struct StartContext<'a> {
    catalog_id: String,
    execution_id: String,
    path: &'a str,
    version: u32,
    workload: &'a Map,
}

#[derive(Serialize)]
struct StartMeta<'a> {
    emitter: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_pool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_step: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<&'a ForkedFrom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceContext>,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

#[derive(Serialize)]
struct IssueContext<'a> {
    tool_config: &'a Map,
    args: &'a Map,
    #[serde(skip_serializing_if = "Option::is_none")]
    render_context: Option<&'a CommandScope>,
}

#[derive(Serialize)]
struct IssueMeta<'a> {
    #[serde(rename = "generation")]
    run: u32,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    item: ItemMeta,
    #[serde(skip_serializing_if = "is_true")]
    idempotent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_pool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<TraceContext>,
}

/// Returns `true` for idempotent tools, the most frequent case, which rows omit.
fn is_true(idempotent: &bool) -> bool {
    *idempotent
}

#[derive(Serialize)]
struct Error<'a> {
    error: &'a Failure,
}

#[derive(Serialize)]
struct Exit<'a> {
    #[serde(rename = "generation")]
    run: u32,
    next: &'a Routing,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    handled: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    drains: bool,
}

pub(super) fn row(
    event: &Event,
    event_type: &'static str,
    node: &Arc<str>,
    status: &'static str,
) -> EventRow {
    EventRow {
        execution_id: event.execution,
        event_id: event.id,
        seq: event.seq,
        created_at: event.at,
        origin: Origin::Decided,
        event_type: Some(Cow::Borrowed(event_type)),
        node_name: Some(node.clone()),
        node_type: None,
        status: Some(Cow::Borrowed(status)),
        command_id: None,
        parent_execution_id: None,
        worker_id: None,
        context: None,
        result: None,
        meta: None,
        error: None,
        duration: None,
        idempotency_key: None,
        more: None,
    }
}

fn about(
    event: &Event,
    event_type: &'static str,
    step: &Arc<str>,
    status: &'static str,
    command: CommandId,
) -> EventRow {
    EventRow { command_id: Some(command), ..row(event, event_type, step, status) }
}

fn playbook(event: &Event, event_type: &'static str, status: &'static str) -> EventRow {
    row(event, event_type, &Arc::from(PLAYBOOK_NODE), status)
}

fn failed(row: EventRow, failure: &Failure) -> EventRow {
    EventRow {
        result: Some(json(&StatusContext { status: "FAILED", context: Error { error: failure } })),
        error: Some(failure.to_string()),
        ..row
    }
}

fn playbook_started(event: &Event, started: &ExecutionStart) -> EventRow {
    let context = StartContext {
        catalog_id: started.catalog.to_string(),
        execution_id: event.execution.to_string(),
        path: &started.path,
        version: started.version,
        workload: &started.workload,
    };
    let meta = StartMeta {
        emitter: "control_plane",
        execution_pool: started.pool.as_deref(),
        parent_command_id: started.parent_command.map(|command| command.to_string()),
        return_step: started.returns.as_deref(),
        depth: started.depth,
        deadline: started.deadline,
        forked_from: started.forked.as_ref(),
        trace: started.trace.as_ref(),
    };
    EventRow {
        node_type: Some(Arc::from("execution")),
        parent_execution_id: started.parent,
        context: Some(json(&context)),
        meta: Some(json(&meta)),
        ..row(event, types::PLAYBOOK_STARTED, &started.path, "STARTED")
    }
}

fn command_issued(event: &Event, issued: &CommandSpec) -> EventRow {
    let (tool_config, args) = (&issued.config, &issued.input);
    let context = IssueContext { tool_config, args, render_context: issued.scope.as_deref() };
    let span = SpanId::of_command(event.id.into());
    let meta = IssueMeta {
        run: issued.run,
        attempt: issued.attempt,
        timeout_ms: issued.timeout_ms,
        item: ItemMeta::issued(&issued.step, issued.run, issued.item.as_ref()),
        idempotent: issued.idempotent,
        execution_pool: issued.pool.as_deref(),
        trace: issued.trace.as_ref().map(|trace| TraceContext::new(trace.clone(), span)),
    };
    EventRow {
        node_type: Some(issued.tool.clone()),
        context: Some(json(&context)),
        meta: Some(json(&meta)),
        ..about(event, types::COMMAND_ISSUED, &issued.step, "PENDING", event.id.into())
    }
}

fn step_exited(
    event: &Event,
    step: &Arc<str>,
    run: u32,
    outcome: &StepOutcome,
    next: &Routing,
) -> EventRow {
    let (status, error, handled, drains) = match outcome {
        StepOutcome::Done => ("COMPLETED", None, false, false),
        StepOutcome::Skipped => (SKIPPED, None, false, false),
        StepOutcome::Failed { failure, handled, drains } => {
            ("FAILED", Some(failure), *handled, *drains)
        }
    };
    let context = Exit { run, next, error, handled, drains };
    EventRow {
        result: Some(json(&StatusContext { status, context })),
        error: error.map(ToString::to_string),
        ..row(event, types::STEP_EXIT, step, status)
    }
}

fn data_result(data: &Value, reference: Option<&BlobRef>) -> String {
    json(&Answered { status: "COMPLETED", reference, context: DataColumn { data } })
}

pub(super) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("maps with text keys always have a JSON form")
}

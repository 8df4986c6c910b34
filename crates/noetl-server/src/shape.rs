//! Conversion of rows and events to their API form.

mod bounded;
mod catalog;

use std::borrow::Cow;

use noetl_api::commands::{Command, CommandContext, CommandMeta};
use noetl_api::events::EventView;
use noetl_api::executions::{ExecutionView, Progress, StatusReply};
use noetl_api::{Diagnostic, Id, IdForm};
use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::event::{BlobRef, CommandSpec};
use noetl_model::row::EventRow;
use noetl_model::scope::CommandScope;
use noetl_model::trace::{SpanId, TraceContext};
use noetl_model::{Event, Fact, Failure, Map, Origin, Value, command_name};
use noetl_playbook::Severity;
use noetl_remote::ClaimedCommand;
use noetl_store::{CommandRow, ExecutionRow, ExecutionStatus};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use self::bounded::bounded;
pub(crate) use self::catalog::{credential_entry, entry, registered};

/// Status that workers report for a successful tool call.
const SUCCESS: &str = "success";

pub(crate) fn diagnostic(found: &noetl_playbook::Diagnostic) -> Diagnostic {
    let severity = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    Diagnostic {
        severity: severity.to_owned(),
        code: found.code.to_owned(),
        line: found.line,
        column: found.column,
        path: bounded(found.path.clone()),
        message: bounded(found.message.clone()),
        help: found.help.clone().map(bounded),
    }
}

pub(crate) fn execution(row: &ExecutionRow, ids: IdForm) -> ExecutionView {
    ExecutionView {
        execution_id: Id::new(row.id.get(), ids),
        catalog_id: Id::new(row.catalog.get(), ids),
        path: Some(row.path.to_string()),
        version: row.playbook_version,
        status: row.status.as_str().to_owned(),
        started_at: row.started_at,
        completed_at: row.ended_at,
        start_time: row.started_at,
        end_time: row.ended_at,
        duration_seconds: duration_seconds(row),
        duration_human: duration_human(row),
        progress: progress(row),
        event_count: row.version.0,
        parent_execution_id: row.parent.map(|parent| Id::new(parent.get(), ids)),
        error: row.error.clone(),
    }
}

pub(crate) fn status(row: &ExecutionRow, completed_steps: Vec<String>, ids: IdForm) -> StatusReply {
    StatusReply {
        execution_id: Id::new(row.id.get(), ids),
        status: row.status.as_str().to_owned(),
        current_step: row.current_step.as_deref().map(str::to_owned),
        progress: Progress {
            total_steps: row.steps_entered,
            completed_steps: row.steps_completed,
            running_steps: row.steps_running,
            failed_steps: row.steps_failed,
        },
        is_cancelled: row.status == ExecutionStatus::Cancelled,
        completed: row.status.is_final(),
        failed: row.status == ExecutionStatus::Failed,
        completed_steps,
        error: row.error.clone(),
        start_time: row.started_at,
        end_time: row.ended_at,
        duration_seconds: duration_seconds(row),
        duration_human: duration_human(row),
    }
}

/// Returns the percentage of started step runs that ended. At most 99 while the execution runs.
fn progress(row: &ExecutionRow) -> u8 {
    if row.status.is_final() {
        return 100;
    }
    let ended = u64::from(row.steps_completed) + u64::from(row.steps_failed);
    let began = ended + u64::from(row.steps_running);
    let percent = (ended * 100).checked_div(began).unwrap_or(0);
    u8::try_from(percent.min(99)).unwrap_or(99)
}

fn duration_human(row: &ExecutionRow) -> Option<String> {
    row.ended_at.map(|end| human(end.since(row.started_at)))
}

/// Formats a duration for display.
fn human(length: std::time::Duration) -> String {
    let seconds = length.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{}ms", length.as_millis()),
        (0, 0, _) => format!("{:.1}s", length.as_secs_f64()),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h {minutes}m {seconds}s"),
    }
}

fn duration_seconds(row: &ExecutionRow) -> Option<f64> {
    row.ended_at.map(|end| end.since(row.started_at).as_secs_f64())
}

/// Converts an event, and adds derived fields that clients expect and the log doesn't store.
pub(crate) fn event(
    event: &Event,
    of: &ExecutionRow,
    duration: Option<f64>,
    ids: IdForm,
) -> EventView {
    let row = EventRow::from(event);
    let node = row.node_name.as_deref().unwrap_or_default();
    // An imported row is shown unchanged.
    let derived = row.command_id.filter(|_| row.origin != Origin::Imported);
    let command = derived.map(|id| command_name(row.execution_id, node, id));
    let more = match &event.fact {
        Fact::Imported(imported) => Some(&imported.more),
        Fact::Reported(reported) => reported.columns.as_deref().map(|columns| &columns.more),
        _ => None,
    };
    let parent_event = more.and_then(|more| more.get("parent_event_id")?.as_i64());
    let node_id = more.and_then(|more| more.get("node_id")?.as_str());
    EventView {
        execution_id: Id::new(of.id.get(), ids),
        catalog_id: Id::new(of.catalog.get(), ids),
        parent_execution_id: of.parent.map(|parent| Id::new(parent.get(), ids)),
        parent_event_id: parent_event.map(|id| Id::new(id, ids)),
        duration: duration.or(row.duration),
        seq: row.seq.0,
        event_id: Id::new(row.event_id.get(), ids),
        node_id: node_id.or_else(|| row.node_id()).map(str::to_owned),
        node_name: row.node_name.as_deref().map(str::to_owned),
        node_type: row.node_type.as_deref().map(str::to_owned),
        created_at: row.produced_at().unwrap_or(row.created_at),
        timestamp: row.created_at,
        origin: row.origin.as_str().to_owned(),
        worker_id: row.worker_id.as_deref().map(str::to_owned),
        meta: shown_meta(event, &row, command.as_deref(), of),
        result: shown_result(event, &row, command.as_deref()),
        context: shown_context(event, &row),
        event_type: row.event_type.map(Cow::into_owned),
        status: row.status.map(Cow::into_owned),
        error: row.error,
    }
}

/// Returns the stored `meta`, with keys derived from the rest of the row.
fn shown_meta(
    event: &Event,
    row: &EventRow,
    command: Option<&str>,
    of: &ExecutionRow,
) -> Option<Value> {
    let derived = match &event.fact {
        Fact::PlaybookStarted(_) => json!({ "emitted_at": row.created_at }),
        Fact::CommandIssued(issued) => json!({
            "command_id": command,
            "step": issued.step,
            "tool_kind": issued.tool,
            "attempt": issued.attempt,
            "max_attempts": ATTEMPTS_MAX,
            "execution_id": row.execution_id.to_string(),
            "catalog_id": of.catalog.to_string(),
            "actionable": true,
        }),
        Fact::CommandClaimed { worker, .. } => json!({
            "command_id": command,
            "worker_id": worker,
            "actionable": false,
            "informative": true,
        }),
        _ => command.map_or(Value::Null, |command| json!({ "command_id": command })),
    };
    let stored = row.meta.as_deref().and_then(|text| serde_json::from_str(text).ok());
    match (stored, derived) {
        (Some(Value::Object(mut meta)), Value::Object(derived)) => {
            match row.origin {
                Origin::Decided => meta.extend(derived),
                // Keys of a report take precedence.
                Origin::Reported | Origin::Imported => {
                    derived.into_iter().for_each(|(name, value)| {
                        meta.entry(name).or_insert(value);
                    });
                }
            }
            Some(Value::Object(meta))
        }
        (None, derived @ Value::Object(_)) => Some(derived),
        (stored, _) => stored,
    }
}

/// Returns the input of an event. The templates of a command are rendered before it is issued, so
/// its `render_context` is empty.
fn shown_context(event: &Event, row: &EventRow) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct CommandInputView<'a> {
        tool_config: &'a Map,
        args: &'a Map,
        render_context: Map,
    }

    let Fact::CommandIssued(issued) = &event.fact else {
        return row.context.clone().and_then(raw);
    };
    let (tool_config, args) = (&issued.config, &issued.input);
    to_raw_value(&CommandInputView { tool_config, args, render_context: Map::new() }).ok()
}

/// Value of the `result` column.
#[derive(Serialize)]
struct ResultColumn<'a, C> {
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a BlobRef>,
    context: C,
}

/// Data of an event about a command, with the keys that workers report.
#[derive(Default, Serialize)]
struct CommandView<'a> {
    command_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultColumn<'a, DataView<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

#[derive(Serialize)]
struct DataView<'a> {
    data: &'a Value,
}

/// Returns the output of an event, with its command. A command is a single call, so its index is 0.
fn shown_result(event: &Event, row: &EventRow, command: Option<&str>) -> Option<Box<RawValue>> {
    let about = CommandView { command_id: command.unwrap_or_default(), ..CommandView::default() };
    let reference = match &event.fact {
        Fact::CallDone { reference, .. } => reference.as_deref(),
        _ => None,
    };
    let context = match &event.fact {
        Fact::CommandClaimed { worker, .. } => CommandView { worker_id: Some(worker), ..about },
        Fact::CommandStarted { .. } => about,
        Fact::CallDone { data, .. } => CommandView {
            call_index: Some(0),
            result: Some(ResultColumn { status: SUCCESS, reference, context: DataView { data } }),
            data: Some(data),
            ..about
        },
        Fact::CallFailed { failure, .. } => {
            CommandView { call_index: Some(0), error: Some(failure), ..about }
        }
        Fact::CommandCompleted { .. } => CommandView { status: Some(SUCCESS), ..about },
        Fact::CommandFailed { failure, .. } => CommandView { error: Some(failure), ..about },
        _ => return row.result.clone().and_then(raw),
    };
    let status = row.status.as_deref().unwrap_or_default();
    to_raw_value(&ResultColumn { status, reference, context }).ok()
}

/// Parses the JSON text of a row without changing it.
pub(crate) fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

pub(crate) fn command(row: &CommandRow, issued: &CommandSpec, of: &ExecutionRow) -> Command {
    let scope = issued.scope.as_deref();
    Command {
        execution_id: row.execution.into(),
        node_id: row.step.to_string(),
        node_name: row.step.to_string(),
        action: row.tool.to_string(),
        context: CommandContext {
            tool_config: Value::Object(issued.config.clone()),
            args: issued.input.clone(),
            render_context: scope.map(|scope| names(scope, row)).unwrap_or_default(),
        },
        meta: command_meta(row, issued, of),
    }
}

pub(crate) fn command_meta(
    row: &CommandRow,
    issued: &CommandSpec,
    of: &ExecutionRow,
) -> CommandMeta {
    CommandMeta {
        command_id: command_name(row.execution, &row.step, row.id),
        step: row.step.to_string(),
        tool_kind: row.tool.to_string(),
        attempt: row.attempt,
        max_attempts: ATTEMPTS_MAX,
        attempts: ATTEMPTS_MAX,
        execution_id: Id::text(row.execution.get()),
        catalog_id: Id::text(of.catalog.get()),
        actionable: true,
        iteration_index: issued.item.as_ref().map(|item| item.index),
        trace: issued
            .trace
            .as_ref()
            .map(|trace| TraceContext::new(trace.clone(), SpanId::of_command(row.id))),
    }
}

/// Converts a claimed command for a published worker.
pub(crate) fn claimed(claimed: &ClaimedCommand) -> Command {
    let ClaimedCommand { row, of, issued, lowered } = claimed;
    Command {
        action: lowered.action.clone(),
        context: CommandContext {
            tool_config: lowered.tool_config.clone(),
            args: lowered.args.clone(),
            render_context: lowered.render_context.clone(),
        },
        ..command(row, issued, of)
    }
}

/// Returns the template variables as published workers expect them: keys of the workload and
/// results of steps at the top level, and also under `workload` and `steps`.
fn names(scope: &CommandScope, row: &CommandRow) -> Map {
    let mut names = scope.workload.clone();
    let mut steps = Map::new();
    for (step, data) in &scope.steps {
        let mut flat = data.clone();
        if let Value::Object(fields) = &mut flat {
            fields.entry("data").or_insert_with(|| data.clone());
        }
        names.insert(step.clone(), flat);
        steps.insert(step.clone(), json!({ "status": "success", "data": data }));
    }
    if let Some(iteration) = &scope.iteration {
        names.insert(iteration.name.to_string(), iteration.item.clone());
        names.insert("_index".to_owned(), iteration.index.into());
        names.insert("_total".to_owned(), iteration.total.into());
        let mut iter = Map::new();
        iter.insert(iteration.name.to_string(), iteration.item.clone());
        iter.insert("_index".to_owned(), iteration.index.into());
        iter.insert("_total".to_owned(), iteration.total.into());
        names.insert("iter".to_owned(), Value::Object(iter));
    }
    names.insert("workload".to_owned(), Value::Object(scope.workload.clone()));
    names.insert("ctx".to_owned(), Value::Object(scope.ctx.clone()));
    names.insert("steps".to_owned(), Value::Object(steps));
    names.insert("execution_id".to_owned(), row.execution.to_string().into());
    names
}

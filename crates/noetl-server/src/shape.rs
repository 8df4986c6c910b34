//! Rows and events in the shapes of the wire.

use noetl_api::catalog::{Entry, RegisterReply};
use noetl_api::commands::{Command, CommandContext, CommandMeta};
use noetl_api::events::EventView;
use noetl_api::executions::{ExecutionView, Progress, StatusReply};
use noetl_api::{Diagnostic, Id, IdForm};
use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::event::Issued;
use noetl_model::row::EventRow;
use noetl_model::{Event, Map, Value, command_name};
use noetl_playbook::Severity;
use noetl_store::{CatalogEntry, CommandRow, ExecutionRow, ExecutionStatus};
use serde_json::value::RawValue;

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
        path: found.path.clone(),
        message: found.message.clone(),
        help: found.help.clone(),
    }
}

pub(crate) fn registered(
    entry: &CatalogEntry,
    findings: &[noetl_playbook::Diagnostic],
) -> RegisterReply {
    RegisterReply {
        status: "success".to_owned(),
        message: format!("Resource '{}' version '{}' registered.", entry.path, entry.version),
        path: entry.path.clone(),
        version: entry.version,
        catalog_id: Id::text(entry.id.get()),
        kind: entry.kind.clone(),
        warnings: findings.iter().map(diagnostic).collect(),
    }
}

pub(crate) fn entry(entry: CatalogEntry) -> Entry {
    Entry {
        catalog_id: Id::text(entry.id.get()),
        path: entry.path,
        kind: entry.kind,
        version: entry.version,
        content: Some(entry.content),
        layout: entry.layout,
        payload: entry.payload,
        meta: entry.meta,
        created_at: entry.created_at,
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
        completed: row.status == ExecutionStatus::Completed,
        failed: row.status == ExecutionStatus::Failed,
        completed_steps,
        error: row.error.clone(),
        start_time: row.started_at,
        end_time: row.ended_at,
        duration_seconds: duration_seconds(row),
    }
}

fn duration_seconds(row: &ExecutionRow) -> Option<f64> {
    row.ended_at.map(|end| end.since(row.started_at).as_secs_f64())
}

pub(crate) fn event(event: &Event, ids: IdForm) -> EventView {
    let row = EventRow::from(event);
    EventView {
        seq: row.seq.0,
        event_id: Id::new(row.event_id.get(), ids),
        node_id: row.node_name.to_string(),
        node_name: row.node_name.to_string(),
        node_type: row.node_type.as_deref().map(str::to_owned),
        created_at: row.created_at,
        timestamp: row.created_at,
        origin: row.origin.as_str().to_owned(),
        worker_id: row.worker_id.as_deref().map(str::to_owned),
        meta: shown_meta(&row),
        event_type: row.event_type.into_owned(),
        status: row.status.into_owned(),
        context: row.context.and_then(raw),
        result: row.result.and_then(raw),
        error: row.error,
    }
}

/// The stored `meta`, with the textual id of the command the row is about.
fn shown_meta(row: &EventRow) -> Option<Value> {
    let stored = row.meta.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let Some(command) = row.command_id else { return stored };
    let mut meta = match stored {
        Some(Value::Object(meta)) => meta,
        Some(other) => return Some(other),
        None => Map::new(),
    };
    let name = command_name(row.execution_id, &row.node_name, command);
    meta.insert("command_id".to_owned(), Value::String(name));
    Some(Value::Object(meta))
}

/// JSON text of a row, passed on as it is.
fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

pub(crate) fn command(row: &CommandRow, issued: &Issued, of: &ExecutionRow) -> Command {
    Command {
        execution_id: row.execution.into(),
        node_id: row.step.to_string(),
        node_name: row.step.to_string(),
        action: row.tool.to_string(),
        context: CommandContext {
            tool_config: issued.config.clone(),
            args: issued.input.clone(),
            render_context: Map::new(),
        },
        meta: CommandMeta {
            command_id: command_name(row.execution, &row.step, row.id),
            step: row.step.to_string(),
            tool_kind: row.tool.to_string(),
            attempt: row.attempt,
            max_attempts: ATTEMPTS_MAX,
            execution_id: Id::text(row.execution.get()),
            catalog_id: Id::text(of.catalog.get()),
            actionable: true,
        },
    }
}

//! Conversion of reported events to the control plane's reports.

use std::collections::HashMap;

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::events::{
    EventBatchReply, EventBatchRequest, EventReportBody, EventRequest, Rejected,
};
use noetl_journal::SubscriptionError;
use noetl_journal::metrics::type_label;
use noetl_model::event::ReportColumns;
use noetl_model::{CommandId, EventId, ExecutionId, Map, SubscriptionId, Value};
use noetl_remote::EventReport;
use serde::Deserialize;

use crate::app::App;
use crate::error::{ApiError, report_rejected, unknown_command};
use crate::http::bound;
use crate::http::caller::Caller;
use crate::http::extract::decode;

const ITEMS_MAX: usize = 50_000;

/// Step under which published workers report decisions of their own. Only the control plane makes
/// decisions, so such events are rejected.
const ORCHESTRATOR: &str = "__orchestrate__";

/// Defaults for an event without `actionable` or `informative`.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventDefaults {
    actionable: bool,
    informative: bool,
}

impl EventDefaults {
    /// Defaults for a single event.
    pub(super) const SINGLE: Self = Self { actionable: true, informative: true };
    /// Defaults for an item of a batch.
    const BATCH: Self = Self { actionable: false, informative: true };
}

/// Decodes an event that names its execution.
pub(super) fn decode_event(text: &[u8]) -> Result<EventRequest, ApiError> {
    // Errors in the fields that `EventRequest` flattens don't name them; those of `EventReportBody` do.
    decode(text).map_err(|error| decode::<EventReportBody>(text).err().unwrap_or(error))
}

/// Event ID of an invalid item, if it can be read.
#[derive(Deserialize)]
struct ItemId {
    event_id: Option<Id>,
}

/// Records the items of a batch, in order.
pub(super) async fn take_all(
    app: &App,
    caller: &Caller,
    request: EventBatchRequest,
) -> Result<EventBatchReply, ApiError> {
    let execution = request.execution_id.into();
    check_count(request.events.len())?;
    if request.worker_id.as_ref().is_some_and(|worker| worker.contains('\0')) {
        return Err(ApiError::invalid("nul_character", "text must not hold NUL characters"));
    }
    is_known(app, execution).await?;
    let (mut reports, mut places, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut owned = HashMap::new();
    for (index, item) in request.events.iter().enumerate() {
        match read_item(execution, request.worker_id.as_deref(), item.get()) {
            Ok(report) => match check_owned(app, caller, &report, &mut owned).await {
                Ok(()) => {
                    places.push(index);
                    reports.push(report);
                }
                Err(error) if error.is_client_error() => wrong.push((index, error)),
                Err(error) => return Err(error),
            },
            Err(error) => wrong.push((index, error)),
        }
    }
    let labels: Vec<&str> =
        reports.iter().map(|report| type_label(Some(&report.event_type))).collect();
    let answers = app.control.remote.reports.take_all(&app.tenant, execution, reports).await;
    let answers = answers.map_err(|failure| report_rejected(execution, failure))?;
    let mut event_ids = Vec::with_capacity(answers.len());
    for ((index, label), answer) in places.into_iter().zip(labels).zip(answers) {
        let answer = answer.map_err(|failure| report_rejected(execution, failure));
        count(app, label, &answer);
        match answer {
            Ok((event, _)) => event_ids.push(event.into()),
            Err(error) if error.is_client_error() => wrong.push((index, error)),
            Err(error) => return Err(error),
        }
    }
    wrong.sort_by_key(|(index, _)| *index);
    let rejected = wrong.into_iter().map(|(index, error)| {
        let named = serde_json::from_str::<ItemId>(request.events[index].get()).ok();
        let event_id = named.and_then(|named| named.event_id);
        Rejected { index, event_id, error: error.message().to_owned() }
    });
    let rejected = rejected.collect();
    Ok(EventBatchReply { status: "ok".to_owned(), event_ids, commands_generated: 0, rejected })
}

/// Rejects a batch with too many items.
pub(super) fn check_count(items: usize) -> Result<(), ApiError> {
    if items <= ITEMS_MAX {
        return Ok(());
    }
    let message = format!("a batch has at most {ITEMS_MAX} events, not {items}: send several");
    Err(ApiError::with_status(StatusCode::PAYLOAD_TOO_LARGE, "batch_too_large", message))
}

/// Checks that an execution has this ID, or a subscription, whose runtime reports under the
/// subscription's ID.
async fn is_known(app: &App, execution: ExecutionId) -> Result<(), ApiError> {
    let Err(unknown) = crate::event_queries::row(app, execution).await else { return Ok(()) };
    if !unknown.is_client_error() {
        return Err(unknown);
    }
    let id = SubscriptionId::new(execution.get());
    match app.control.triggers.subscriptions.get(&app.tenant, id).await {
        Ok(_) => Ok(()),
        Err(SubscriptionError::Unregistered(_)) => Err(unknown),
        Err(failure) => Err(failure.into()),
    }
}

fn read_item(
    execution: ExecutionId,
    worker: Option<&str>,
    item: &str,
) -> Result<EventReport, ApiError> {
    let mut said: EventReportBody = decode(item.as_bytes())?;
    said.worker_id = said.worker_id.or_else(|| worker.map(str::to_owned));
    report(execution, said, EventDefaults::BATCH)
}

/// Rejects a report about a command that the caller may not report on. Looks up each command once
/// per batch.
async fn check_owned(
    app: &App,
    caller: &Caller,
    report: &EventReport,
    owned: &mut HashMap<CommandId, bool>,
) -> Result<(), ApiError> {
    let Some(command) = report.command() else { return Ok(()) };
    let is_owned = match owned.get(&command) {
        Some(is_owned) => *is_owned,
        None => {
            let is_owned = bound::owns(app, caller, command).await?;
            owned.insert(command, is_owned);
            is_owned
        }
    };
    match is_owned {
        true => Ok(()),
        false => Err(unknown_command(StatusCode::NOT_FOUND, command)),
    }
}

/// Records a single report and updates the metrics.
pub(super) async fn take(
    app: &App,
    caller: &Caller,
    report: EventReport,
) -> Result<EventId, ApiError> {
    check_owned(app, caller, &report, &mut HashMap::new()).await?;
    let id = report.execution;
    let label = type_label(Some(&report.event_type));
    let metrics = &app.control.journal.metrics;
    let timer = metrics.event_ingest_seconds.with_label_values(&[label]).start_timer();
    let taken = app.control.remote.reports.record(&app.tenant, report).await;
    timer.observe_duration();
    let taken = taken.map_err(|failure| report_rejected(id, failure));
    count(app, label, &taken);
    taken
}

fn count<T>(app: &App, label: &str, taken: &Result<T, ApiError>) {
    let status = match taken {
        Ok(_) => "ok",
        Err(error) if error.is_client_error() => "rejected",
        Err(_) => "error",
    };
    app.control.journal.metrics.events_ingested.with_label_values(&[label, status]).inc();
}

/// Converts a reported event to the control plane's report.
pub(super) fn report(
    execution: ExecutionId,
    said: EventReportBody,
    or: EventDefaults,
) -> Result<EventReport, ApiError> {
    if said.step == ORCHESTRATOR {
        let message = "decisions are made by the control plane and cannot be handed in";
        return Err(ApiError::invalid("reserved_step", message));
    }
    if said.created_at.is_some_and(|at| !at.has_common_year()) {
        let message = "created_at must be in the years 1 to 9999";
        return Err(ApiError::invalid("invalid_time", message));
    }
    let meta = meta(&said, or);
    let columns = columns(&said);
    Ok(EventReport {
        execution,
        step: said.step,
        event_type: said.event_type.trim().to_owned(),
        status: said.status,
        payload: Some(said.payload).filter(|payload| !payload.is_null()),
        meta: Some(meta),
        worker: said.worker_id,
        event: said.event_id.map(Into::into),
        columns,
    })
}

/// Returns the columns of an event: the location of its result, and the time stated by its
/// producer.
fn columns(said: &EventReportBody) -> Option<Box<ReportColumns>> {
    let reference = match (said.result_kind.as_deref(), &said.result_uri, &said.event_ids) {
        (Some("ref"), Some(uri), _) => {
            Some(serde_json::json!({ "store_tier": tier(uri), "logical_uri": uri }))
        }
        (Some("refs"), _, Some(parts)) => {
            Some(serde_json::json!({ "event_ids": parts, "total_parts": parts.len() }))
        }
        _ => None,
    };
    let time = said.created_at.map(|at| ("event_time".to_owned(), Value::from(at.to_string())));
    let more = time.into_iter().collect();
    ReportColumns { reference, more, ..ReportColumns::default() }.if_any()
}

fn tier(uri: &str) -> &'static str {
    match uri.split_once("://") {
        Some(("gs", _)) => "gcs",
        Some(("s3", _)) => "s3",
        _ => "artifact",
    }
}

/// Adds flags and IDs to the event's `meta`. A `meta` that is not an object is returned unchanged.
fn meta(said: &EventReportBody, or: EventDefaults) -> Value {
    let mut meta = match &said.meta {
        Some(Value::Object(meta)) => meta.clone(),
        Some(Value::Null) | None => Map::new(),
        Some(other) => return other.clone(),
    };
    let mut add = |name: &str, value: Value| meta.insert(name.to_owned(), value);
    add("actionable", said.actionable.unwrap_or(or.actionable).into());
    add("informative", said.informative.unwrap_or(or.informative).into());
    if let Some(worker) = &said.worker_id {
        add("worker_id", worker.as_str().into());
    }
    for name in ["command_id", "loop_id", "collection_size"] {
        if let Some(value) = said.payload.get(name).filter(|value| !value.is_null()) {
            add(name, value.clone());
        }
    }
    Value::Object(meta)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(body: Value) -> Result<EventReport, ApiError> {
        let said = serde_json::from_value(body).expect("a thing said");
        report(ExecutionId::new(1), said, EventDefaults::SINGLE)
    }

    #[test]
    fn both_spellings_of_type_and_payload_are_read() {
        let one = said(json!({"step": "a", "event_type": " x ", "payload": {"p": 1}})).unwrap();
        let other = said(json!({"step": "a", "name": "x", "context": {"p": 1}})).unwrap();
        assert_eq!(one.event_type, other.event_type);
        assert_eq!(one.payload, other.payload);
    }

    #[test]
    fn meta_names_the_worker_and_the_command() {
        let body = json!({
            "step": "a", "event_type": "call.done", "worker_id": "w", "meta": {"attempts": 0},
            "context": {"command_id": "1:a:2"}, "created_at": "2026-01-01T00:00:00.5Z",
        });
        let expected = json!({
            "attempts": 0, "actionable": true, "informative": true, "worker_id": "w",
            "command_id": "1:a:2",
        });
        let report = said(body).unwrap();
        assert_eq!(report.meta, Some(expected));
        let more = report.columns.expect("columns").more;
        assert_eq!(more.get("event_time"), Some(&json!("2026-01-01T00:00:00.5Z")));
    }

    #[test]
    fn a_result_in_a_blob_is_named() {
        let body = json!({
            "step": "a", "event_type": "call.done", "result_kind": "ref", "result_uri": "gs://b/o",
        });
        let expected = json!({"store_tier": "gcs", "logical_uri": "gs://b/o"});
        let columns = said(body).unwrap().columns.expect("columns");
        assert_eq!(columns.reference, Some(expected));
    }

    #[test]
    fn nothing_outside_decides() {
        let refused = said(json!({"step": "__orchestrate__", "event_type": "call.done"}));
        assert!(refused.is_err());
    }
}

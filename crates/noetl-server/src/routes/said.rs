//! From what is said to what the control plane takes.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::events::{BatchReply, BatchRequest, Rejected, Said};
use noetl_control::metrics::type_label;
use noetl_control::{Report, SubscriptionError};
use noetl_model::{EventId, ExecutionId, Map, SubscriptionId, Value};
use serde::Deserialize;

use crate::app::App;
use crate::error::{ApiError, not_taken, unknown_command};
use crate::http::bound;
use crate::http::caller::Caller;
use crate::http::extract::decode;

/// The step under which published workers hand in decisions of their own. Nothing outside decides.
const ORCHESTRATOR: &str = "__orchestrate__";

/// What an event counts as when it does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    actionable: bool,
    informative: bool,
}

impl Flags {
    /// For an event that comes alone.
    pub(super) const SINGLE: Self = Self { actionable: true, informative: true };
    /// For an item of a batch.
    const BATCH: Self = Self { actionable: false, informative: true };
}

/// What an item that is wrong may still name.
#[derive(Deserialize)]
struct Named {
    event_id: Option<Id>,
}

/// Takes the items of a batch one after the other.
pub(super) async fn take_all(
    app: &App,
    caller: &Caller,
    request: BatchRequest,
) -> Result<BatchReply, ApiError> {
    let execution = request.execution_id.into();
    if request.worker_id.as_ref().is_some_and(|worker| worker.contains('\0')) {
        return Err(ApiError::invalid("nul_character", "text must not hold NUL characters"));
    }
    is_known(app, execution).await?;
    let (mut event_ids, mut rejected) = (Vec::new(), Vec::new());
    for (index, item) in request.events.iter().enumerate() {
        match take_item(app, caller, execution, request.worker_id.as_deref(), item.get()).await {
            Ok(event) => event_ids.push(event.into()),
            Err(error) if error.is_callers() => {
                let named = serde_json::from_str::<Named>(item.get()).ok();
                let event_id = named.and_then(|named| named.event_id);
                rejected.push(Rejected { index, event_id, error: error.message().to_owned() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(BatchReply { status: "ok".to_owned(), event_ids, commands_generated: 0, rejected })
}

/// Whether there is such a log: an execution's, or that of a subscription, under whose id its runtime
/// reports.
async fn is_known(app: &App, execution: ExecutionId) -> Result<(), ApiError> {
    let Err(unknown) = crate::reads::row(app, execution).await else { return Ok(()) };
    if !unknown.is_callers() {
        return Err(unknown);
    }
    let id = SubscriptionId::new(execution.get());
    match app.control.subscriptions.get(&app.tenant, id).await {
        Ok(_) => Ok(()),
        Err(SubscriptionError::Unregistered(_)) => Err(unknown),
        Err(failure) => Err(failure.into()),
    }
}

async fn take_item(
    app: &App,
    caller: &Caller,
    execution: ExecutionId,
    worker: Option<&str>,
    item: &str,
) -> Result<EventId, ApiError> {
    let mut said: Said = decode(item.as_bytes())?;
    said.worker_id = said.worker_id.or_else(|| worker.map(str::to_owned));
    let report = report(execution, said, Flags::BATCH)?;
    take(app, caller, report).await
}

/// Hands a report to the control plane.
pub(super) async fn take(app: &App, caller: &Caller, report: Report) -> Result<EventId, ApiError> {
    if let Some(command) = report.command()
        && !bound::owns(app, caller, command).await?
    {
        return Err(unknown_command(StatusCode::NOT_FOUND, command));
    }
    let id = report.execution;
    let label = type_label(Some(&report.event_type));
    let metrics = &app.control.metrics;
    let timer = metrics.event_ingest_seconds.with_label_values(&[label]).start_timer();
    let taken = app.control.reports.take(&app.tenant, report).await;
    timer.observe_duration();
    let taken = taken.map_err(|failure| not_taken(id, failure));
    let status = match &taken {
        Ok(_) => "ok",
        Err(error) if error.is_callers() => "rejected",
        Err(_) => "error",
    };
    metrics.events_ingested.with_label_values(&[label, status]).inc();
    taken
}

/// What the control plane takes, in its one spelling.
pub(super) fn report(execution: ExecutionId, said: Said, or: Flags) -> Result<Report, ApiError> {
    if said.step == ORCHESTRATOR {
        let message = "decisions are made by the control plane and cannot be handed in";
        return Err(ApiError::invalid("reserved_step", message));
    }
    let meta = meta(&said, or);
    let payload = payload(&said);
    Ok(Report {
        execution,
        step: said.step,
        event_type: said.event_type.trim().to_owned(),
        status: said.status,
        payload,
        meta: Some(meta),
        worker: said.worker_id,
        event: said.event_id.map(Into::into),
    })
}

/// Whether the result lies elsewhere.
pub(super) fn refers(said: &Said) -> bool {
    match said.result_kind.as_deref() {
        Some("ref") => said.result_uri.is_some(),
        Some("refs") => said.event_ids.is_some(),
        _ => false,
    }
}

/// What was said, with a result that lies elsewhere named as `reference`.
fn payload(said: &Said) -> Option<Value> {
    let reference = match (said.result_kind.as_deref(), &said.result_uri, &said.event_ids) {
        (Some("ref"), Some(uri), _) => {
            serde_json::json!({ "store_tier": tier(uri), "logical_uri": uri })
        }
        (Some("refs"), _, Some(parts)) => {
            serde_json::json!({ "event_ids": parts, "total_parts": parts.len() })
        }
        _ => return Some(said.payload.clone()).filter(|payload| !payload.is_null()),
    };
    let mut payload = match &said.payload {
        Value::Object(payload) => payload.clone(),
        _ => Map::new(),
    };
    payload.insert("reference".to_owned(), reference);
    Some(Value::Object(payload))
}

fn tier(uri: &str) -> &'static str {
    match uri.split_once("://") {
        Some(("gs", _)) => "gcs",
        Some(("s3", _)) => "s3",
        _ => "artifact",
    }
}

/// What helps to read the row. A `meta` that is not an object is kept as it is.
fn meta(said: &Said, or: Flags) -> Value {
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
    if let Some(at) = said.created_at {
        add("reported_at", at.to_string().into());
    }
    Value::Object(meta)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(body: Value) -> Result<Report, ApiError> {
        let said = serde_json::from_value(body).expect("a thing said");
        report(ExecutionId::new(1), said, Flags::SINGLE)
    }

    #[test]
    fn both_spellings_of_type_and_payload_are_read() {
        let one = said(json!({"step": "a", "event_type": " x ", "payload": {"p": 1}})).unwrap();
        let other = said(json!({"step": "a", "name": "x", "context": {"p": 1}})).unwrap();
        assert_eq!(one.event_type, other.event_type);
        assert_eq!(one.payload, other.payload);
    }

    #[test]
    fn meta_says_who_and_which_command() {
        let body = json!({
            "step": "a", "event_type": "call.done", "worker_id": "w", "meta": {"attempts": 0},
            "context": {"command_id": "1:a:2"}, "created_at": "2026-01-01T00:00:00.5Z",
        });
        let expected = json!({
            "attempts": 0, "actionable": true, "informative": true, "worker_id": "w",
            "command_id": "1:a:2", "reported_at": "2026-01-01T00:00:00.5Z",
        });
        assert_eq!(said(body).unwrap().meta, Some(expected));
    }

    #[test]
    fn a_result_elsewhere_is_named() {
        let body = json!({
            "step": "a", "event_type": "call.done", "result_kind": "ref", "result_uri": "gs://b/o",
        });
        let expected = json!({"reference": {"store_tier": "gcs", "logical_uri": "gs://b/o"}});
        assert_eq!(said(body).unwrap().payload, Some(expected));
    }

    #[test]
    fn nothing_outside_decides() {
        let refused = said(json!({"step": "__orchestrate__", "event_type": "call.done"}));
        assert!(refused.is_err());
    }
}

//! Imports of rows and events by system pools.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::events::{EventRequest, Rejected};
use noetl_api::internal::{MaterializeReply, ProjectReply, ProjectRequest};
use noetl_model::Timestamp;
use noetl_publishing::{ImportSummary, InvalidRow, check_depth, check_type, parse_row};
use noetl_store::Import;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event_body;
use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, JsonText, decode, decode_list, decode_text};
use crate::http::openapi::ErrorResponses;

/// Maximum body size of these routes, in bytes. A batch of 200 stream rows of maximum size far
/// exceeds the limit of other routes.
pub(crate) const BODY_LIMIT: usize = 64 << 20;

/// Imports rows of the event stream
///
/// Each row is handled separately: errors are listed in `rejected`, and the other rows are stored.
/// An existing row counts as a duplicate.
#[utoipa::path(
    post,
    path = "/api/internal/events/project",
    tag = "internal",
    request_body = ProjectRequest,
    responses((status = 200, body = ProjectReply), ErrorResponses),
)]
pub(crate) async fn project(
    Scoped(app): Scoped,
    JsonText(text): JsonText,
) -> Result<Json<ProjectReply>, ApiError> {
    let request: ProjectRequest = decode_text(&text)?;
    if request.events.is_empty() {
        let message = "events must not be empty";
        return Err(ApiError::with_status(StatusCode::BAD_REQUEST, "empty_request", message));
    }
    event_body::check_count(request.events.len())?;
    let now = app.control.publishing.imports.now();
    let decoded = request.events.iter().map(|item| row(item.get(), now));
    let (taken, rejected) = take(&app, &request.events, decoded).await?;
    let metrics = &app.control.journal.metrics;
    metrics.events_projected.inc_by(taken.kept as u64);
    metrics.events_rejected.with_label_values(&["project"]).inc_by(rejected.len() as u64);
    Ok(Json(ProjectReply { projected: taken.kept, duplicates: taken.duplicates, rejected }))
}

/// Imports events of remote workers
///
/// The body is an array of events as `POST /api/events` accepts them. Each event is handled
/// separately.
#[utoipa::path(
    post,
    path = "/api/internal/events/materialize",
    tag = "internal",
    request_body = Vec<EventRequest>,
    responses((status = 200, body = MaterializeReply), ErrorResponses),
)]
pub(crate) async fn materialize(
    Scoped(app): Scoped,
    JsonText(text): JsonText,
) -> Result<Json<MaterializeReply>, ApiError> {
    let items: Vec<Box<RawValue>> = decode_list(&text)?;
    event_body::check_count(items.len())?;
    app.control.publishing.imports.ready()?;
    let decoded = items.iter().map(|item| native(&app, item.get()));
    let (taken, rejected) = take(&app, &items, decoded).await?;
    let metrics = &app.control.journal.metrics;
    metrics.events_materialized.inc_by(taken.kept as u64);
    metrics.events_rejected.with_label_values(&["materialize"]).inc_by(rejected.len() as u64);
    Ok(Json(MaterializeReply { materialized: taken.kept, duplicates: taken.duplicates, rejected }))
}

/// Parses a row of the event stream.
fn row(item: &str, now: Timestamp) -> Result<Import, ApiError> {
    parse_row(decode(item.as_bytes())?, now).map_err(wrong)
}

fn wrong(error: InvalidRow) -> ApiError {
    ApiError::invalid("invalid_row", error.to_string())
}

/// Converts an event of a worker to a row.
fn native(app: &App, item: &str) -> Result<Import, ApiError> {
    let request: EventRequest = event_body::decode_event(item.as_bytes())?;
    let at = request.said.created_at;
    let report = event_body::report(
        request.execution_id.into(),
        request.said,
        event_body::EventDefaults::SINGLE,
    )?;
    check_type(&report.event_type).map_err(wrong)?;
    check_depth([&report.payload, &report.meta]).map_err(wrong)?;
    Ok(app.control.publishing.imports.import_of(&app.tenant, report, at))
}

/// Imports the rows that could be decoded. Returns the items that could not be decoded or were
/// rejected.
async fn take(
    app: &App,
    items: &[Box<RawValue>],
    decoded: impl Iterator<Item = Result<Import, ApiError>>,
) -> Result<(ImportSummary, Vec<Rejected>), ApiError> {
    let (mut rows, mut wrong) = (Vec::new(), Vec::new());
    for (index, decoded) in decoded.enumerate() {
        match decoded {
            Ok(row) => rows.push((index, row)),
            Err(error) => wrong.push((index, error.message().to_owned())),
        }
    }
    let mut taken = app.control.publishing.imports.import(rows).await?;
    wrong.append(&mut taken.rejected);
    wrong.sort_by_key(|(index, _)| *index);
    let named = |(index, error): (usize, String)| Rejected {
        index,
        event_id: named_event(items[index].get()),
        error,
    };
    Ok((taken, wrong.into_iter().map(named).collect()))
}

/// Returns the event ID of an item, if it can be read.
fn named_event(item: &str) -> Option<Id> {
    #[derive(Deserialize)]
    struct RowId {
        event_id: Option<Id>,
    }
    serde_json::from_str::<RowId>(item).ok().and_then(|named| named.event_id)
}

//! Event reports of workers and clients.

use noetl_api::events::{EventBatchReply, EventBatchRequest, EventReply, EventRequest};

use super::event_body;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, JsonText, decode_text};
use crate::http::openapi::ErrorResponses;

/// Reports an event of an execution
///
/// A report about a command advances its execution. Other events are stored and shown. Resending an
/// event returns the same response and has no effect.
#[utoipa::path(
    post,
    path = "/api/events",
    tag = "workers",
    request_body = EventRequest,
    responses((status = 200, body = EventReply), ErrorResponses),
)]
pub(crate) async fn report(
    Scoped(app): Scoped,
    caller: Caller,
    JsonText(text): JsonText,
) -> Result<Json<EventReply>, ApiError> {
    let request = event_body::decode_event(&text)?;
    let execution = request.execution_id.into();
    let app = app.for_execution(&caller, execution).await?;
    let report = event_body::report(execution, request.said, event_body::EventDefaults::SINGLE)?;
    let event = event_body::take(&app, &caller, report).await?;
    Ok(Json(EventReply { status: "ok".to_owned(), event_id: event.into(), commands_generated: 0 }))
}

/// Reports several events of an execution
///
/// Each event is handled separately: errors are listed in `rejected`, and the other events are
/// stored.
#[utoipa::path(
    post,
    path = "/api/events/batch",
    tag = "workers",
    request_body = EventBatchRequest,
    responses((status = 200, body = EventBatchReply), ErrorResponses),
)]
pub(crate) async fn report_batch(
    Scoped(app): Scoped,
    caller: Caller,
    JsonText(text): JsonText,
) -> Result<Json<EventBatchReply>, ApiError> {
    let request: EventBatchRequest = decode_text(&text)?;
    let app = app.for_execution(&caller, request.execution_id.into()).await?;
    event_body::take_all(&app, &caller, request).await.map(Json)
}

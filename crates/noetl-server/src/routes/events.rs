//! What workers and clients say.

use axum::extract::State;
use noetl_api::events::{BatchReply, BatchRequest, EventReply, EventRequest};

use super::said;
use crate::app::App;
use crate::error::ApiError;
use crate::http::extract::{Json, JsonText, decode_text};

/// Say one thing about an execution
///
/// A report about a command drives its execution; anything else is kept and shown. Saying the same
/// event again answers the same and changes nothing.
pub(crate) async fn report(
    State(app): State<App>,
    Json(request): Json<EventRequest>,
) -> Result<Json<EventReply>, ApiError> {
    let report = said::report(request.execution_id.into(), request.said, said::Flags::SINGLE)?;
    let event = said::take(&app, report).await?;
    Ok(Json(EventReply { status: "ok".to_owned(), event_id: event.into(), commands_generated: 0 }))
}

/// Say several things about one execution
///
/// Each is taken for itself: what is wrong with one is said in `rejected`, and the rest is kept.
pub(crate) async fn report_batch(
    State(app): State<App>,
    JsonText(text): JsonText,
) -> Result<Json<BatchReply>, ApiError> {
    let request: BatchRequest = decode_text(&text)?;
    said::take_all(&app, request).await.map(Json)
}

//! Starts of several executions in one request.

use std::collections::HashSet;

use axum::http::StatusCode;
use futures::{StreamExt as _, stream};
use noetl_api::execute::{
    BatchResult, ExecuteBatchReply, ExecuteBatchRequest, ExecuteReply, ExecuteRequest,
};

use super::{DUPLICATE, count, start};
use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, JsonText, decode, decode_text};
use crate::http::openapi::ErrorResponses;
use crate::http::trace_context::RequestTrace;

const ITEMS_MAX: usize = 1000;

/// Maximum starts in flight per request: enough to share commits, and few enough that one request
/// doesn't fill the journal queue.
const AT_ONCE: usize = 64;

/// Starts several executions
///
/// Each item is handled separately: an error is reported at the item's index, and the other items
/// are started. Of several items with the same `dedup` key, the first one starts.
#[utoipa::path(
    post,
    path = "/api/execute/batch",
    tag = "executions",
    request_body = ExecuteBatchRequest,
    responses((status = 200, body = ExecuteBatchReply), ErrorResponses),
)]
pub(crate) async fn execute_batch(
    Scoped(app): Scoped,
    caller: Caller,
    traced: RequestTrace,
    JsonText(text): JsonText,
) -> Result<Json<ExecuteBatchReply>, ApiError> {
    let request: ExecuteBatchRequest = decode_text(&text)?;
    if !(1..=ITEMS_MAX).contains(&request.executions.len()) {
        let message = format!("executions holds 1 to {ITEMS_MAX} items");
        return Err(ApiError::invalid("invalid_batch", message));
    }
    app.control.journal.metrics.execute_batch_size.observe(request.executions.len() as f64);
    let items = request.executions.iter().map(|item| decode(item.get().as_bytes()));
    let (first, later) = parted(items);
    let mut results = Vec::with_capacity(request.executions.len());
    // An item with the key of an earlier one is a duplicate only once the earlier one has started.
    for part in [first, later] {
        let started =
            stream::iter(part).map(|(index, item)| taken(&app, &caller, &traced, index, item));
        results.extend(started.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
    }
    results.sort_by_key(|result| result.index);
    let of = |status: &str| results.iter().filter(|result| result.status == status).count();
    let (started, duplicates, failed) = (of("started"), of(DUPLICATE), of("error"));
    let count = results.len();
    Ok(Json(ExecuteBatchReply { count, started, duplicates, failed, results }))
}

type BatchStart = (usize, Result<ExecuteRequest, ApiError>);

/// Splits off the items whose dedup key an earlier item has.
fn parted(
    items: impl Iterator<Item = Result<ExecuteRequest, ApiError>>,
) -> (Vec<BatchStart>, Vec<BatchStart>) {
    let mut named = HashSet::new();
    items.enumerate().partition(|(_, item)| {
        let key = item.as_ref().ok().and_then(|item| {
            let dedup = item.dedup.as_ref()?;
            Some((item.parent_execution_id.map(noetl_api::Id::get), dedup.key.clone()))
        });
        key.is_none_or(|key| named.insert(key))
    })
}

async fn taken(
    app: &App,
    caller: &Caller,
    traced: &RequestTrace,
    index: usize,
    item: Result<ExecuteRequest, ApiError>,
) -> BatchResult {
    let outcome = match item {
        Ok(request) => start(app, caller, traced, request).await,
        Err(wrong) => Err(wrong),
    };
    count(app, "batch", &outcome);
    match outcome {
        Ok(ExecuteReply { execution_id, status, commands_generated }) => BatchResult {
            index,
            status,
            execution_id: Some(execution_id),
            commands_generated,
            error: None,
        },
        Err(error) => BatchResult {
            index,
            status: "error".to_owned(),
            execution_id: None,
            commands_generated: 0,
            error: Some(format!("{}: {}", class(error.status()), error.message())),
        },
    }
}

/// Returns the error prefix by which published clients classify a failure.
fn class(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Resource not found",
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::CONFLICT => "Conflict",
        status if status.is_client_error() => "Validation error",
        _ => "Database error",
    }
}

//! Starting many executions with one request.

use std::collections::HashSet;

use axum::http::StatusCode;
use futures::{StreamExt as _, stream};
use noetl_api::execute::{BatchReply, BatchRequest, BatchResult, ExecuteReply, ExecuteRequest};

use super::{DUPLICATE, count, start};
use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Json, JsonText, decode, decode_text};
use crate::http::traced::Traced;

/// The most executions one request starts.
const ITEMS_MAX: usize = 1000;

/// Starts under way at a time: enough that they share commits, few enough that one request does not
/// take the journal for itself.
const AT_ONCE: usize = 64;

/// Start several executions
///
/// Each for itself: what is wrong with one is said at its place, and the others are started. Of items
/// with one `dedup` key the first starts.
#[utoipa::path(
    post,
    path = "/api/execute/batch",
    tag = "executions",
    request_body = BatchRequest,
    responses((status = 200, body = BatchReply), Failures),
)]
pub(crate) async fn execute_batch(
    Scoped(app): Scoped,
    caller: Caller,
    traced: Traced,
    JsonText(text): JsonText,
) -> Result<Json<BatchReply>, ApiError> {
    let request: BatchRequest = decode_text(&text)?;
    if !(1..=ITEMS_MAX).contains(&request.executions.len()) {
        let message = format!("executions holds 1 to {ITEMS_MAX} items");
        return Err(ApiError::invalid("invalid_batch", message));
    }
    app.control.metrics.execute_batch_size.observe(request.executions.len() as f64);
    let items = request.executions.iter().map(|item| decode(item.get().as_bytes()));
    let (first, later) = parted(items);
    let mut results = Vec::with_capacity(request.executions.len());
    // Whether an item is a repeat of another is known when that one has started.
    for part in [first, later] {
        let started =
            stream::iter(part).map(|(index, item)| taken(&app, &caller, &traced, index, item));
        results.extend(started.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
    }
    results.sort_by_key(|result| result.index);
    let of = |status: &str| results.iter().filter(|result| result.status == status).count();
    let (started, duplicates, failed) = (of("started"), of(DUPLICATE), of("error"));
    let count = results.len();
    Ok(Json(BatchReply { count, started, duplicates, failed, results }))
}

type Item = (usize, Result<ExecuteRequest, ApiError>);

/// The items, and apart from them those that name a key an earlier one named.
fn parted(items: impl Iterator<Item = Result<ExecuteRequest, ApiError>>) -> (Vec<Item>, Vec<Item>) {
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
    traced: &Traced,
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

/// How published clients know what kind of failure it was.
fn class(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Resource not found",
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::CONFLICT => "Conflict",
        status if status.is_client_error() => "Validation error",
        _ => "Database error",
    }
}

//! Outbox, for external publishers and their autoscalers.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::outbox::{
    ClaimReply, ClaimRequest, FailedReply, FailedRequest, OutboxRow, PendingReply, PublishedReply,
    PublishedRequest,
};
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Claims outbox rows for publication
///
/// A claim is a lease: rows that are marked neither published nor failed before it expires can be
/// claimed again.
#[utoipa::path(
    post,
    path = "/api/internal/outbox/claim",
    operation_id = "outbox_claim",
    tag = "internal",
    request_body = ClaimRequest,
    responses((status = 200, body = ClaimReply), ErrorResponses),
)]
pub(crate) async fn claim(
    Scoped(app): Scoped,
    Json(request): Json<ClaimRequest>,
) -> Result<Json<ClaimReply>, ApiError> {
    let claimed = app.control.publishing.outbox.claim(request.limit).await?;
    let rows: Vec<OutboxRow> = claimed.into_iter().map(shown).collect();
    Ok(Json(ClaimReply { claimed: rows.len(), rows }))
}

/// Marks outbox rows as published
///
/// This is final. Rows that are already marked don't count.
#[utoipa::path(
    post,
    path = "/api/internal/outbox/mark-published",
    tag = "internal",
    request_body = PublishedRequest,
    responses((status = 200, body = PublishedReply), ErrorResponses),
)]
pub(crate) async fn mark_published(
    Scoped(app): Scoped,
    Json(request): Json<PublishedRequest>,
) -> Result<Json<PublishedReply>, ApiError> {
    if request.outbox_ids.is_empty() {
        return Err(empty("outbox_ids must not be empty"));
    }
    let marked = app.control.publishing.outbox.published(&request.outbox_ids).await?;
    Ok(Json(PublishedReply { marked }))
}

/// Marks an outbox row as failed
///
/// The row can be claimed again after a delay that doubles with `attempts`.
#[utoipa::path(
    post,
    path = "/api/internal/outbox/mark-failed",
    tag = "internal",
    request_body = FailedRequest,
    responses((status = 200, body = FailedReply), ErrorResponses),
)]
pub(crate) async fn mark_failed(
    Scoped(app): Scoped,
    Json(request): Json<FailedRequest>,
) -> Result<Json<FailedReply>, ApiError> {
    if request.error.is_empty() {
        return Err(empty("error must not be empty"));
    }
    let FailedRequest { outbox_id, error, attempts, max_delay_seconds } = request;
    let outbox = &app.control.publishing.outbox;
    let (marked, delay) = outbox.failed(outbox_id, &error, attempts, max_delay_seconds).await?;
    Ok(Json(FailedReply { marked, available_at_in: delay.as_secs() }))
}

/// Counts claimable outbox rows
#[utoipa::path(
    get,
    path = "/api/internal/outbox/pending-count",
    tag = "internal",
    responses((status = 200, body = PendingReply), ErrorResponses),
)]
pub(crate) async fn pending_count(Scoped(app): Scoped) -> Result<Json<PendingReply>, ApiError> {
    Ok(Json(PendingReply { pending: app.control.publishing.outbox.pending().await? }))
}

fn empty(message: &str) -> ApiError {
    ApiError::with_status(StatusCode::BAD_REQUEST, "empty_request", message)
}

fn shown(row: noetl_store::OutboxRow) -> OutboxRow {
    // A payload that is not JSON can only come from another program. It is returned as text, so
    // that it doesn't block the other rows.
    let payload = RawValue::from_string(row.payload.clone())
        .or_else(|_| serde_json::value::to_raw_value(&row.payload))
        .unwrap_or_else(|_| RawValue::NULL.to_owned());
    OutboxRow {
        outbox_id: Id::number(row.id),
        event_id: row.event.into(),
        execution_id: row.execution.map(Into::into),
        subject: row.subject,
        payload,
        payload_codec: row.codec,
        attempts: row.attempts,
    }
}

#[cfg(test)]
mod tests {
    use noetl_model::{EventId, Tenant};
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_columns_of_imported_rows_are_omitted() {
        let row = noetl_store::OutboxRow {
            id: 1,
            tenant: Tenant::default(),
            event: EventId::new(2),
            execution: None,
            subject: None,
            payload: r#"{"a":2}"#.into(),
            codec: "json".into(),
            attempts: 1,
            error: None,
        };
        assert_eq!(
            serde_json::to_value(shown(row)).expect("JSON"),
            json!({"outbox_id": 1, "event_id": 2, "payload": {"a": 2}, "payload_codec": "json", "attempts": 1})
        );
    }
}

//! Purge of old data by retention policy.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use noetl_api::internal::{PurgeReply, PurgeRequest, RetainedPart};
use noetl_control::PurgeError;
use noetl_store::{RetentionPolicy, RetentionWindow};

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Purges old data
///
/// Deletes data by retention policy. Running executions and subscriptions are never purged. The
/// response lists the log partitions that were retained, with the reason.
#[utoipa::path(
    post,
    path = "/api/internal/cleanup/purge",
    tag = "internal",
    request_body = Option<PurgeRequest>,
    responses((status = 200, body = PurgeReply), ErrorResponses),
)]
pub(crate) async fn purge(
    Scoped(app): Scoped,
    request: Request,
) -> Result<Json<PurgeReply>, ApiError> {
    let asked = match request.headers().contains_key(CONTENT_TYPE) {
        true => Json::<PurgeRequest>::from_request(request, &()).await?.0,
        false => PurgeRequest::default(),
    };
    let policy = policy(&asked)?;
    let purged = app.control.purge(&policy, asked.dry_run).await.map_err(|error| match error {
        PurgeError::Store(error) | PurgeError::Content(noetl_store::BlobError::Place(error)) => {
            error.into()
        }
        PurgeError::Content(error) => ApiError::internal(error.to_string()),
    })?;
    let report = purged.report;
    if !asked.dry_run {
        let count = |table: &str, rows| {
            app.control.journal.metrics.rows_purged.with_label_values(&[table]).inc_by(rows);
        };
        count("command", report.removed.commands);
        count("runtime", report.removed.runtimes);
        count("event_partition", report.dropped.len() as u64);
        count("execution", report.removed.executions);
        count("event", report.removed.events);
    }
    let kept = report.kept.into_iter();
    let kept = kept.map(|kept| RetainedPart { partition: kept.partition, reason: kept.reason });
    Ok(Json(PurgeReply {
        commands_purged: report.removed.commands,
        runtime_purged: report.removed.runtimes,
        events_purged: report.dropped.len(),
        event_partitions_dropped: report.dropped,
        kept: kept.collect(),
        dry_run: asked.dry_run,
    }))
}

/// Builds the retention policy of a request. Tables that the request doesn't name have their
/// default retention.
fn policy(asked: &PurgeRequest) -> Result<RetentionPolicy, ApiError> {
    let refused = |error: noetl_store::retention::OutOfRange| {
        ApiError::invalid("out_of_range", error.to_string())
    };
    Ok(RetentionPolicy {
        executions: RetentionWindow::days("event_retention_days", asked.event_retention_days)
            .map_err(refused)?,
        commands: RetentionWindow::days("command_retention_days", asked.command_retention_days)
            .map_err(refused)?,
        runtimes: RetentionWindow::minutes("runtime_stale_minutes", asked.runtime_stale_minutes)
            .map_err(refused)?,
        ..RetentionPolicy::default()
    })
}

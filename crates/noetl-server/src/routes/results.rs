//! Results that workers store separately from their reports.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use noetl_api::results::{PutResult, ResolveQuery, ResultStored};
use noetl_model::ExecutionId;
use noetl_results::{ResolveError, ResultRequest};

use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path, Query};
use crate::http::openapi::ErrorResponses;

/// Stores a result
///
/// Up to 64 MiB. Size and checksum refer to the JSON with sorted keys.
#[utoipa::path(
    put,
    path = "/api/result/{execution_id}",
    operation_id = "result_put",
    tag = "workers",
    params(("execution_id" = String, Path)),
    request_body = PutResult,
    responses((status = 200, body = ResultStored), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<i64>,
    Json(request): Json<PutResult>,
) -> Result<Json<ResultStored>, ApiError> {
    bound::check_execution(&app, &caller, ExecutionId::new(id)).await?;
    let request = ResultRequest {
        name: request.name,
        data: request.data,
        scope: request.scope,
        source_step: request.source_step,
    };
    let kept =
        app.control.data.stored_results.put(&app.tenant, ExecutionId::new(id), request).await;
    let status = if kept.is_ok() { "ok" } else { "error" };
    app.control.journal.metrics.results_put.with_label_values(&[status]).inc();
    let kept = kept?;
    Ok(Json(ResultStored {
        reference: format!("noetl://execution/{id}/result/{}/{}", kept.name, kept.id),
        store: "db".to_owned(),
        scope: kept.scope,
        bytes: kept.bytes,
        sha256: kept.sha256,
        expires_at: None,
    }))
}

/// Resolves a result reference
///
/// The body is the value itself. Supports references to stored results, to large results of steps,
/// and to objects of published workers.
#[utoipa::path(
    get,
    path = "/api/result/resolve",
    operation_id = "result_resolve",
    tag = "workers",
    params(ResolveQuery),
    responses((status = 200, body = Value), ErrorResponses),
)]
pub(crate) async fn resolve(
    Scoped(app): Scoped,
    caller: Caller,
    Query(query): Query<ResolveQuery>,
) -> Result<Response, ApiError> {
    let app = match noetl_results::execution_in(&query.reference) {
        Some(execution) => app.for_execution(&caller, execution).await?,
        None => app,
    };
    let found = app.control.data.stored_results.resolve(&app.tenant, &query.reference).await;
    let status = match &found {
        Ok(_) => "ok",
        Err(ResolveError::NotFound) => "not_found",
        Err(ResolveError::Malformed(_) | ResolveError::Store(_)) => "error",
    };
    app.control.journal.metrics.results_resolved.with_label_values(&[status]).inc();
    Ok(([(CONTENT_TYPE, "application/json")], found?.0).into_response())
}

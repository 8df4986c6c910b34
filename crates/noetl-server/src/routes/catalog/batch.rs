//! Registration of several documents in one request.

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::catalog::{BatchResult, RegisterBatchReply, RegisterBatchRequest, RegisterRequest};

use super::{RegisterQuery, plain};
use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Query};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;
use crate::shape;

const ITEMS_MAX: usize = 1000;

/// Registers several documents
///
/// Registers the documents in order. A rejected document doesn't affect the others.
#[utoipa::path(
    post,
    path = "/api/catalog/register/batch",
    operation_id = "catalog_register_batch",
    tag = "catalog",
    params(RegisterQuery),
    request_body = RegisterBatchRequest,
    responses((status = 200, body = RegisterBatchReply), ErrorResponses),
)]
pub(crate) async fn register(
    Scoped(app): Scoped,
    caller: Caller,
    Query(query): Query<RegisterQuery>,
    Json(request): Json<RegisterBatchRequest>,
) -> Result<Json<RegisterBatchReply>, ApiError> {
    if request.items.is_empty() || request.items.len() > ITEMS_MAX {
        let message = format!("items must hold 1 to {ITEMS_MAX} documents");
        return Err(ApiError::with_status(StatusCode::BAD_REQUEST, "empty_request", message));
    }
    let mut results = Vec::with_capacity(request.items.len());
    for (index, item) in request.items.into_iter().enumerate() {
        match one(&app, &caller, item, query.force, index).await {
            Ok(result) => results.push(result),
            // Documents registered before stay registered; the caller retries with the rest.
            Err(failure) if failure.is_client_error() => results.push(refused(index, &failure)),
            Err(failure) if results.is_empty() => return Err(failure),
            Err(failure) => results.push(refused(index, &failure)),
        }
    }
    let registered = results.iter().filter(|result| result.error.is_none()).count();
    Ok(Json(RegisterBatchReply { registered, failed: results.len() - registered, results }))
}

async fn one(
    app: &App,
    caller: &Caller,
    item: RegisterRequest,
    force: bool,
    index: usize,
) -> Result<BatchResult, ApiError> {
    let content = plain(item.content)?;
    granted::check_document(app, caller, &content).await?;
    let catalog = &app.control.catalog;
    let (entry, findings) =
        catalog.register(&app.tenant, content, &item.resource_type, force).await?;
    Ok(BatchResult {
        index,
        status: "registered".to_owned(),
        path: Some(entry.path),
        version: Some(entry.version),
        catalog_id: Some(Id::text(entry.id.get())),
        error: None,
        diagnostics: findings.iter().map(shape::diagnostic).collect(),
    })
}

fn refused(index: usize, failure: &ApiError) -> BatchResult {
    BatchResult {
        index,
        status: "failed".to_owned(),
        path: None,
        version: None,
        catalog_id: None,
        error: Some(failure.message().to_owned()),
        diagnostics: failure.diagnostics().to_vec(),
    }
}

//! Validation of documents without registration.

use noetl_api::catalog::{CheckReply, CheckRequest};
use noetl_playbook::Severity;

use super::plain;
use crate::app::App;
use crate::error::{ApiError, sentence};
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;
use crate::shape;

/// Validates a document
///
/// Returns all errors and warnings with line and column. Stores nothing.
#[utoipa::path(
    post,
    path = "/api/catalog/validate",
    operation_id = "catalog_validate",
    tag = "catalog",
    request_body = CheckRequest,
    responses((status = 200, body = CheckReply), ErrorResponses),
)]
pub(crate) async fn validate(
    Scoped(app): Scoped,
    Json(request): Json<CheckRequest>,
) -> Result<Json<CheckReply>, ApiError> {
    checked(&app, request).await
}

/// Validates a playbook
///
/// Behaves like `POST /api/catalog/validate`. Published pages use this path.
#[utoipa::path(
    post,
    path = "/api/catalog/playbooks/validate",
    operation_id = "playbooks_validate",
    tag = "catalog",
    request_body = CheckRequest,
    responses((status = 200, body = CheckReply), ErrorResponses),
)]
pub(crate) async fn validate_playbook(
    Scoped(app): Scoped,
    Json(request): Json<CheckRequest>,
) -> Result<Json<CheckReply>, ApiError> {
    checked(&app, request).await
}

async fn checked(app: &App, request: CheckRequest) -> Result<Json<CheckReply>, ApiError> {
    let content = plain(request.content)?;
    let catalog = &app.control.catalog;
    let found = catalog.check(&app.tenant, &content, &request.resource_type).await?;
    let diagnostics: Vec<_> = found.diagnostics.iter().map(shape::diagnostic).collect();
    let errors = diagnostics.iter().zip(&found.diagnostics);
    let errors = errors.filter(|(_, found)| found.severity == Severity::Error);
    Ok(Json(CheckReply {
        valid: found.is_valid(),
        errors: errors.map(|(shown, _)| sentence(shown)).collect(),
        diagnostics,
        path: found.path,
        kind: found.kind,
    }))
}

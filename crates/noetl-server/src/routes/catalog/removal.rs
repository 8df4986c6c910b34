//! Deletion and restoration of documents.

use noetl_api::catalog::{DeleteReply, DeleteRequest};
use noetl_store::CatalogVersion;

use super::missing;
use crate::app::App;
use crate::error::ApiError;
use crate::http::acted;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::Json;
use crate::http::granted;
use crate::http::openapi::ErrorResponses;

/// Deletes a document
///
/// Deletes one version of a path, or all of them. A deleted version is not listed and cannot be
/// started by its path. Running executions continue. Deleting a version twice has no effect.
#[utoipa::path(
    post,
    path = "/api/catalog/delete",
    operation_id = "catalog_delete",
    tag = "catalog",
    request_body = DeleteRequest,
    responses((status = 200, body = DeleteReply), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<DeleteRequest>,
) -> Result<Json<DeleteReply>, ApiError> {
    let (path, version) = meant(&app, request).await?;
    granted::check_path(&app, &caller, &path).await?;
    acted::record(&app, &caller, "catalog.delete", &path, None).await?;
    let changed = app.control.catalog.delete(&app.tenant, &path, version).await?;
    reply(&app, "deleted", path, version, &changed).await
}

/// Restores a document
///
/// Makes deleted versions visible in lists and startable by path.
#[utoipa::path(
    post,
    path = "/api/catalog/restore",
    operation_id = "catalog_restore",
    tag = "catalog",
    request_body = DeleteRequest,
    responses((status = 200, body = DeleteReply), ErrorResponses),
)]
pub(crate) async fn restore(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<DeleteRequest>,
) -> Result<Json<DeleteReply>, ApiError> {
    let (path, version) = meant(&app, request).await?;
    granted::check_path(&app, &caller, &path).await?;
    acted::record(&app, &caller, "catalog.restore", &path, None).await?;
    let changed = app.control.catalog.restore(&app.tenant, &path, version).await?;
    reply(&app, "restored", path, version, &changed).await
}

/// Returns the path and version that a request names. `latest` means the highest version that is
/// not deleted.
async fn meant(app: &App, request: DeleteRequest) -> Result<(String, Option<u32>), ApiError> {
    let catalog = &app.control.catalog;
    match (request.catalog_id, request.path, request.version) {
        (Some(id), _, _) => {
            let entry = catalog.entry(&app.tenant, id.into()).await?;
            let entry = entry.ok_or_else(|| missing(&id.to_string()))?;
            Ok((entry.path, Some(entry.version)))
        }
        (None, Some(path), None) => Ok((path, None)),
        (None, Some(path), Some(version)) => match version.number() {
            Some(number) => Ok((path, Some(number))),
            None => {
                let entry = catalog.entry_at(&app.tenant, &path, None).await?;
                let entry = entry.ok_or_else(|| missing(&path))?;
                Ok((path, Some(entry.version)))
            }
        },
        (None, None, _) => {
            let message = "name the document by path or catalog_id";
            Err(ApiError::invalid("document_unnamed", message))
        }
    }
}

/// Creates the response with the changed versions, or a 404 error if the path or version never
/// existed.
async fn reply(
    app: &App,
    status: &str,
    path: String,
    version: Option<u32>,
    changed: &[CatalogVersion],
) -> Result<Json<DeleteReply>, ApiError> {
    if changed.is_empty() {
        let known = app.control.catalog.versions(&app.tenant, &path).await?;
        if !known.iter().any(|one| version.is_none_or(|version| one.version == version)) {
            return Err(missing(&path));
        }
    }
    let versions = changed.iter().map(|one| one.version).collect();
    Ok(Json(DeleteReply { status: status.to_owned(), path, versions }))
}

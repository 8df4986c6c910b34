//! Documents: register, list, and read.

pub(crate) mod batch;
pub(crate) mod checks;
pub(crate) mod content;
pub(crate) mod form;
pub(crate) mod lists;
pub(crate) mod removal;
mod shown;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_api::catalog::{
    CatalogItem, ListReply, ListRequest, RegisterReply, RegisterRequest, ResourceRequest,
};
use noetl_store::CredentialFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{IdFormat, Json, OptionalJson, Query};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;
use crate::shape;

/// Kind under which published clients list credentials, which are not documents.
const CREDENTIAL: &str = "credential";

/// Query parameters of `POST /api/catalog/register`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RegisterQuery {
    /// Whether to register a playbook despite errors. Default: `false`.
    #[serde(default)]
    force: bool,
}

/// Registers a document
///
/// Stores the document as the next version of its path. A playbook with errors is rejected with all
/// its diagnostics, unless `force` is set.
#[utoipa::path(
    post,
    path = "/api/catalog/register",
    operation_id = "catalog_register",
    tag = "catalog",
    params(RegisterQuery),
    request_body = RegisterRequest,
    responses((status = 200, body = RegisterReply), ErrorResponses),
)]
pub(crate) async fn register(
    Scoped(app): Scoped,
    caller: Caller,
    Query(query): Query<RegisterQuery>,
    Json(request): Json<RegisterRequest>,
) -> Result<Json<RegisterReply>, ApiError> {
    let content = plain(request.content)?;
    granted::check_document(&app, &caller, &content).await?;
    let kind = &request.resource_type;
    let (entry, findings) =
        app.control.catalog.register(&app.tenant, content, kind, query.force).await?;
    Ok(Json(shape::registered(&entry, &findings)))
}

/// Lists documents
///
/// Returns every version of every document, newest first, optionally of one kind. The kind
/// `credential` lists credentials without their secrets.
#[utoipa::path(
    post,
    path = "/api/catalog/list",
    operation_id = "catalog_list",
    tag = "catalog",
    request_body = Option<ListRequest>,
    responses((status = 200, body = ListReply), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
    OptionalJson(request): OptionalJson<ListRequest>,
) -> Result<Json<ListReply>, ApiError> {
    let kind = request.resource_type.as_deref().filter(|kind| !kind.is_empty());
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case(CREDENTIAL)) {
        let found =
            app.control.secrets.credentials.list(&app.tenant, &CredentialFilter::default()).await?;
        let entries = found.into_iter().map(shape::credential_entry).collect();
        return Ok(Json(ListReply { entries }));
    }
    let entries = app.control.catalog.entries(&app.tenant, kind).await?;
    Ok(Json(ListReply { entries: shown::entries(entries, ids).await }))
}

/// Reads a document
///
/// Selects the document by ID, or by path and version.
#[utoipa::path(
    post,
    path = "/api/catalog/resource",
    tag = "catalog",
    request_body = ResourceRequest,
    responses((status = 200, body = CatalogItem), ErrorResponses),
)]
pub(crate) async fn resource(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
    Json(request): Json<ResourceRequest>,
) -> Result<Json<CatalogItem>, ApiError> {
    let catalog = &app.control.catalog;
    let (found, name) = match (request.catalog_id, request.path) {
        (Some(id), _) => (catalog.entry(&app.tenant, id.into()).await?, id.to_string()),
        (None, Some(path)) => {
            let version = request.version.unwrap_or_default().number();
            (catalog.entry_at(&app.tenant, &path, version).await?, path)
        }
        (None, None) => {
            let message = "name the document by path or catalog_id";
            return Err(ApiError::invalid("document_unnamed", message));
        }
    };
    let found = found.ok_or_else(|| missing(&name))?;
    shown::entries(vec![found], ids).await.pop().map(Json).ok_or_else(|| missing(&name))
}

/// Creates the 404 error for an unknown document.
pub(super) fn missing(name: &str) -> ApiError {
    ApiError::not_found("document_not_found", format!("Catalog entry not found: {name}"))
}

/// Returns the text of a document. Content that is base64 of UTF-8 text is decoded; other content
/// is the text itself. Rejects NUL characters.
pub(super) fn plain(content: String) -> Result<String, ApiError> {
    let decoded = BASE64_STANDARD.decode(content.trim()).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or(content);
    if text.contains('\0') {
        let message = "text must not hold NUL characters";
        return Err(ApiError::invalid("nul_character", message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_a_text_is_decoded_and_a_text_is_kept() {
        let plain = |text: &str| plain(text.to_owned()).ok();
        assert_eq!(plain("a: 1").as_deref(), Some("a: 1"));
        assert_eq!(plain("YTogMQ==").as_deref(), Some("a: 1"));
        assert_eq!(plain("YTogMQ==\n").as_deref(), Some("a: 1"));
        // Standard base64 by its letters, but not of a text.
        assert_eq!(plain("////").as_deref(), Some("////"));
        assert_eq!(plain("AAAA"), None, "base64 of NUL characters");
    }
}

//! Text of a playbook, for editors.

use noetl_api::Id;
use noetl_api::catalog::{PlaybookContent, PutContent, RegisterReply};
use noetl_catalog::ReplaceError;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{missing, plain};
use crate::error::ApiError;
use crate::http::acted;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Query};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;
use crate::shape;

/// Query parameters of playbook content.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContentQuery {
    /// Catalog ID or path of the playbook.
    playbook_id: String,
}

/// Reads the text of a playbook
///
/// Selects the version with the given ID, or the newest version of the given path.
#[utoipa::path(
    get,
    path = "/api/catalog/playbook/content",
    operation_id = "playbook_content_get",
    tag = "catalog",
    params(ContentQuery),
    responses((status = 200, body = PlaybookContent), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Query(query): Query<ContentQuery>,
) -> Result<Json<PlaybookContent>, ApiError> {
    let entry = app.control.catalog.named(&app.tenant, &query.playbook_id).await?;
    let entry = entry.ok_or_else(|| missing(&query.playbook_id))?;
    Ok(Json(PlaybookContent {
        catalog_id: Id::text(entry.id.get()),
        path: entry.path,
        version: entry.version,
        content: entry.content,
    }))
}

/// Replaces the text of a playbook
///
/// Registers the text as the next version of the path. The document must have the same path.
#[utoipa::path(
    put,
    path = "/api/catalog/playbook/content",
    operation_id = "playbook_content_put",
    tag = "catalog",
    params(ContentQuery),
    request_body = PutContent,
    responses((status = 200, body = RegisterReply), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Query(query): Query<ContentQuery>,
    Json(request): Json<PutContent>,
) -> Result<Json<RegisterReply>, ApiError> {
    let content = plain(request.content)?;
    if let Some(entry) = app.control.catalog.named(&app.tenant, &query.playbook_id).await? {
        granted::check_path(&app, &caller, &entry.path).await?;
        acted::record(&app, &caller, "catalog.register", &entry.path, None).await?;
    }
    let replaced = app.control.catalog.replace(&app.tenant, &query.playbook_id, content).await;
    let (entry, findings) = replaced.map_err(|error| match error {
        ReplaceError::NotFound => missing(&query.playbook_id),
        ReplaceError::AnotherPath { .. } => ApiError::invalid("another_path", error.to_string()),
        ReplaceError::Register(error) => error.into(),
    })?;
    Ok(Json(shape::registered(&entry, &findings)))
}

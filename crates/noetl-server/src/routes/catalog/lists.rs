//! Short lists of the catalog: paths, versions, and agents.

use noetl_api::Id;
use noetl_api::catalog::{AgentsRequest, ListReply, VersionView, VersionsReply};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{missing, shown};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{IdFormat, Json, OptionalJson, Path, Query};
use crate::http::openapi::ErrorResponses;

/// Query parameters of the list of versions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct VersionsQuery {
    /// Path of the document.
    path: String,
}

/// Lists the paths of a kind
///
/// Returns the sorted paths whose newest document is of this kind. Ignores case.
#[utoipa::path(
    get,
    path = "/api/catalog/list/{kind}",
    operation_id = "catalog_paths",
    tag = "catalog",
    params(("kind" = String, Path)),
    responses((status = 200, body = Vec<String>), ErrorResponses),
)]
pub(crate) async fn paths(
    Scoped(app): Scoped,
    Path(kind): Path<String>,
) -> Result<Json<Vec<String>>, ApiError> {
    Ok(Json(app.control.catalog.paths(&app.tenant, &kind).await?))
}

/// Lists the versions of a path
///
/// Returns all versions, including deleted ones, highest first.
#[utoipa::path(
    get,
    path = "/api/catalog/versions",
    operation_id = "catalog_versions",
    tag = "catalog",
    params(VersionsQuery),
    responses((status = 200, body = VersionsReply), ErrorResponses),
)]
pub(crate) async fn versions(
    Scoped(app): Scoped,
    Query(query): Query<VersionsQuery>,
) -> Result<Json<VersionsReply>, ApiError> {
    let found = app.control.catalog.versions(&app.tenant, &query.path).await?;
    if found.is_empty() {
        return Err(missing(&query.path));
    }
    let versions = found.into_iter().map(|version| VersionView {
        catalog_id: Id::text(version.id.get()),
        version: version.version,
        kind: version.kind,
        created_at: version.created_at,
        deleted_at: version.deleted_at,
    });
    Ok(Json(VersionsReply { path: query.path, versions: versions.collect() }))
}

/// Lists agents
///
/// Returns the newest version of each document that sets `metadata.agent` and has all requested
/// capabilities.
#[utoipa::path(
    post,
    path = "/api/catalog/agents/list",
    operation_id = "catalog_agents",
    tag = "catalog",
    request_body = Option<AgentsRequest>,
    responses((status = 200, body = ListReply), ErrorResponses),
)]
pub(crate) async fn agents(
    Scoped(app): Scoped,
    IdFormat(ids): IdFormat,
    OptionalJson(request): OptionalJson<AgentsRequest>,
) -> Result<Json<ListReply>, ApiError> {
    let found = app.control.catalog.agents(&app.tenant, &request.capabilities).await?;
    Ok(Json(ListReply { entries: shown::entries(found, ids).await }))
}

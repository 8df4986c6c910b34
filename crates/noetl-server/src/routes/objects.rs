//! Data that workers share: objects, modules, and storage cells.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::response::{IntoResponse, Response};
use noetl_api::objects::{CellsReply, ObjectStored, PluginStored, StorageCell};
use noetl_model::Tenant;
use noetl_store::Digest;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path, Query, Raw};
use crate::http::headers::stored;
use crate::http::openapi::ErrorResponses;
use crate::http::roles::Roles;

/// Maximum body size of these routes, in bytes.
pub(crate) const BODY_LIMIT: usize = 64 << 20;

/// Media type if the caller names none.
const BYTES: &str = "application/octet-stream";

/// Query parameters of a stored object.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MediaQuery {
    /// Media type of the object. Default: the `Content-Type` of the body.
    #[serde(default)]
    media_type: Option<String>,
}

/// Query parameters of a stored module.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PutPluginQuery {
    /// Version of the module. Default: 1.
    #[serde(default)]
    version: Option<i32>,
    /// Media type of the module. Default: the `Content-Type` of the body.
    #[serde(default)]
    media_type: Option<String>,
}

/// Query parameters that select a module.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PluginQuery {
    /// Version of the module. Default: the highest.
    #[serde(default)]
    version: Option<i32>,
    /// Required digest of the module.
    #[serde(default)]
    digest: Option<String>,
}

/// Stores an object
///
/// Replaces an object with the same key. The key may contain slashes. Up to 64 MiB.
#[utoipa::path(
    put,
    path = "/api/internal/objects/{*key}",
    operation_id = "objects_put",
    tag = "workers",
    params(("key" = String, Path), MediaQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = ObjectStored), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Path(key): Path<String>,
    Query(query): Query<MediaQuery>,
    headers: HeaderMap,
    Raw(bytes): Raw,
) -> Result<Json<ObjectStored>, ApiError> {
    let media_type = media_type(query.media_type, &headers)?;
    let kept =
        app.control.data.objects.put(whose(&caller), &key, &media_type, bytes.into()).await?;
    let digest = kept.digest.to_string();
    Ok(Json(ObjectStored { key: kept.key, digest, bytes: kept.size }))
}

/// Reads an object
#[utoipa::path(
    get,
    path = "/api/internal/objects/{*key}",
    operation_id = "objects_get",
    tag = "workers",
    params(("key" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream"), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    let found = app.control.data.objects.get(whose(&caller), &key).await?;
    Ok(bytes(found.summary.digest, &found.summary.media_type, found.bytes))
}

/// Stores a module
///
/// Replaces a module with the same path and version. Up to 64 MiB.
#[utoipa::path(
    post,
    path = "/api/internal/plugins/{*path}",
    operation_id = "plugins_put",
    tag = "workers",
    params(("path" = String, Path), PutPluginQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = PluginStored), ErrorResponses),
)]
pub(crate) async fn put_plugin(
    Scoped(app): Scoped,
    Path(path): Path<String>,
    Query(query): Query<PutPluginQuery>,
    headers: HeaderMap,
    Raw(bytes): Raw,
) -> Result<Json<PluginStored>, ApiError> {
    let media_type = media_type(query.media_type, &headers)?;
    let version = query.version.unwrap_or(1);
    let kept =
        app.control.data.objects.put_plugin(&path, version, &media_type, bytes.into()).await?;
    let (digest, bytes) = (kept.digest.to_string(), kept.size);
    Ok(Json(PluginStored { path: kept.path, version: kept.version, digest, bytes }))
}

/// Reads a module
///
/// Returns the given version, or the highest. With `digest`, the module must have that digest.
#[utoipa::path(
    get,
    path = "/api/internal/plugins/{*path}",
    operation_id = "plugins_get",
    tag = "workers",
    params(("path" = String, Path), PluginQuery),
    responses((status = 200, content_type = "application/octet-stream"), ErrorResponses),
)]
pub(crate) async fn get_plugin(
    Scoped(app): Scoped,
    Path(path): Path<String>,
    Query(query): Query<PluginQuery>,
) -> Result<Response, ApiError> {
    let found =
        app.control.data.objects.plugin(&path, query.version, query.digest.as_deref()).await?;
    Ok(bytes(found.summary.digest, &found.summary.media_type, found.bytes))
}

/// Lists the storage cells for objects
///
/// There is one cell: the store of this control plane.
#[utoipa::path(
    get,
    path = "/api/internal/cells",
    operation_id = "cells",
    tag = "workers",
    responses((status = 200, body = CellsReply), ErrorResponses),
)]
pub(crate) async fn cells() -> Json<CellsReply> {
    let cell = StorageCell {
        cell: "local-0".to_owned(),
        env: "local".to_owned(),
        region: "local".to_owned(),
        provider: None,
        bucket: None,
        endpoint: None,
    };
    Json(CellsReply { shard_count: 256, default_cell: cell.cell.clone(), cells: vec![cell] })
}

/// Returns the tenant whose keys the caller may use. `None` for all tenants, which system pools and
/// admins of the default tenant may use.
fn whose(caller: &Caller) -> Option<&Tenant> {
    let may_all = caller.roles.holds_any_of(Roles::ADMIN.and(Roles::INTERNAL));
    (!(may_all && caller.looks_after_all())).then_some(&caller.tenant)
}

/// Returns the media type that the caller states, or the default. Rejects text that is invalid in a
/// header, because responses return it as one.
fn media_type(asked: Option<String>, headers: &HeaderMap) -> Result<String, ApiError> {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let text = asked.as_deref().or(said).map(str::trim).filter(|text| !text.is_empty());
    let text = text.unwrap_or(BYTES);
    let is_fit = text.len() <= 200 && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    match is_fit {
        true => Ok(text.to_owned()),
        false => {
            let message = "media_type is up to 200 visible characters, as application/json";
            Err(ApiError::invalid("invalid_media_type", message))
        }
    }
}

fn bytes(digest: Digest, media_type: &str, bytes: Vec<u8>) -> Response {
    // A media type that another program wrote into the database may be invalid in a header.
    let is_fit = media_type.parse::<axum::http::HeaderValue>().is_ok() && !media_type.is_empty();
    let media_type = if is_fit { media_type } else { BYTES };
    let headers = [(ETAG, format!("\"{digest}\"")), (CONTENT_TYPE, media_type.to_owned())];
    stored((headers, Bytes::from(bytes)).into_response())
}

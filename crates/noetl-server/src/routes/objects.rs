//! What workers keep for each other: objects, modules, and where they are.

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::response::{IntoResponse, Response};
use noetl_api::objects::{Cell, CellsReply, ObjectKept, PluginKept};
use noetl_model::Tenant;
use noetl_store::Digest;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::document::Failures;
use crate::http::extract::{Json, Path, Query, Raw};
use crate::http::headers::stored;
use crate::http::roles::Roles;

/// The largest body of the routes here.
pub(crate) const BODY_LIMIT: usize = 64 << 20;

/// What bytes are when nobody says.
const BYTES: &str = "application/octet-stream";

/// What bytes are.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MediaQuery {
    /// Their media type; that of the body when left out.
    #[serde(default)]
    media_type: Option<String>,
}

/// What a module is.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PutPluginQuery {
    /// Its version; 1 when left out.
    #[serde(default)]
    version: Option<i32>,
    /// Its media type; that of the body when left out.
    #[serde(default)]
    media_type: Option<String>,
}

/// Which module is meant.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PluginQuery {
    /// Its version; the highest when left out.
    #[serde(default)]
    version: Option<i32>,
    /// The digest it has to have.
    #[serde(default)]
    digest: Option<String>,
}

/// Keep an object
///
/// In the place of any with its key, which may hold slashes. Up to 64 MiB.
#[utoipa::path(
    put,
    path = "/api/internal/objects/{*key}",
    operation_id = "objects_put",
    tag = "workers",
    params(("key" = String, Path), MediaQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = ObjectKept), Failures),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Path(key): Path<String>,
    Query(query): Query<MediaQuery>,
    headers: HeaderMap,
    Raw(bytes): Raw,
) -> Result<Json<ObjectKept>, ApiError> {
    let media_type = media_type(query.media_type, &headers)?;
    let kept = app.control.objects.put(whose(&caller), &key, &media_type, bytes.into()).await?;
    let digest = kept.digest.to_string();
    Ok(Json(ObjectKept { key: kept.key, digest, bytes: kept.size }))
}

/// Read an object
#[utoipa::path(
    get,
    path = "/api/internal/objects/{*key}",
    operation_id = "objects_get",
    tag = "workers",
    params(("key" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream"), Failures),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    let found = app.control.objects.get(whose(&caller), &key).await?;
    Ok(bytes(found.summary.digest, &found.summary.media_type, found.bytes))
}

/// Keep a module
///
/// In the place of any with its path and version. Up to 64 MiB.
#[utoipa::path(
    post,
    path = "/api/internal/plugins/{*path}",
    operation_id = "plugins_put",
    tag = "workers",
    params(("path" = String, Path), PutPluginQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = PluginKept), Failures),
)]
pub(crate) async fn put_plugin(
    Scoped(app): Scoped,
    Path(path): Path<String>,
    Query(query): Query<PutPluginQuery>,
    headers: HeaderMap,
    Raw(bytes): Raw,
) -> Result<Json<PluginKept>, ApiError> {
    let media_type = media_type(query.media_type, &headers)?;
    let version = query.version.unwrap_or(1);
    let kept = app.control.objects.put_plugin(&path, version, &media_type, bytes.into()).await?;
    let (digest, bytes) = (kept.digest.to_string(), kept.size);
    Ok(Json(PluginKept { path: kept.path, version: kept.version, digest, bytes }))
}

/// Read a module
///
/// The given version or the highest; with `digest` only if it is that one.
#[utoipa::path(
    get,
    path = "/api/internal/plugins/{*path}",
    operation_id = "plugins_get",
    tag = "workers",
    params(("path" = String, Path), PluginQuery),
    responses((status = 200, content_type = "application/octet-stream"), Failures),
)]
pub(crate) async fn get_plugin(
    Scoped(app): Scoped,
    Path(path): Path<String>,
    Query(query): Query<PluginQuery>,
) -> Result<Response, ApiError> {
    let found = app.control.objects.plugin(&path, query.version, query.digest.as_deref()).await?;
    Ok(bytes(found.summary.digest, &found.summary.media_type, found.bytes))
}

/// List the places for objects
///
/// There is one: this control plane's own store.
#[utoipa::path(
    get,
    path = "/api/internal/cells",
    operation_id = "cells",
    tag = "workers",
    responses((status = 200, body = CellsReply), Failures),
)]
pub(crate) async fn cells() -> Json<CellsReply> {
    let cell = Cell {
        cell: "local-0".to_owned(),
        env: "local".to_owned(),
        region: "local".to_owned(),
        provider: None,
        bucket: None,
        endpoint: None,
    };
    Json(CellsReply { shard_count: 256, default_cell: cell.cell.clone(), cells: vec![cell] })
}

/// Whose keys a caller is held to; system pools and admins of the default tenant look after
/// everybody's.
fn whose(caller: &Caller) -> Option<&Tenant> {
    let may_all = caller.roles.holds_any_of(Roles::ADMIN.and(Roles::INTERNAL));
    (!(may_all && caller.looks_after_all())).then_some(&caller.tenant)
}

/// What the caller says the bytes are. It is said again as a header, so it has to be fit for one.
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
    // What others wrote into the database may be fit for no header.
    let is_fit = media_type.parse::<axum::http::HeaderValue>().is_ok() && !media_type.is_empty();
    let media_type = if is_fit { media_type } else { BYTES };
    let headers = [(ETAG, format!("\"{digest}\"")), (CONTENT_TYPE, media_type.to_owned())];
    stored((headers, Bytes::from(bytes)).into_response())
}

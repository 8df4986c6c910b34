//! Large results by digest, streamed from and to workers.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream::{StreamExt as _, unfold};
use noetl_api::completions::ContentStored;
use noetl_results::{Content, ContentError};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

use crate::app::{App, TRANSFERS_MAX};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path, Query};
use crate::http::headers::stored;
use crate::http::openapi::ErrorResponses;
use crate::http::pace::too_slow;

/// Maximum time between two chunks of a body.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Query parameters of a large result.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SizeQuery {
    /// Size in bytes, as in the reference.
    bytes: u64,
}

/// Stores a large result
///
/// The body is the JSON of the result, up to 512 MiB. The server writes it to disk while it
/// receives it. A result that no report refers to is deleted later.
#[utoipa::path(
    put,
    path = "/api/worker/content/{digest}",
    operation_id = "worker_content_put",
    tag = "workers",
    params(("digest" = String, Path, description = "Its SHA-256")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = ContentStored), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    Path(digest): Path<String>,
    body: Body,
) -> Result<Json<ContentStored>, ApiError> {
    let _permit = permit(&app)?;
    let mut upload = app.control.data.content.begin(&digest).await?;
    let mut pieces = body.into_data_stream();
    loop {
        let next = tokio::time::timeout(SILENCE_MAX, pieces.next()).await;
        let next = next.map_err(|_| broken("nothing came for half a minute"))?;
        let Some(piece) = next else { break };
        let piece = piece.map_err(|error| match too_slow(&error) {
            Some(slow) => slow.into(),
            None => broken("the body ended before it was whole"),
        })?;
        upload.add(&piece).await?;
    }
    let (digest, bytes) = upload.finish().await?;
    Ok(Json(ContentStored { digest: digest.to_string(), bytes }))
}

/// Reads a large result
///
/// The body is the JSON of the result. The client must verify the digest.
#[utoipa::path(
    get,
    path = "/api/worker/content/{digest}",
    operation_id = "worker_content_get",
    tag = "workers",
    params(("digest" = String, Path, description = "Its SHA-256"), SizeQuery),
    responses((status = 200, body = Value), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(digest): Path<String>,
    Query(SizeQuery { bytes }): Query<SizeQuery>,
) -> Result<Response, ApiError> {
    let permit = permit(&app)?;
    // Reading the first part checks that the blob exists.
    let first = app.control.data.content.part(&digest, bytes, 0).await?;
    let headers =
        [(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_LENGTH, bytes.to_string())];
    Ok(stored((headers, parts(&app, digest, bytes, first, permit)).into_response()))
}

/// Streams a blob part by part. A read error aborts the response, so that the client retries.
fn parts(
    app: &App,
    digest: String,
    bytes: u64,
    first: Vec<u8>,
    permit: OwnedSemaphorePermit,
) -> Body {
    let content = app.control.data.content.clone();
    let reader =
        ContentReader { content, digest, bytes, next: Some(first), at: 0, _permit: permit };
    Body::from_stream(unfold(reader, |mut reader| async move {
        let part = reader.part().await?;
        Some((part, reader))
    }))
}

struct ContentReader {
    content: Content,
    digest: String,
    bytes: u64,
    /// First part, which is already read.
    next: Option<Vec<u8>>,
    at: u64,
    /// Released when the response ends or is aborted.
    _permit: OwnedSemaphorePermit,
}

impl ContentReader {
    /// Returns the next part, or `None` at the end.
    async fn part(&mut self) -> Option<Result<Bytes, ContentError>> {
        if self.at >= self.bytes {
            return None;
        }
        let part = match self.next.take() {
            Some(part) => Ok(part),
            None => self.content.part(&self.digest, self.bytes, self.at).await,
        };
        match part {
            // The blob was deleted in the meantime.
            Ok(part) if part.is_empty() => None,
            Ok(part) => {
                self.at += u64::try_from(part.len()).unwrap_or(u64::MAX);
                Some(Ok(part.into()))
            }
            Err(error) => {
                self.at = self.bytes;
                Some(Err(error))
            }
        }
    }
}

/// Acquires a permit to transfer a large result.
fn permit(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    app.transfers.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{TRANSFERS_MAX} large results are in flight; retry after 1 second");
        ApiError::unavailable("too_many_streams", message)
    })
}

fn broken(message: &str) -> ApiError {
    ApiError::with_status(axum::http::StatusCode::BAD_REQUEST, "unreadable_body", message)
}

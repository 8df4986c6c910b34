//! Large results by their digest, streamed from workers and to them.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream::{StreamExt as _, unfold};
use noetl_api::ends::ContentKept;
use noetl_control::{Content, ContentError};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;

use crate::app::{App, TRANSFERS_MAX};
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, Path, Query};
use crate::http::headers::stored;
use crate::http::pace::too_slow;

/// How long a sender may be silent before it is given up.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// How much of it there is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SizeQuery {
    /// How many bytes, as the reference says.
    bytes: u64,
}

/// Keep a large result
///
/// The body is its JSON, of up to 512 MiB, and is written down as it comes. What no report refers to
/// goes again.
#[utoipa::path(
    put,
    path = "/api/worker/content/{digest}",
    operation_id = "worker_content_put",
    tag = "workers",
    params(("digest" = String, Path, description = "Its SHA-256")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = ContentKept), Failures),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    Path(digest): Path<String>,
    body: Body,
) -> Result<Json<ContentKept>, ApiError> {
    let _permit = permit(&app)?;
    let mut upload = app.control.content.begin(&digest).await?;
    let mut pieces = body.into_data_stream();
    loop {
        let next = tokio::time::timeout(SILENCE_MAX, pieces.next()).await;
        let next = next.map_err(|_| broken("nothing came for half a minute"))?;
        let Some(piece) = next else { break };
        let piece = piece.map_err(|error| match too_slow(&error) {
            Some(slow) => ApiError::too_slow(slow),
            None => broken("the body ended before it was whole"),
        })?;
        upload.add(&piece).await?;
    }
    let (digest, bytes) = upload.finish().await?;
    Ok(Json(ContentKept { digest: digest.to_string(), bytes }))
}

/// Read a large result
///
/// The body is its JSON. Whoever reads it compares it with its digest.
#[utoipa::path(
    get,
    path = "/api/worker/content/{digest}",
    operation_id = "worker_content_get",
    tag = "workers",
    params(("digest" = String, Path, description = "Its SHA-256"), SizeQuery),
    responses((status = 200, body = Value), Failures),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(digest): Path<String>,
    Query(SizeQuery { bytes }): Query<SizeQuery>,
) -> Result<Response, ApiError> {
    let permit = permit(&app)?;
    // The first part shows whether there is anything at all.
    let first = app.control.content.part(&digest, bytes, 0).await?;
    let headers =
        [(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_LENGTH, bytes.to_string())];
    Ok(stored((headers, parts(&app, digest, bytes, first, permit)).into_response()))
}

/// Content part by part. One that cannot be read ends the answer before its time, so that whoever
/// reads it comes again.
fn parts(
    app: &App,
    digest: String,
    bytes: u64,
    first: Vec<u8>,
    permit: OwnedSemaphorePermit,
) -> Body {
    let content = app.control.content.clone();
    let reader = Reader { content, digest, bytes, next: Some(first), at: 0, _permit: permit };
    Body::from_stream(unfold(reader, |mut reader| async move {
        let part = reader.part().await?;
        Some((part, reader))
    }))
}

struct Reader {
    content: Content,
    digest: String,
    bytes: u64,
    /// What was read before.
    next: Option<Vec<u8>>,
    /// How much has gone out.
    at: u64,
    /// Given back when the answer ends, however it does.
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next part; none at the end.
    async fn part(&mut self) -> Option<Result<Bytes, ContentError>> {
        if self.at >= self.bytes {
            return None;
        }
        let part = match self.next.take() {
            Some(part) => Ok(part),
            None => self.content.part(&self.digest, self.bytes, self.at).await,
        };
        match part {
            // Gone meanwhile.
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

/// The right to carry one more large result.
fn permit(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    app.transfers.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{TRANSFERS_MAX} large results are in flight; retry after 1 second");
        ApiError::unavailable("too_many_streams", message)
    })
}

fn broken(message: &str) -> ApiError {
    ApiError::refused(axum::http::StatusCode::BAD_REQUEST, "unreadable_body", message)
}

//! The encryption key: how far a change has come, and going on with it.

use noetl_api::credentials::{KeyStatusReply, KeyTallyView, RotateReply, RotateRequest};
use noetl_control::KeyTally;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, OptionalJson};

/// How many records one request wraps again when it does not say.
const LIMIT: u64 = 10_000;

/// See what is encrypted under which key
///
/// Over all tenants. The key before may be forgotten once nothing is under it.
#[utoipa::path(
    get,
    path = "/api/internal/wallet/key-status",
    operation_id = "key_status",
    tag = "credentials",
    responses((status = 200, body = KeyStatusReply), Failures),
)]
pub(crate) async fn status(Scoped(app): Scoped) -> Result<Json<KeyStatusReply>, ApiError> {
    let status = app.control.keys.status().await?;
    let left = [&status.credentials, &status.keychain, &status.settings];
    let complete = left.iter().all(|tally| tally.previous == 0);
    Ok(Json(KeyStatusReply {
        version: status.version,
        has_previous: status.has_previous,
        complete,
        credentials: tally(status.credentials),
        keychain: tally(status.keychain),
    }))
}

/// Put everything under the key in use
///
/// Record by record, each only if it is still as it was read. It may be stopped and asked for again;
/// what is done stays done.
#[utoipa::path(
    post,
    path = "/api/internal/wallet/rotate-kek",
    operation_id = "key_rotate",
    tag = "credentials",
    request_body = Option<RotateRequest>,
    responses((status = 200, body = RotateReply), Failures),
)]
pub(crate) async fn rotate(
    Scoped(app): Scoped,
    OptionalJson(request): OptionalJson<RotateRequest>,
) -> Result<Json<RotateReply>, ApiError> {
    let done = app.control.keys.rotate(request.limit.unwrap_or(LIMIT)).await?;
    Ok(Json(RotateReply {
        credentials: done.credentials,
        keychain: done.keychain,
        current: done.current,
        changed: done.changed,
        unreadable: done.unreadable,
        unreadable_places: done.unreadable_places,
        complete: done.is_complete && done.changed == 0,
    }))
}

fn tally(tally: KeyTally) -> KeyTallyView {
    KeyTallyView {
        total: tally.total,
        current: tally.current,
        previous: tally.previous,
        unreadable: tally.unreadable,
        versions: tally.versions,
    }
}

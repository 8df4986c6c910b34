//! Rotation of the encryption key: status and progress.

use noetl_api::credentials::{KeyStatusReply, KeyTallyView, RotateReply, RotateRequest};
use noetl_secrets::KeyUsage;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, OptionalJson};
use crate::http::openapi::ErrorResponses;

/// Default maximum of records that one request rewraps.
const LIMIT: u64 = 10_000;

/// Returns the encryption status by key
///
/// Counts records of all tenants. The previous key may be removed once no record uses it.
#[utoipa::path(
    get,
    path = "/api/internal/wallet/key-status",
    operation_id = "key_status",
    tag = "credentials",
    responses((status = 200, body = KeyStatusReply), ErrorResponses),
)]
pub(crate) async fn status(Scoped(app): Scoped) -> Result<Json<KeyStatusReply>, ApiError> {
    let status = app.control.secrets.keys.status().await?;
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

/// Rewraps all records with the current key
///
/// Rewraps each record only if it is unchanged since it was read. The request may be stopped and
/// repeated; completed records stay rewrapped.
#[utoipa::path(
    post,
    path = "/api/internal/wallet/rotate-kek",
    operation_id = "key_rotate",
    tag = "credentials",
    request_body = Option<RotateRequest>,
    responses((status = 200, body = RotateReply), ErrorResponses),
)]
pub(crate) async fn rotate(
    Scoped(app): Scoped,
    OptionalJson(request): OptionalJson<RotateRequest>,
) -> Result<Json<RotateReply>, ApiError> {
    let done = app.control.secrets.keys.rotate(request.limit.unwrap_or(LIMIT)).await?;
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

fn tally(tally: KeyUsage) -> KeyTallyView {
    KeyTallyView {
        total: tally.total,
        current: tally.current,
        previous: tally.previous,
        unreadable: tally.unreadable,
        versions: tally.versions,
    }
}

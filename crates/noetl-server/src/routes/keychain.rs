//! Keychain: secrets and tokens under the names that playbooks give them.

use std::time::Duration;

use noetl_api::Id;
use noetl_api::keychain::{
    KeychainDeleted, KeychainItem, KeychainList, KeychainQuery, KeychainStored, KeychainView,
    PutKeychain,
};
use noetl_model::{CatalogId, Timestamp};
use noetl_secrets::{KeychainKey, KeychainLookup, KeychainRequest, SecretRequest};
use noetl_store::{CacheKind, KeychainEntry, KeychainScope};

use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path, Query};
use crate::http::openapi::ErrorResponses;

/// Maximum `expires_in`, in seconds. An entry that should last longer needs no expiration.
const LASTS_MAX: i64 = 100 * 365 * 24 * 60 * 60;

/// Reads a keychain entry
///
/// Counts the access and records the caller in the secret audit. The data of an expired entry is
/// not returned.
#[utoipa::path(
    get,
    path = "/api/keychain/{catalog_id}/{name}",
    operation_id = "keychain_get",
    tag = "credentials",
    params(("catalog_id" = String, Path), ("name" = String, Path), KeychainQuery),
    responses((status = 200, body = KeychainView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    caller: Caller,
    Path((catalog, name)): Path<(i64, String)>,
    Query(query): Query<KeychainQuery>,
) -> Result<Json<KeychainView>, ApiError> {
    let execution = query.execution_id.map(Into::into);
    bound::check_entry(&app, &caller, execution, CatalogId::new(catalog)).await?;
    let place = keychain_key(catalog, name, query.scope_type.as_deref(), query.execution_id);
    let asking = SecretRequest {
        who: caller.actor.to_string(),
        operation: "keychain",
        execution: place.execution,
        parent: None,
        worker: None,
    };
    let view = |status: &str| KeychainView {
        status: status.to_owned(),
        data: None,
        expires_at: None,
        auto_renew: None,
        access_count: None,
    };
    Ok(Json(match app.control.secrets.keychain.get(&app.tenant, &place, &asking).await? {
        KeychainLookup::Found(entry, data) => KeychainView {
            data: Some(data),
            expires_at: entry.kept.expires_at,
            auto_renew: Some(entry.kept.auto_renew),
            access_count: Some(entry.access_count),
            ..view("found")
        },
        KeychainLookup::Expired(entry) => KeychainView {
            expires_at: entry.kept.expires_at,
            auto_renew: Some(entry.kept.auto_renew),
            access_count: Some(entry.access_count),
            ..view("expired")
        },
        KeychainLookup::NotFound => view("not_found"),
    }))
}

/// Stores a keychain entry
///
/// Replaces an existing entry. Without an expiration, the entry is valid forever.
#[utoipa::path(
    post,
    path = "/api/keychain/{catalog_id}/{name}",
    operation_id = "keychain_put",
    tag = "credentials",
    params(("catalog_id" = String, Path), ("name" = String, Path)),
    request_body = PutKeychain,
    responses((status = 200, body = KeychainStored), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Path((catalog, name)): Path<(i64, String)>,
    Json(request): Json<PutKeychain>,
) -> Result<Json<KeychainStored>, ApiError> {
    let expires_at = expiry(&request, app.control.now())?;
    let cache = match request.cache_type.as_deref() {
        None => CacheKind::Secret,
        Some(text) => CacheKind::from_text(text).ok_or_else(|| {
            let message = format!("cache_type is 'secret' or 'token', not '{text}'");
            ApiError::invalid("invalid_cache_type", message)
        })?,
    };
    let execution = request.execution_id.map(Into::into);
    bound::check_entry(&app, &caller, execution, CatalogId::new(catalog)).await?;
    let place = keychain_key(catalog, name, request.scope_type.as_deref(), request.execution_id);
    let request = KeychainRequest {
        data: request.data,
        kind: request.credential_type,
        cache,
        expires_at,
        auto_renew: request.auto_renew,
        renew_config: request.renew_config,
    };
    let kept = app.control.secrets.keychain.put(&app.tenant, place, request).await?;
    Ok(Json(KeychainStored {
        status: "success".to_owned(),
        cache_key: kept.kept.cache_key,
        expires_at: kept.kept.expires_at,
    }))
}

/// Deletes a keychain entry
#[utoipa::path(
    delete,
    path = "/api/keychain/{catalog_id}/{name}",
    operation_id = "keychain_delete",
    tag = "credentials",
    params(("catalog_id" = String, Path), ("name" = String, Path), KeychainQuery),
    responses((status = 200, body = KeychainDeleted), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    caller: Caller,
    Path((catalog, name)): Path<(i64, String)>,
    Query(query): Query<KeychainQuery>,
) -> Result<Json<KeychainDeleted>, ApiError> {
    let execution = query.execution_id.map(Into::into);
    bound::check_entry(&app, &caller, execution, CatalogId::new(catalog)).await?;
    let place = keychain_key(catalog, name, query.scope_type.as_deref(), query.execution_id);
    let was_there = app.control.secrets.keychain.delete(&app.tenant, &place).await?;
    Ok(Json(match was_there {
        true => {
            KeychainDeleted { status: "deleted".to_owned(), cache_key: Some(place.cache_key()) }
        }
        false => KeychainDeleted { status: "not_found".to_owned(), cache_key: None },
    }))
}

/// Lists the keychain entries of a playbook
///
/// Includes expired entries. The data is not returned.
#[utoipa::path(
    get,
    path = "/api/keychain/catalog/{catalog_id}",
    operation_id = "keychain_list",
    tag = "credentials",
    params(("catalog_id" = String, Path)),
    responses((status = 200, body = KeychainList), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Path(catalog): Path<i64>,
) -> Result<Json<KeychainList>, ApiError> {
    let (entries, now) =
        app.control.secrets.keychain.list(&app.tenant, CatalogId::new(catalog)).await?;
    let entries = entries.into_iter().map(|entry| item(entry, now)).collect();
    Ok(Json(KeychainList { catalog_id: Id::text(catalog), entries }))
}

/// Returns the location of an entry. A scope that is neither local nor shared is global, as in the
/// published contract.
fn keychain_key(
    catalog: i64,
    name: String,
    scope: Option<&str>,
    execution: Option<Id>,
) -> KeychainKey {
    let scope = scope.and_then(|text| KeychainScope::from_text(&text.to_ascii_lowercase()));
    KeychainKey {
        catalog: CatalogId::new(catalog),
        name,
        scope: scope.unwrap_or(KeychainScope::Global),
        execution: execution.map(Into::into),
    }
}

fn expiry(request: &PutKeychain, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    match (request.expires_at, request.expires_in) {
        (Some(at), _) => Ok(Some(at)),
        (None, None) => Ok(None),
        (None, Some(seconds)) => {
            let fits = (1..=LASTS_MAX).contains(&seconds).then(|| u64::try_from(seconds).ok());
            let seconds = fits.flatten().ok_or_else(|| {
                let message = format!("expires_in is from 1 to {LASTS_MAX} seconds, not {seconds}");
                ApiError::invalid("invalid_expiry", message)
            })?;
            Ok(Some(now.plus(Duration::from_secs(seconds))))
        }
    }
}

fn item(entry: KeychainEntry, now: Timestamp) -> KeychainItem {
    KeychainItem {
        expired: entry.kept.expires_at.is_some_and(|at| at <= now),
        keychain_name: entry.kept.name,
        scope_type: entry.kept.scope.as_str().to_owned(),
        execution_id: entry.kept.execution.map(|id| Id::text(id.get())),
        expires_at: entry.kept.expires_at,
        access_count: entry.access_count,
        accessed_at: entry.accessed_at,
        created_at: entry.created_at,
    }
}

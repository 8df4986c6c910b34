//! Credentials: store, list, read, and delete.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::credentials::{
    CredentialDeleted, CredentialFilterView, CredentialList, CredentialView, OpenedCredential,
    PutCredential, SealedCredential,
};
use noetl_model::placeholder::{placeholders_in, without_tags};
use noetl_secrets::{
    CredentialError, CredentialHolder, CredentialRequest, Credentials, RevealedSecret,
    SecretOutcome, SecretRequest,
};
use noetl_store::{CredentialFilter, StoredCredential};
use noetl_work::{ResolvedPlaceholder, SEAL_ALGORITHM, SEAL_VERSION};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::error::ApiError;
use crate::http::bound;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path, Query};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;
use crate::http::roles::Roles;

/// Query parameters of `GET /api/credentials/{identifier}`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CredentialQuery {
    /// Whether to include the secret data. Only for workers and admins. Default: `false`.
    #[serde(default)]
    include_data: bool,
    /// Execution that needs the credential. If no credential has the name, the execution's keychain
    /// is searched.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    execution_id: Option<Id>,
    /// Parent of that execution.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    parent_execution_id: Option<Id>,
}

/// Query parameters of `GET /api/credentials/{identifier}/sealed`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SealedQuery {
    /// Name under which the worker registered.
    worker_id: String,
    /// Execution that needs the credential.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    execution_id: Option<Id>,
    /// Parent of that execution.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    parent_execution_id: Option<Id>,
    /// Whether to add the placeholders of the credential's fields in that execution. Default:
    /// `false`.
    #[serde(default)]
    placeholders: bool,
}

/// Stores a credential
///
/// Replaces a credential of the same name, except for its ID. The response doesn't include the
/// secret data.
#[utoipa::path(
    post,
    path = "/api/credentials",
    tag = "credentials",
    request_body = PutCredential,
    responses((status = 200, body = CredentialView), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<PutCredential>,
) -> Result<Json<CredentialView>, ApiError> {
    let request = CredentialRequest {
        name: request.name,
        kind: request.kind,
        data: request.data,
        meta: request.meta,
        tags: request.tags.unwrap_or_default(),
        description: request.description,
    };
    granted::check_credential(&app, &caller, &request.name).await?;
    let warnings = Credentials::warnings(&request.kind, &request.data);
    let administration = app.control.secrets.administration();
    let kept = administration.put_credential(&app.tenant, &caller.actor, request).await?;
    Ok(Json(CredentialView { warnings, ..view(kept) }))
}

/// Lists credentials
///
/// Optionally only those of one type, or with a text in their name or description.
#[utoipa::path(
    get,
    path = "/api/credentials",
    operation_id = "credentials_list",
    tag = "credentials",
    params(CredentialFilterView),
    responses((status = 200, body = CredentialList), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Query(asked): Query<CredentialFilterView>,
) -> Result<Json<CredentialList>, ApiError> {
    let filter = CredentialFilter { kind: asked.kind.clone(), text: asked.q.clone() };
    let items = app.control.secrets.credentials.list(&app.tenant, &filter).await?;
    let filter = (asked != CredentialFilterView::default()).then_some(asked);
    Ok(Json(CredentialList { items: items.into_iter().map(view).collect(), filter }))
}

/// Reads a credential
///
/// Selects the credential by ID, else by name. With `include_data`, the response includes the
/// secret data, and the server records the caller and the execution in the secret audit. With
/// `execution_id`, a name that is not a credential selects the entry of that execution's keychain,
/// of type `keychain`.
#[utoipa::path(
    get,
    path = "/api/credentials/{identifier}",
    operation_id = "credentials_get",
    tag = "credentials",
    params(("identifier" = String, Path), CredentialQuery),
    responses((status = 200, body = CredentialView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    caller: Caller,
    Path(identifier): Path<String>,
    Query(query): Query<CredentialQuery>,
) -> Result<Json<CredentialView>, ApiError> {
    if !query.include_data {
        let found = app.control.secrets.credentials.get(&app.tenant, &identifier).await?;
        return Ok(Json(view(found)));
    }
    let asking = SecretRequest {
        who: caller.actor.to_string(),
        operation: "resolve",
        execution: query.execution_id.map(Into::into),
        parent: query.parent_execution_id.map(Into::into),
        worker: None,
    };
    let app = whose(app, &caller, &asking).await?;
    let holder = CredentialHolder { execution: asking.execution, worker: None };
    may_have(&app, &caller, holder, &identifier, &asking).await?;
    revealed(&app, &identifier, &asking).await.map(Json)
}

/// Returns the application in the tenant of the execution that needs the secret. A system pool
/// works for all tenants, so its own tenant doesn't apply.
async fn whose(app: App, caller: &Caller, asking: &SecretRequest) -> Result<App, ApiError> {
    match asking.execution {
        Some(execution) => app.for_execution(caller, execution).await,
        None => Ok(app),
    }
}

/// Reads a credential, sealed for a worker
///
/// Only the worker can open the response, with the private key of the public key that it registered
/// as `runtime.worker_public_key`. With `execution_id`, the identifier may be a placeholder that a
/// command of that execution contains; then the response contains only that field.
#[utoipa::path(
    get,
    path = "/api/credentials/{identifier}/sealed",
    operation_id = "credentials_sealed",
    tag = "credentials",
    params(("identifier" = String, Path), SealedQuery),
    responses((status = 200, body = SealedCredential), ErrorResponses),
)]
pub(crate) async fn sealed(
    Scoped(app): Scoped,
    caller: Caller,
    Path(identifier): Path<String>,
    Query(query): Query<SealedQuery>,
) -> Result<Json<SealedCredential>, ApiError> {
    let sealed = seal(&app, &caller, &identifier, query).await;
    let status = if sealed.is_ok() { "ok" } else { "error" };
    app.control.journal.metrics.credentials_sealed.with_label_values(&[status]).inc();
    sealed.map(Json)
}

async fn seal(
    app: &App,
    caller: &Caller,
    identifier: &str,
    query: SealedQuery,
) -> Result<SealedCredential, ApiError> {
    let asking = SecretRequest {
        who: caller.actor.to_string(),
        operation: "sealed",
        execution: query.execution_id.map(Into::into),
        parent: query.parent_execution_id.map(Into::into),
        worker: Some(query.worker_id.clone()),
    };
    let credentials = &app.control.secrets.credentials;
    // Checked first, so that no secret is opened or recorded for a worker that could not read it.
    credentials.worker_key(&app.tenant, &query.worker_id).await?;
    let owner = whose(app.clone(), caller, &asking).await?;
    let shown = match is_placeholder(identifier) {
        true => {
            // The tag binds the placeholder to the execution, so a leased command of that execution
            // is enough.
            if let Some(execution) = asking.execution {
                bound::check_execution(&owner, caller, execution).await?;
            }
            resolved(&owner, identifier, &asking).await?
        }
        false => {
            let worker = Some(query.worker_id.as_str());
            let holder = CredentialHolder { execution: asking.execution, worker };
            may_have(&owner, caller, holder, identifier, &asking).await?;
            let credential = revealed(&owner, identifier, &asking).await?;
            let placeholders = placeholders(&owner, &credential, &asking, query.placeholders);
            OpenedCredential { credential, placeholders }
        }
    };
    let plain = serde_json::to_vec(&shown);
    let plain = plain.map_err(|_| ApiError::internal("the credential has no JSON form"))?;
    let seal = credentials.seal_for(&app.tenant, &query.worker_id, &plain).await?;
    Ok(SealedCredential {
        alg: SEAL_ALGORITHM.to_owned(),
        v: SEAL_VERSION,
        eph_pub: seal.ephemeral,
        ciphertext: seal.ciphertext,
    })
}

fn is_placeholder(identifier: &str) -> bool {
    let found = placeholders_in(identifier);
    found.len() == 1 && found[0].range == (0..identifier.len()) && found[0].tag.is_some()
}

/// Returns the placeholders of a credential's fields. Empty unless the worker requests them.
fn placeholders(
    app: &App,
    credential: &CredentialView,
    asking: &SecretRequest,
    is_wanted: bool,
) -> BTreeMap<String, String> {
    let (Some(execution), Some(data), true) = (asking.execution, &credential.data, is_wanted)
    else {
        return BTreeMap::new();
    };
    let named = (credential.name.as_str(), credential.kind.as_str());
    app.control.secrets.credentials.placeholders_for(&app.tenant, execution, named, data)
}

/// Returns the field that a placeholder of an execution stands for.
async fn resolved(
    app: &App,
    text: &str,
    asking: &SecretRequest,
) -> Result<OpenedCredential, ApiError> {
    let resolved = app.control.secrets.credentials.resolve(&app.tenant, text, asking).await?;
    let ResolvedPlaceholder::Value { alias, field, value } = resolved else {
        return Err(CredentialError::NotFound(without_tags(text).into_owned()).into());
    };
    let found = app.control.secrets.credentials.get(&app.tenant, &alias).await?;
    let credential = CredentialView { data: Some(value), ..view(found) };
    Ok(OpenedCredential { credential, placeholders: BTreeMap::from([(field, text.to_owned())]) })
}

/// Rejects callers that are neither admins nor workers with a leased command that names the
/// credential, and records the denied request.
async fn may_have(
    app: &App,
    caller: &Caller,
    holder: CredentialHolder<'_>,
    name: &str,
    asking: &SecretRequest,
) -> Result<(), ApiError> {
    let has_role = caller.roles.holds_any_of(Roles::WORKER.and(Roles::ADMIN));
    if has_role && bound::may_read_credential(app, caller, holder, name).await? {
        return Ok(());
    }
    app.control
        .secrets
        .credentials
        .record(&app.tenant, asking, name, SecretOutcome::Denied, None)
        .await?;
    if has_role {
        return Err(bound::credential_not_named(caller, name));
    }
    let message = "what a credential holds is shown to workers and admins only";
    Err(ApiError::with_status(StatusCode::FORBIDDEN, "role_missing", message))
}

async fn revealed(
    app: &App,
    name: &str,
    asking: &SecretRequest,
) -> Result<CredentialView, ApiError> {
    match app.control.secrets.keychain.reveal(&app.tenant, name, asking).await? {
        RevealedSecret::Stored(credential, data) => {
            Ok(CredentialView { data: Some(data), ..view(*credential) })
        }
        RevealedSecret::Keychain { since, data } => Ok(CredentialView {
            id: Id::text(0),
            name: name.to_owned(),
            kind: "keychain".to_owned(),
            meta: None,
            tags: None,
            description: None,
            created_at: since,
            updated_at: since,
            data: Some(data),
            warnings: Vec::new(),
        }),
    }
}

/// Deletes a credential
#[utoipa::path(
    delete,
    path = "/api/credentials/{identifier}",
    tag = "credentials",
    params(("identifier" = String, Path)),
    responses((status = 200, body = CredentialDeleted), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    caller: Caller,
    Path(identifier): Path<String>,
) -> Result<Json<CredentialDeleted>, ApiError> {
    let name = app.control.secrets.credentials.get(&app.tenant, &identifier).await?.kept.name;
    granted::check_credential(&app, &caller, &name).await?;
    let administration = app.control.secrets.administration();
    let id = administration.delete_credential(&app.tenant, &caller.actor, &identifier).await?;
    let message = "Credential deleted successfully".to_owned();
    Ok(Json(CredentialDeleted { message, id: Id::text(id.get()) }))
}

fn view(credential: StoredCredential) -> CredentialView {
    let StoredCredential { kept, created_at, updated_at } = credential;
    CredentialView {
        id: Id::text(kept.id.get()),
        name: kept.name,
        kind: kept.kind,
        meta: kept.meta,
        tags: (!kept.tags.is_empty()).then_some(kept.tags),
        description: kept.description,
        created_at,
        updated_at,
        data: None,
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use noetl_control::ControlPlane;
    use noetl_secrets::EncryptionKey;
    use noetl_store::{AuditFilter, MemoryStore, SystemClock};
    use serde_json::json;

    use super::*;

    async fn app() -> App {
        let encryption_key = Some(EncryptionKey::generate());
        let options = noetl_control::Options {
            slots: 0,
            encryption_key,
            ..noetl_control::Options::default()
        };
        let store = Arc::new(MemoryStore::new());
        let control =
            ControlPlane::open(options, store, Arc::new(SystemClock)).await.expect("a store");
        let app = App::new(Arc::new(control), crate::Options::default());
        let request = CredentialRequest {
            name: "db".to_owned(),
            kind: "t".to_owned(),
            data: json!({"password": "correct horse"}),
            meta: None,
            tags: Vec::new(),
            description: None,
        };
        app.control.secrets.credentials.put(&app.tenant, request).await.expect("kept");
        app
    }

    fn caller(roles: Roles) -> Caller {
        Caller::known_as("ada", roles)
    }

    async fn ask(app: &App, roles: Roles, include_data: bool) -> Result<CredentialView, ApiError> {
        let query = CredentialQuery { include_data, ..CredentialQuery::default() };
        let name = Path("db".to_owned());
        let answer = get(Scoped(app.clone()), caller(roles), name, Query(query)).await;
        answer.map(|Json(view)| view)
    }

    #[tokio::test]
    async fn secrets_are_for_admins_system_pools_and_holders_of_commands() {
        let app = app().await;
        for roles in [Roles::ADMIN, Roles::WORKER.and(Roles::INTERNAL)] {
            let shown = ask(&app, roles, true).await.expect("shown");
            assert_eq!(shown.data, Some(json!({"password": "correct horse"})), "{roles:?}");
        }
        let worker = Roles::WORKER;
        for roles in [Roles::VIEWER, Roles::AUTHOR, Roles::OPERATOR, Roles::INTERNAL, worker] {
            let refused = ask(&app, roles, true).await.expect_err("refused");
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{roles:?}");
            assert_eq!(ask(&app, roles, false).await.expect("shown").data, None);
        }
        let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
        let uses = app.control.secrets.audit.list(&app.tenant, &filter).await.expect("a list");
        let denied = uses.iter().filter(|used| used.outcome == "denied").count();
        assert_eq!((uses.len(), denied), (7, 5), "asking in vain is recorded");
        assert!(uses.iter().all(|used| used.worker.as_deref() == Some("ada")));
        app.control.close().await;
    }
}

//! Grants: create, list, and remove.

use noetl_api::grants::{GrantList, GrantRemoved, GrantView, NewGrantView};
use noetl_secrets::{GrantError, GrantRequest, UnknownRole};
use noetl_store::{Grant, GrantKind, NewGrant};

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Creates a grant
///
/// With `role`: from now on, callers of the tenant with that role need a grant that covers the path
/// on which they act. With `credential`: from now on, a playbook needs a grant by its path to use
/// the credential, regardless of the caller that starts it.
#[utoipa::path(
    post,
    path = "/api/grants",
    operation_id = "grants_create",
    tag = "tokens",
    request_body = NewGrantView,
    responses((status = 200, body = GrantView), ErrorResponses),
)]
pub(crate) async fn create(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<NewGrantView>,
) -> Result<Json<GrantView>, ApiError> {
    let NewGrantView { role, subject, credential, prefix } = request;
    let request = match (role, credential) {
        (Some(role), None) => {
            let role = role.parse().map_err(|wrong: UnknownRole| invalid(wrong.to_string()))?;
            GrantRequest::Path { role, subject, prefix }
        }
        (None, Some(credential)) if subject.is_none() => {
            GrantRequest::Credential { credential, prefix }
        }
        _ => {
            let message = "a grant names a role, and maybe a caller, or a credential";
            return Err(invalid(message.to_owned()));
        }
    };
    let administration = app.control.secrets.administration();
    let made = administration.create_grant(&app.tenant, &caller.actor, request).await?;
    Ok(Json(view(made)))
}

/// Lists grants
///
/// Returns the grants of the caller's tenant, oldest first.
#[utoipa::path(
    get,
    path = "/api/grants",
    operation_id = "grants_list",
    tag = "tokens",
    responses((status = 200, body = GrantList), ErrorResponses),
)]
pub(crate) async fn list(Scoped(app): Scoped) -> Result<Json<GrantList>, ApiError> {
    let grants = app.control.secrets.grants.list(&app.tenant).await?;
    Ok(Json(GrantList { grants: grants.into_iter().map(view).collect() }))
}

/// Removes a grant
///
/// Takes effect on other servers of the same database within seconds. Removing the last grant of a
/// role or a credential lifts the limit.
#[utoipa::path(
    delete,
    path = "/api/grants/{id}",
    operation_id = "grants_remove",
    tag = "tokens",
    params(("id" = String, Path)),
    responses((status = 200, body = GrantRemoved), ErrorResponses),
)]
pub(crate) async fn remove(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<GrantRemoved>, ApiError> {
    let administration = app.control.secrets.administration();
    match administration.remove_grant(&app.tenant, &caller.actor, &id).await? {
        true => Ok(Json(GrantRemoved { id, status: "removed".to_owned() })),
        false => Err(ApiError::not_found("grant_not_found", format!("Grant '{id}' not found"))),
    }
}

impl From<GrantError> for ApiError {
    fn from(failure: GrantError) -> Self {
        match failure {
            GrantError::Store(failure) => failure.into(),
            GrantError::Unrecorded(_) => {
                Self::unavailable("secret_audit_unavailable", failure.to_string())
            }
            GrantError::Role(_) | GrantError::Text(_) => invalid(failure.to_string()),
        }
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::invalid("invalid_grant", message)
}

fn view(grant: Grant) -> GrantView {
    let NewGrant { id, kind, target, subject, prefix } = grant.kept;
    let (role, credential) = match kind {
        GrantKind::Path => (Some(target), None),
        GrantKind::Credential => (None, Some(target)),
    };
    let prefix = if prefix.is_empty() { prefix } else { format!("{prefix}/") };
    let grant_view = NewGrantView { role, subject, credential, prefix };
    GrantView { id, grant: grant_view, created_at: grant.created_at }
}

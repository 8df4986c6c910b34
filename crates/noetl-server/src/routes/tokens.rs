//! Access tokens: create, list, and revoke.

use std::time::Duration;

use noetl_api::tokens::{MadeToken, NewToken, TokenList, TokenRevoked, TokenView, Whoami};
use noetl_secrets::{TokenError, TokenRequest, UnknownRole};
use noetl_store::AccessToken;

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Creates an access token
///
/// The token belongs to the caller's tenant. It is returned once and cannot be retrieved later.
#[utoipa::path(
    post,
    path = "/api/tokens",
    operation_id = "tokens_create",
    tag = "tokens",
    request_body = NewToken,
    responses((status = 200, body = MadeToken), ErrorResponses),
)]
pub(crate) async fn create(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<NewToken>,
) -> Result<Json<MadeToken>, ApiError> {
    let role = request.role.parse();
    let request = TokenRequest {
        name: request.name,
        role: role.map_err(|wrong: UnknownRole| invalid(&wrong))?,
        lasts: request.expires_in.map(Duration::from_secs),
        pool: request.pool,
    };
    let administration = app.control.secrets.administration();
    let made = administration.create_token(&app.tenant, &caller.actor, request).await;
    let (kept, token) = made?;
    Ok(Json(MadeToken { view: view(kept), token }))
}

/// Lists access tokens
///
/// Returns the tokens of the caller's tenant, oldest first, including expired and revoked ones.
#[utoipa::path(
    get,
    path = "/api/tokens",
    operation_id = "tokens_list",
    tag = "tokens",
    responses((status = 200, body = TokenList), ErrorResponses),
)]
pub(crate) async fn list(Scoped(app): Scoped) -> Result<Json<TokenList>, ApiError> {
    let tokens = app.control.secrets.tokens.list(&app.tenant).await?;
    Ok(Json(TokenList { tokens: tokens.into_iter().map(view).collect() }))
}

/// Revokes an access token
///
/// Takes effect on other servers of the same database within seconds.
#[utoipa::path(
    delete,
    path = "/api/tokens/{id}",
    operation_id = "tokens_revoke",
    tag = "tokens",
    params(("id" = String, Path)),
    responses((status = 200, body = TokenRevoked), ErrorResponses),
)]
pub(crate) async fn revoke(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TokenRevoked>, ApiError> {
    let administration = app.control.secrets.administration();
    match administration.revoke_token(&app.tenant, &caller.actor, &id).await? {
        true => Ok(Json(TokenRevoked { id, status: "revoked".to_owned() })),
        false => Err(ApiError::not_found("token_not_found", format!("Token '{id}' not found"))),
    }
}

/// Returns the caller's identity
///
/// Includes its name, tenant, roles, and pool.
#[utoipa::path(
    get,
    path = "/api/whoami",
    tag = "tokens",
    responses((status = 200, body = Whoami), ErrorResponses),
)]
pub(crate) async fn whoami(caller: Caller) -> Json<Whoami> {
    Json(Whoami {
        name: caller.name.to_string(),
        tenant: caller.tenant.to_string(),
        roles: caller.roles.names().map(str::to_owned).collect(),
        actor: caller.actor.to_string(),
        pool: caller.pool.as_deref().map(str::to_owned),
    })
}

impl From<TokenError> for ApiError {
    fn from(failure: TokenError) -> Self {
        match failure {
            TokenError::Store(failure) => failure.into(),
            TokenError::Unrecorded(_) => {
                Self::unavailable("secret_audit_unavailable", failure.to_string())
            }
            TokenError::Name | TokenError::Lasts | TokenError::Pool => invalid(&failure),
        }
    }
}

fn invalid(wrong: &impl std::fmt::Display) -> ApiError {
    ApiError::invalid("invalid_token_request", wrong.to_string())
}

/// Converts a stored token to its API form, without the secret.
pub fn view(token: AccessToken) -> TokenView {
    let AccessToken { tenant, kept, created_at, revoked_at } = token;
    TokenView {
        id: kept.id,
        name: kept.name,
        role: kept.role,
        tenant: tenant.to_string(),
        created_at,
        expires_at: kept.expires_at,
        revoked_at,
        pool: kept.pool,
    }
}

//! Authentication and authorization of requests, before the body is read.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use noetl_model::Tenant;
use noetl_secrets::TokenHolder;

use super::caller::Caller;
use super::credential::RequestCredential;
use super::roles::{RequiredRole, Roles, needs, needs_of_verbs};
use super::{acted, authorization, bound, granted, internal, limits, rate, session};
use crate::app::{App, Auth};
use crate::connections::ClientConnection;
use crate::error::ApiError;
use crate::oidc::OidcError;
use crate::routes::fallback::wrong_verb;

/// Prefix of access tokens issued by this control plane.
pub(super) const OWN: &str = "noetl_";

/// Header in which published clients repeat their token, and gateways name the session of a person.
pub(super) const SESSION: &str = "x-session-token";

/// Passes a request on if its caller has a role that the route needs and a permit is free.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let admitted = match admitted(&app, &parts, path).await {
        Ok((caller, needs)) => {
            limits::admit(&app, path, needs, &body).map(|place| (caller, needs, place))
        }
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok((caller, needs, _place)) => {
            if let Some(connection) = parts.extensions.get::<ClientConnection>()
                && needs != RequiredRole::Nothing
            {
                connection.set_known();
            }
            let credential = RequestCredential::new(&parts, needs);
            parts.extensions.insert(credential);
            parts.extensions.insert(caller);
            let body = limits::paced(&app, path, needs, body);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn admitted(
    app: &App,
    request: &Parts,
    path: &str,
) -> Result<(Caller, RequiredRole), ApiError> {
    let method = &request.method;
    let Some(needs) = needs(method, path) else {
        if let Some(needs) = needs_of_verbs(path) {
            known(app, request, path, needs).await?;
        }
        return Err(wrong_verb(method, &request.uri, path));
    };
    Ok((known(app, request, path, needs).await?, needs))
}

/// Returns the caller if it has a role that the route needs. Counts the request in either case.
async fn known(
    app: &App,
    request: &Parts,
    path: &str,
    needs: RequiredRole,
) -> Result<Caller, ApiError> {
    let method = &request.method;
    if needs == RequiredRole::Nothing {
        rate::count_address(app, path, request)?;
    }
    let caller = caller(app, &request.headers, needs).await;
    match caller {
        Ok(caller) => {
            bound::check_route(&caller, path)?;
            rate::count(app, path, needs, &caller)?;
            granted::check_route(app, &caller, method, path, request.uri.path()).await?;
            acted::record_route(app, &caller, method, path, request.uri.path()).await?;
            Ok(caller)
        }
        // Requests with an invalid token count as anonymous.
        Err(refusal) => {
            rate::count_address(app, path, request)?;
            rate::count(app, path, RequiredRole::Nothing, &Caller::anonymous())?;
            Err(refusal)
        }
    }
}

/// Authenticates the caller by its headers and checks that it has a role that the route needs.
pub(crate) async fn caller(
    app: &App,
    headers: &HeaderMap,
    needs: RequiredRole,
) -> Result<Caller, ApiError> {
    if needs == RequiredRole::Nothing {
        return Ok(Caller::anonymous());
    }
    if needs == RequiredRole::One(Roles::INTERNAL) {
        return internal::check_headers(app, headers).map(|()| Caller::internal());
    }
    let is_internal = internal::is_internal(app, headers);
    // The internal token allows every request of the worker role, for all tenants.
    if needs.allow(Roles::WORKER) && is_internal {
        return Ok(Caller::internal());
    }
    let caller = match &app.options.auth {
        Auth::Open => Caller::anybody(),
        _ if is_internal => Caller::internal(),
        Auth::Token | Auth::Oidc(_) => {
            let shown = shown(headers)?;
            let caller = identify(app, &shown).await?;
            check_role(&caller, needs)?;
            session::apply(app, headers, caller, &shown, needs).await?
        }
    };
    check_role(&caller, needs)?;
    let acting = caller.roles.shared_with(needs.roles());
    Ok(Caller { acting, ..caller })
}

/// Returns the holder of a token issued by this control plane or by the identity provider.
async fn identify(app: &App, shown: &str) -> Result<Caller, ApiError> {
    let _check = app.places.check().await;
    match &app.options.auth {
        Auth::Oidc(provider) if !shown.starts_with(OWN) => {
            provider.caller(shown).await.map_err(not_known)
        }
        _ => {
            let caller = by_token(app, shown).await?;
            caller.ok_or_else(|| unknown("the token is unknown, expired or revoked"))
        }
    }
}

/// Checks that a caller has a role that the route needs, and that its tenant may use the route.
pub(super) fn check_role(caller: &Caller, needs: RequiredRole) -> Result<(), ApiError> {
    if !needs.allow(caller.roles) {
        return Err(lacks_role(caller, needs));
    }
    if matches!(needs, RequiredRole::Whole(_)) && !caller.looks_after_all() {
        let message = format!(
            "this is about what all tenants share, and {} is of tenant '{}': a token of tenant \
             '{}' is needed",
            caller.name,
            caller.tenant.as_str(),
            Tenant::DEFAULT
        );
        return Err(ApiError::with_status(StatusCode::FORBIDDEN, "default_tenant_needed", message));
    }
    Ok(())
}

/// Returns the holder of a token issued by this control plane, or `None` if the token is unknown,
/// expired, or revoked.
pub(super) async fn by_token(app: &App, shown: &str) -> Result<Option<Caller>, ApiError> {
    let holder = app.control.secrets.tokens.holder(shown).await?;
    let Some(TokenHolder { id, name, tenant, role, pool, .. }) = holder else { return Ok(None) };
    let name = format!("{name} ({id})").into();
    let actor: Arc<str> = format!("token:{id}").into();
    let (roles, pool) = (Roles::for_role(role), pool.map(Into::into));
    let grantee = actor.clone();
    Ok(Some(Caller { name, tenant, roles, acting: roles, actor, grantee, pool }))
}

/// Returns the token that a caller presents: in `Authorization`, or without it in [`SESSION`].
fn shown(headers: &HeaderMap) -> Result<Cow<'_, str>, ApiError> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        return authorization::token(header).map_err(unknown);
    }
    let session = headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::trim);
    let shown = session.filter(|token| !token.is_empty());
    shown
        .map(Cow::Borrowed)
        .ok_or_else(|| unknown("a token is needed, as 'Authorization: Bearer <token>'"))
}

/// Creates the rejection of a session that names no actor.
pub(super) fn refuse_session(message: &str) -> ApiError {
    ApiError::with_status(StatusCode::UNAUTHORIZED, "session_unknown", message)
}

fn unknown(message: &str) -> ApiError {
    ApiError::with_status(StatusCode::UNAUTHORIZED, "not_authenticated", message)
}

pub(crate) fn not_known(failure: OidcError) -> ApiError {
    match failure {
        OidcError::Refused(why) => unknown(&why),
        OidcError::Unavailable(why) => {
            tracing::warn!(why, "identity provider unavailable");
            let message = "the identity provider does not answer";
            ApiError::unavailable("identity_provider_unavailable", message)
        }
    }
}

fn lacks_role(caller: &Caller, needs: RequiredRole) -> ApiError {
    let roles = |roles: Roles| roles.names().collect::<Vec<_>>().join(", ");
    let needed = roles(needs.roles());
    let has = match roles(caller.roles) {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    };
    let message = format!("this needs one of the roles {needed}; {} has {has}", caller.name);
    ApiError::with_status(StatusCode::FORBIDDEN, "role_missing", message)
}

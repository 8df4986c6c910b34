//! Browser sign-in: authentication mode, OpenID Connect, and one-time codes.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use noetl_access::{AccessError, Auth, CODE_LASTS, CodeExchange, CodeHolder, OidcError};
use noetl_api::session::{
    AuthMode, CodeRequest, IssuedCode, OneTimeCode, SignInEndpoint, SignedIn,
};
use noetl_secrets::{Role, TokenRequest};

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Maximum length of each text of the provider's callback, in bytes. URLs are not longer.
const PART_MAX: usize = 8192;

/// Returns the authentication mode
///
/// The mode is `open`, `token`, or `oidc`. With `oidc`, the response includes the provider's
/// authorization endpoint for browsers.
#[utoipa::path(
    get,
    path = "/api/auth/mode",
    operation_id = "auth_mode",
    tag = "tokens",
    responses((status = 200, body = AuthMode), ErrorResponses),
)]
pub(crate) async fn mode(State(app): State<App>) -> Json<AuthMode> {
    let mode = |mode: &str| AuthMode { mode: mode.to_owned(), sign_in: None, trouble: None };
    Json(match &app.options.auth {
        Auth::Open => mode("open"),
        Auth::Token => mode("token"),
        Auth::Oidc(provider) => match provider.endpoint().await {
            Ok(place) => {
                let sign_in = place.map(|place| SignInEndpoint {
                    authorization_endpoint: place.authorization_endpoint,
                    client_id: place.client_id,
                    scope: place.scope.to_owned(),
                    audience: place.audience,
                });
                AuthMode { sign_in, ..mode("oidc") }
            }
            // Access tokens of this control plane remain valid without the provider.
            Err(failure) => {
                let trouble = Some(failed(failure).message().to_owned());
                AuthMode { trouble, ..mode("oidc") }
            }
        },
    })
}

/// Converts an error of the identity provider.
fn failed(failure: OidcError) -> ApiError {
    AccessError::from(failure).into()
}

/// Exchanges an authorization code for a token
///
/// The code is the one with which the identity provider redirected the browser back to the page.
#[utoipa::path(
    post,
    path = "/api/auth/oidc/token",
    operation_id = "auth_oidc_token",
    tag = "tokens",
    request_body = CodeRequest,
    responses((status = 200, body = SignedIn), ErrorResponses),
)]
pub(crate) async fn trade(
    State(app): State<App>,
    Json(request): Json<CodeRequest>,
) -> Result<Json<SignedIn>, ApiError> {
    let parts = [
        ("code", &request.code),
        ("code_verifier", &request.code_verifier),
        ("redirect_uri", &request.redirect_uri),
    ];
    for (name, part) in parts {
        if part.is_empty() || part.len() > PART_MAX {
            let message = format!("{name} is a text of 1 to {PART_MAX} bytes");
            return Err(ApiError::invalid("invalid_code_request", message));
        }
    }
    let proof = CodeExchange {
        code: &request.code,
        verifier: &request.code_verifier,
        redirect: &request.redirect_uri,
    };
    let traded = match &app.options.auth {
        Auth::Oidc(provider) => provider.traded(&proof).await.map_err(failed)?,
        Auth::Open | Auth::Token => None,
    };
    let granted = traded.ok_or_else(|| {
        let message = "signing in with a browser is not configured: set NOETL_AUTH=oidc and \
                       NOETL_OIDC_CLIENT_ID";
        ApiError::invalid("sign_in_not_configured", message)
    })?;
    Ok(Json(SignedIn { token: granted.token, expires_in: granted.expires_in }))
}

/// Lifetime of a browser session that was started with a one-time code: a working day.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Creates a one-time sign-in code
///
/// For a link that signs a browser in as an admin of the caller's tenant: `/sign-in#code=…`. The
/// code works once, and only on the server process that created it.
#[utoipa::path(
    post,
    path = "/api/auth/codes",
    operation_id = "auth_code_create",
    tag = "tokens",
    responses((status = 200, body = IssuedCode), ErrorResponses),
)]
pub(crate) async fn issue_code(Scoped(app): Scoped, caller: Caller) -> Json<IssuedCode> {
    let (tenant, role) = (app.tenant.clone(), Role::Admin);
    let holder = CodeHolder { tenant, role, actor: caller.actor.clone() };
    let code = app.codes.issue(holder, Instant::now());
    Json(IssuedCode { code, expires_in: CODE_LASTS.as_secs() })
}

/// Exchanges a one-time code for a token
///
/// The token has the admin role and expires after 12 hours.
#[utoipa::path(
    post,
    path = "/api/auth/code",
    operation_id = "auth_code_trade",
    tag = "tokens",
    request_body = OneTimeCode,
    responses((status = 200, body = SignedIn), ErrorResponses),
)]
pub(crate) async fn trade_code(
    State(app): State<App>,
    Json(request): Json<OneTimeCode>,
) -> Result<Json<SignedIn>, ApiError> {
    let holder = app.codes.redeem(&request.code, Instant::now()).ok_or_else(|| {
        let message = "the link was used or is too old; `noetl token link` makes another";
        ApiError::with_status(StatusCode::UNAUTHORIZED, "code_unknown", message)
    })?;
    let request = TokenRequest {
        name: "browser".to_owned(),
        role: holder.role,
        lasts: Some(SESSION_LASTS),
        pool: None,
    };
    let administration = app.control.secrets.administration();
    let (_, token) = administration.create_token(&holder.tenant, &holder.actor, request).await?;
    Ok(Json(SignedIn { token, expires_in: Some(SESSION_LASTS.as_secs()) }))
}

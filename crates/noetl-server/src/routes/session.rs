//! Validation of sessions for gateways.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use noetl_access::{Auth, GATEWAYS, Sessions, StoredSession};
use noetl_api::session::{SessionReply, SessionRequest, SessionUser};
use noetl_secrets::TokenHolder;
use noetl_store::Digest;

use crate::app::App;
use crate::error::ApiError;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;
use crate::http::roles::RequiredRole;

/// Validates a session
///
/// A session is an access token of this server, or a session in the database that `credential`
/// names. The latter requires that `NOETL_SESSION_CREDENTIAL` names the same credential, and a
/// caller of role operator or admin. An invalid session is not an error: `valid` is `false`.
#[utoipa::path(
    post,
    path = "/api/auth/session/validate",
    operation_id = "session_validate",
    tag = "tokens",
    request_body = SessionRequest,
    responses((status = 200, body = SessionReply), ErrorResponses),
)]
pub(crate) async fn validate(
    axum::extract::State(app): axum::extract::State<App>,
    headers: HeaderMap,
    Json(request): Json<SessionRequest>,
) -> Result<Json<SessionReply>, ApiError> {
    let token = request.session_token.trim();
    let holder = app.control.secrets.tokens.holder(token).await?;
    if let Some(holder) = holder {
        return Ok(Json(valid(holder)));
    }
    Ok(Json(match (&app.options.sessions, request.credential.as_deref()) {
        (Some(sessions), Some(credential)) => {
            find(&app, &headers, sessions, credential, token).await?
        }
        (None, _) | (_, None) => invalid("the token is unknown, expired or revoked"),
    }))
}

/// Looks a session up in the database that a credential names.
async fn find(
    app: &App,
    headers: &HeaderMap,
    sessions: &Sessions,
    credential: &str,
    token: &str,
) -> Result<SessionReply, ApiError> {
    let is_open = matches!(app.options.auth, Auth::Open);
    if !is_open && !headers.contains_key(AUTHORIZATION) {
        return Ok(failed(
            "sessions of a database are validated for callers with a token only: send an access \
             token of role operator or admin in the Authorization header",
        ));
    }
    let caller = app.access.caller(headers, RequiredRole::One(GATEWAYS)).await?;
    if !Sessions::serves(&caller) {
        return Ok(failed(
            "sessions of a database are validated for callers of the default tenant only",
        ));
    }
    if credential != sessions.credential() {
        return Ok(failed(
            "sessions are validated with the credential that NOETL_SESSION_CREDENTIAL names, and \
             the request names another",
        ));
    }
    Ok(match app.access.find_session(&caller, token).await {
        Ok(Some(session)) => found(session),
        Ok(None) => invalid("the session is unknown, expired, or inactive"),
        Err(failure) => failed(ApiError::from(failure).message()),
    })
}

fn reply(status: &str, valid: bool) -> SessionReply {
    SessionReply { status: status.to_owned(), valid, user: None, expires_at: None, error: None }
}

/// Creates the response for an invalid session.
fn invalid(why: &str) -> SessionReply {
    SessionReply { error: Some(why.to_owned()), ..reply("ok", false) }
}

/// Creates the response for a failed lookup.
fn failed(why: &str) -> SessionReply {
    SessionReply { error: Some(why.to_owned()), ..reply("error", false) }
}

fn valid(holder: TokenHolder) -> SessionReply {
    let user = SessionUser {
        user_id: number(&holder.id),
        email: format!("{}@{}", holder.id, holder.tenant),
        display_name: holder.name,
        roles: vec![holder.role.to_string()],
    };
    SessionReply { expires_at: holder.expires_at, user: Some(user), ..reply("ok", true) }
}

fn found(session: StoredSession) -> SessionReply {
    let StoredSession { user_id, email, display_name, roles, expires_at } = session;
    let user = SessionUser { user_id, email, display_name, roles };
    SessionReply { expires_at: Some(expires_at), user: Some(user), ..reply("ok", true) }
}

/// Derives a stable user number from a token ID, for gateways.
fn number(id: &str) -> i32 {
    let digest = Digest::of_bytes(id.as_bytes());
    let [a, b, c, d, ..] = *digest.as_bytes();
    i32::from_be_bytes([a & 0x7f, b, c, d])
}

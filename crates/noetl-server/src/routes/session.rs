//! Whether a token is good, for a gateway that keeps sessions: a token of ours is one.

use noetl_api::session::{SessionReply, SessionRequest, SessionUser};
use noetl_control::Holder;
use noetl_store::Digest;

use crate::app::App;
use crate::error::ApiError;
use crate::http::document::Failures;
use crate::http::extract::Json;

/// Ask whose a session is
///
/// Whoever shows the token learns what it is good for; one that is not good is no error.
#[utoipa::path(
    post,
    path = "/api/auth/session/validate",
    operation_id = "session_validate",
    tag = "tokens",
    request_body = SessionRequest,
    responses((status = 200, body = SessionReply), Failures),
)]
pub(crate) async fn validate(
    axum::extract::State(app): axum::extract::State<App>,
    Json(request): Json<SessionRequest>,
) -> Result<Json<SessionReply>, ApiError> {
    let holder = app.control.tokens.holder(request.session_token.trim()).await?;
    let reply = |valid: bool| SessionReply {
        status: "ok".to_owned(),
        valid,
        user: None,
        expires_at: None,
        error: None,
    };
    Ok(Json(match holder {
        Some(holder) => {
            SessionReply { expires_at: holder.expires_at, user: Some(user(holder)), ..reply(true) }
        }
        None => SessionReply {
            error: Some("the token is unknown, expired or revoked".to_owned()),
            ..reply(false)
        },
    }))
}

fn user(holder: Holder) -> SessionUser {
    SessionUser {
        user_id: number(&holder.id),
        email: format!("{}@{}", holder.id, holder.tenant),
        display_name: holder.name,
        roles: vec![holder.role.to_string()],
    }
}

/// Gateways want a small number; the same token always has the same.
fn number(id: &str) -> i32 {
    let digest = Digest::of(id.as_bytes());
    let [a, b, c, d, ..] = *digest.as_bytes();
    i32::from_be_bytes([a & 0x7f, b, c, d])
}

//! Messages sent to this server. The listener's own verification authenticates the sender; no
//! access token is needed.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use noetl_access::OidcError;
use noetl_api::Id;
use noetl_api::ingress::IngressReply;
use noetl_engine::Rejection;
use noetl_journal::{StartError, SubmitError, TraceParent};
use noetl_model::{Tenant, Value};
use noetl_playbook::subscription::{MessageRejection, VerifyKind};
use noetl_triggers::{IngressMessage, ListenerError, ListenerVerify, OpenListener, ReceiveError};
use tracing::{error, warn};

use super::verify::{self, Signature};
use crate::app::App;
use crate::error::ApiError;
use crate::http::extract::{Json, Path, Raw};
use crate::http::openapi::ErrorResponses;
use crate::http::trace_context::RequestTrace;

/// Receives a message for a listener
///
/// Accepts a body of any media type. The listener's subscription defines how the sender is
/// verified: by a signature of the body, a token, or the identity of a push service. A response
/// with status 202 means that the execution is durable. A duplicate within the dedup window gets
/// the execution of the first message. A signature that was used before gets status 200 and the
/// execution of the first message.
#[utoipa::path(
    post,
    path = "/ingress/{listener}",
    operation_id = "ingress_receive",
    tag = "subscriptions",
    params(("listener" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = IngressReply, description = "The signature was used before"),
        (status = 202, body = IngressReply),
        (status = 429, body = noetl_api::ErrorBody, description = "The subscription's limits are reached"),
        ErrorResponses,
    ),
)]
pub(crate) async fn receive(
    State(app): State<App>,
    Path(listener): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<IngressReply>), ApiError> {
    answer(app, &listener, request).await
}

/// Receives a message for a listener of a tenant
///
/// Behaves like `POST /ingress/{listener}`, for tenants other than the default one.
#[utoipa::path(
    post,
    path = "/ingress/{tenant}/{listener}",
    operation_id = "ingress_receive_of_tenant",
    tag = "subscriptions",
    params(("tenant" = String, Path), ("listener" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = IngressReply, description = "The signature was used before"),
        (status = 202, body = IngressReply),
        (status = 429, body = noetl_api::ErrorBody, description = "The subscription's limits are reached"),
        ErrorResponses,
    ),
)]
pub(crate) async fn receive_of_tenant(
    State(app): State<App>,
    Path((tenant, listener)): Path<(String, String)>,
    request: Request,
) -> Result<(StatusCode, Json<IngressReply>), ApiError> {
    answer(app.for_tenant(Tenant::new(tenant)), &listener, request).await
}

async fn answer(
    app: App,
    listener: &str,
    request: Request,
) -> Result<(StatusCode, Json<IngressReply>), ApiError> {
    let (open, message, trace) = match authenticated(&app, listener, request).await {
        Ok(received) => received,
        Err(error) => {
            app.control.triggers.ingress.count_rejected();
            return Err(error);
        }
    };
    let received = app.control.triggers.ingress.receive(&app.tenant, &open, message, trace).await;
    let received = received.map_err(|failure| not_received(failure, &open))?;
    let reply = IngressReply {
        status: if received.is_duplicate { "duplicate" } else { "accepted" }.to_owned(),
        execution_id: Id::text(received.execution.get()),
        subscription_id: Id::text(received.subscription.get()),
    };
    // A repeated signature starts no execution, and the sender doesn't have to retry.
    let status = if received.is_replay { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(reply)))
}

/// Returns the listener, the message, and the trace of a request whose sender is authenticated.
async fn authenticated(
    app: &App,
    name: &str,
    request: Request,
) -> Result<(OpenListener, IngressMessage, TraceParent), ApiError> {
    let listener = app.control.triggers.listeners.open(&app.tenant, name).await;
    let listener = listener.map_err(|failure| not_served(name, failure))?;
    let headers = request.headers().clone();
    let traced = request.extensions().get::<RequestTrace>().cloned();
    let trace = traced.map_or(TraceParent::Unsaid, |traced| traced.start(None));
    let signature = known(app, &listener.verify, &headers).await?;
    let most = listener.subscription.request_bytes_max();
    let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if said.is_some_and(|said: u64| said > most) {
        return Err(too_large(most));
    }
    let Raw(body) = Raw::from_request(request, &()).await?;
    if body.len() as u64 > most {
        return Err(too_large(most));
    }
    let signature = match signature {
        None => None,
        Some(signature) => Some(verify::signed(&listener.verify, &signature, &body)?),
    };
    let headers = headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let message = IngressMessage { headers: headers.collect(), body: body.into(), signature };
    Ok((listener, message, trace))
}

/// Authenticates the sender by the headers. A signature is checked once the body is received.
async fn known(
    app: &App,
    verify: &ListenerVerify,
    headers: &HeaderMap,
) -> Result<Option<Signature>, ApiError> {
    match verify.kind {
        VerifyKind::HmacSha256 => verify::signature(verify, headers, app.control.now()).map(Some),
        VerifyKind::Bearer => verify::bearer(verify, headers).map(|()| None),
        VerifyKind::PubsubOidc => {
            let token = verify::shown_token(headers)?;
            let provider = app.issuers.client_of(&verify.issuer).map_err(|failure| {
                error!(%failure, "failed to create identity provider client");
                ApiError::internal("no identity provider can be asked")
            })?;
            let claims = provider.claims(token).await.map_err(|failure| match failure {
                OidcError::Refused(why) => verify::unknown("token_wrong", why),
                OidcError::Unavailable(why) => {
                    warn!(why, "identity provider of listener unavailable");
                    let message = "the identity provider does not answer";
                    ApiError::unavailable("identity_provider_unavailable", message)
                }
            })?;
            identity(verify, &claims).map(|()| None)
        }
    }
}

/// Checks that a valid token was issued for this listener and to its sender.
fn identity(verify: &ListenerVerify, claims: &Value) -> Result<(), ApiError> {
    let refused = |code, message: &str| {
        let message = format!("the token is not taken: {message}");
        Err(ApiError::with_status(StatusCode::FORBIDDEN, code, message))
    };
    let wanted = verify.audience.as_deref().unwrap_or_default();
    let is_for_us = match &claims["aud"] {
        Value::String(audience) => audience == wanted,
        Value::Array(all) => all.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    };
    if !is_for_us {
        return refused("audience_wrong", "it is for another audience");
    }
    // An email address counts only if the provider has verified it.
    let sender = match claims.get("email") {
        Some(email) if claims["email_verified"] == Value::Bool(true) => email.as_str(),
        Some(_) => return refused("service_account_wrong", "its address is not verified"),
        None => claims["sub"].as_str(),
    };
    match sender {
        Some(sender) if verify.service_account.as_deref() == Some(sender) => Ok(()),
        _ => refused("service_account_wrong", "it is of another service account"),
    }
}

fn too_large(most: u64) -> ApiError {
    let message = format!("the listener takes messages of at most {most} bytes");
    ApiError::with_status(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

/// Converts the error of an unusable listener. Errors of its document are not shown to the sender.
fn not_served(name: &str, failure: ListenerError) -> ApiError {
    match failure {
        unknown @ ListenerError::Unknown(_) => unknown.into(),
        ListenerError::Store(failure) => failure.into(),
        other => {
            warn!(listener = name, why = %other, "listener cannot receive messages");
            let message = format!("listener '{name}' cannot take messages as it is set up");
            ApiError::unavailable("listener_unusable", message)
        }
    }
}

fn not_received(failure: ReceiveError, listener: &OpenListener) -> ApiError {
    let message = failure.to_string();
    match failure {
        ReceiveError::NotTaking { .. } => ApiError::unavailable("subscription_not_taking", message),
        ReceiveError::Limited(_) => {
            ApiError::with_status(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
        }
        ReceiveError::Message(rejection) => match &rejection {
            MessageRejection::TooLarge { .. } => {
                too_large(listener.subscription.message_bytes_max())
            }
            MessageRejection::NotJson(_) => {
                ApiError::with_status(StatusCode::BAD_REQUEST, rejection.code(), message)
            }
            MessageRejection::NotPushed(_)
            | MessageRejection::TooDeep
            | MessageRejection::Nul(_) => ApiError::invalid(rejection.code(), message),
        },
        ReceiveError::Subscription(failure) => failure.into(),
        ReceiveError::Start {
            cause: StartError::Submit(SubmitError::Refused(refusal @ Rejection::Workload(_))),
            ..
        } => refusal.into(),
        // The message is valid, but its playbook is missing or has errors. An operator can fix
        // that, and the sender retries the message until then.
        ReceiveError::Start {
            playbook,
            cause: cause @ (StartError::NotFound(_) | StartError::Playbook(_) | StartError::Unnamed),
        } => {
            warn!(playbook, why = %cause, "message rejected, its playbook cannot start");
            ApiError::unavailable("playbook_unusable", message)
        }
        ReceiveError::Start { cause, .. } => cause.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(claims: Value) -> u16 {
        let verify = ListenerVerify {
            kind: VerifyKind::PubsubOidc,
            header: None,
            secret: None,
            audience: Some("us".into()),
            service_account: Some("push@x".into()),
            prefix: None,
            signed_at: None,
            issuer: String::new(),
        };
        identity(&verify, &claims).map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn an_identity_is_its_verified_address_or_else_its_subject() {
        let verified = |email: &str| json!({"aud": "us", "email": email, "email_verified": true});
        assert_eq!(answered(verified("push@x")), 200);
        assert_eq!(answered(json!({"aud": ["them", "us"], "sub": "push@x"})), 200);
        for other in [
            verified("other@x"),
            json!({"aud": "us", "email": "push@x"}),
            json!({"aud": "us", "email": "push@x", "email_verified": false}),
            json!({"aud": "us", "email": "push@x", "email_verified": "true"}),
            json!({"aud": "us", "email": "other@x", "email_verified": true, "sub": "push@x"}),
            json!({"aud": "them", "sub": "push@x"}),
            json!({"sub": "push@x"}),
            json!({"aud": [7], "sub": "push@x"}),
            json!({"aud": "us"}),
        ] {
            assert_eq!(answered(other.clone()), 403, "{other}");
        }
    }
}

//! Acting on a subscription from elsewhere: who does, and what could not be dispatched.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_api::subscriptions::{
    DeadLetterReply, DeadLetterRequest, LeaseReply, LeaseRequest, ReleaseRequest,
    SubscriptionStatus,
};
use noetl_control::{DeadLetter, MessageCounts};
use noetl_model::SubscriptionId;

use super::status;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, Path};

/// The longest name of a runtime.
const HOLDER_MAX: usize = 200;

/// The longest lease: whoever falls silent is waited for as long.
const TTL_SECS_MAX: u64 = 300;

/// Act on a subscription
///
/// One runtime does at a time, until its lease ends or is given back; it comes again before that. A
/// runtime that hears `held: false` waits for its turn, and is known to.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/lease",
    operation_id = "subscriptions_lease",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = LeaseRequest,
    responses((status = 200, body = LeaseReply), Failures),
)]
pub(crate) async fn lease(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Json(request): Json<LeaseRequest>,
) -> Result<Json<LeaseReply>, ApiError> {
    check_holder(&request.holder)?;
    if !(1..=TTL_SECS_MAX).contains(&request.ttl_secs) {
        let message = format!("ttl_secs is a number from 1 to {TTL_SECS_MAX}");
        return Err(ApiError::invalid("invalid_lease", message));
    }
    let id = SubscriptionId::new(id);
    let (subscriptions, tenant) = (&app.control.subscriptions, &app.tenant);
    let ttl = Duration::from_secs(request.ttl_secs);
    let held = subscriptions.hold(tenant, id, &request.holder, ttl).await?;
    let awaited = subscriptions.is_awaited(tenant, id, &request.holder).await?;
    let row = subscriptions.get(tenant, id).await?;
    let counted = &app.control.metrics.subscriptions;
    counted.add(&row.path, counts(request.counts));
    if let Some(backlog) = request.backlog.filter(|_| held) {
        counted.set_backlog(&row.path, backlog);
    }
    Ok(Json(LeaseReply { held, awaited, status: status(row) }))
}

/// Stop acting on a subscription
///
/// Or waiting to. Its state is not changed by that.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/release",
    operation_id = "subscriptions_release",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = ReleaseRequest,
    responses((status = 200, body = SubscriptionStatus), Failures),
)]
pub(crate) async fn release(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Json(request): Json<ReleaseRequest>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    check_holder(&request.holder)?;
    let id = SubscriptionId::new(id);
    app.control.subscriptions.let_go(&app.tenant, id, &request.holder).await?;
    let row = app.control.subscriptions.get(&app.tenant, id).await?;
    app.control.metrics.subscriptions.clear_backlog(&row.path);
    Ok(Json(status(row)))
}

/// Keep a message that cannot be dispatched
///
/// Its body becomes an object, and the log of the subscription says where it is and why.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/dead-letters",
    operation_id = "subscriptions_dead_letter",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = DeadLetterRequest,
    responses((status = 200, body = DeadLetterReply), Failures),
)]
pub(crate) async fn dead_letter(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Json(request): Json<DeadLetterRequest>,
) -> Result<Json<DeadLetterReply>, ApiError> {
    let body = STANDARD
        .decode(&request.body_base64)
        .map_err(|_| ApiError::invalid("invalid_body", "body_base64 is base64 with padding"))?;
    let letter = DeadLetter {
        message: request.message_id,
        code: request.code,
        reason: request.reason,
        attempts: request.attempts,
        headers: request.headers,
        metadata: request.metadata,
        body,
    };
    let id = SubscriptionId::new(id);
    let object = app.control.dead_letters.keep(&app.tenant, id, letter).await?;
    Ok(Json(DeadLetterReply { object }))
}

fn check_holder(holder: &str) -> Result<(), ApiError> {
    let is_name = (1..=HOLDER_MAX).contains(&holder.len()) && !holder.contains(char::is_control);
    if is_name {
        return Ok(());
    }
    let message = format!("holder is a name of 1 to {HOLDER_MAX} bytes");
    Err(ApiError::invalid("invalid_holder", message))
}

fn counts(counts: noetl_api::subscriptions::MessageCounts) -> MessageCounts {
    MessageCounts {
        received: counts.received,
        dispatched: counts.dispatched,
        duplicate: counts.duplicate,
        failed: counts.failed,
        dead_lettered: counts.dead_lettered,
    }
}

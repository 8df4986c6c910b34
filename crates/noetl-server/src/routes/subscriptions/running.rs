//! Requests of remote subscription runtimes: lease, release, and dead letters.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_api::subscriptions::{
    DeadLetterReply, DeadLetterRequest, LeaseReply, ReleaseRequest, SubscriptionLeaseRequest,
    SubscriptionStatus,
};
use noetl_model::SubscriptionId;
use noetl_work::{DeadLetter, MessageCounts};

use super::status;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Maximum length of a runtime's name, in bytes.
const HOLDER_MAX: usize = 200;

/// Maximum lease duration in seconds. After a runtime dies, another one can take over only once the
/// lease expires.
const TTL_SECS_MAX: u64 = 300;

/// Acquires or renews the lease on a subscription
///
/// One runtime at a time runs a subscription, until its lease expires or it releases it. The
/// runtime must renew the lease before it expires. A runtime that gets `held: false` is recorded as
/// waiting for the lease.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/lease",
    operation_id = "subscriptions_lease",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = SubscriptionLeaseRequest,
    responses((status = 200, body = LeaseReply), ErrorResponses),
)]
pub(crate) async fn lease(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Json(request): Json<SubscriptionLeaseRequest>,
) -> Result<Json<LeaseReply>, ApiError> {
    check_holder(&request.holder)?;
    if !(1..=TTL_SECS_MAX).contains(&request.ttl_secs) {
        let message = format!("ttl_secs is a number from 1 to {TTL_SECS_MAX}");
        return Err(ApiError::invalid("invalid_lease", message));
    }
    let id = SubscriptionId::new(id);
    let (subscriptions, tenant) = (&app.control.triggers.subscriptions, &app.tenant);
    let ttl = Duration::from_secs(request.ttl_secs);
    let held = subscriptions.hold(tenant, id, &request.holder, ttl).await?;
    let awaited = subscriptions.is_awaited(tenant, id, &request.holder).await?;
    let row = subscriptions.get(tenant, id).await?;
    let counted = &app.control.journal.metrics.subscriptions;
    counted.add(&row.path, counts(request.counts));
    if let Some(backlog) = request.backlog.filter(|_| held) {
        counted.set_backlog(&row.path, backlog);
    }
    Ok(Json(LeaseReply { held, awaited, status: status(row) }))
}

/// Releases the lease on a subscription
///
/// Also ends waiting for the lease. Doesn't change the state of the subscription.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/release",
    operation_id = "subscriptions_release",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = ReleaseRequest,
    responses((status = 200, body = SubscriptionStatus), ErrorResponses),
)]
pub(crate) async fn release(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
    Json(request): Json<ReleaseRequest>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    check_holder(&request.holder)?;
    let id = SubscriptionId::new(id);
    app.control.triggers.subscriptions.let_go(&app.tenant, id, &request.holder).await?;
    let row = app.control.triggers.subscriptions.get(&app.tenant, id).await?;
    app.control.journal.metrics.subscriptions.clear_backlog(&row.path);
    Ok(Json(status(row)))
}

/// Dead-letters a message
///
/// Stores the body as an object, and records its key and the reason in the subscription's event
/// log.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/dead-letters",
    operation_id = "subscriptions_dead_letter",
    tag = "subscriptions",
    params(("id" = noetl_api::Id, Path)),
    request_body = DeadLetterRequest,
    responses((status = 200, body = DeadLetterReply), ErrorResponses),
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
    let object = app.control.triggers.dead_letters.keep(&app.tenant, id, letter).await?;
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

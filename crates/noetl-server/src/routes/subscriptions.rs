//! Subscriptions: register, change state, and read.

pub(crate) mod log;
pub(crate) mod running;

use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::subscriptions::{SubscribeRequest, SubscriptionList, SubscriptionStatus};
use noetl_model::SubscriptionId;
use noetl_store::{SubscriptionAction, SubscriptionRow};

use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;

/// Registers a subscription
///
/// Names the subscription by the path of its document. A registered subscription that is not
/// deactivated is returned unchanged.
#[utoipa::path(
    post,
    path = "/api/subscriptions",
    operation_id = "subscriptions_register",
    tag = "subscriptions",
    request_body = SubscribeRequest,
    responses((status = 200, body = SubscriptionStatus), ErrorResponses),
)]
pub(crate) async fn register(
    Scoped(app): Scoped,
    caller: Caller,
    Json(request): Json<SubscribeRequest>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    granted::check_path(&app, &caller, &request.path).await?;
    let row = app.control.triggers.subscriptions.register(&app.tenant, &request.path).await?;
    Ok(Json(status(row)))
}

/// Changes the state of a subscription
///
/// The action is `activate`, `pause`, `resume`, `drain`, or `deactivate`. A request body is
/// ignored.
#[utoipa::path(
    post,
    path = "/api/subscriptions/{id}/{action}",
    tag = "subscriptions",
    params(("id" = Id, Path), ("action" = String, Path)),
    responses((status = 200, body = SubscriptionStatus), ErrorResponses),
)]
pub(crate) async fn act(
    Scoped(app): Scoped,
    Path((id, action)): Path<(String, String)>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    let action = SubscriptionAction::from_text(&action).ok_or_else(|| {
        let message = format!("Unknown subscription action '{action}'");
        ApiError::invalid("unknown_action", message)
    })?;
    // The ID is parsed after the action, so that an unknown action is reported for any ID.
    let id = id.parse::<SubscriptionId>().map_err(|_| {
        let message = format!("Invalid URL: Cannot parse `{id}` to a `i64`");
        ApiError::with_status(StatusCode::BAD_REQUEST, "invalid_path", message)
    })?;
    let row = app.control.triggers.subscriptions.act(&app.tenant, id, action).await?;
    Ok(Json(status(row)))
}

/// Reads a subscription
#[utoipa::path(
    get,
    path = "/api/subscriptions/{id}",
    operation_id = "subscriptions_get",
    tag = "subscriptions",
    params(("id" = Id, Path)),
    responses((status = 200, body = SubscriptionStatus), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(id): Path<i64>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    let row = app.control.triggers.subscriptions.get(&app.tenant, SubscriptionId::new(id)).await?;
    Ok(Json(status(row)))
}

/// Lists subscriptions
///
/// Returns all subscriptions by ID, including deactivated ones.
#[utoipa::path(
    get,
    path = "/api/subscriptions",
    operation_id = "subscriptions_list",
    tag = "subscriptions",
    responses((status = 200, body = SubscriptionList), ErrorResponses),
)]
pub(crate) async fn list(Scoped(app): Scoped) -> Result<Json<SubscriptionList>, ApiError> {
    let rows = app.control.triggers.subscriptions.list(&app.tenant).await?;
    Ok(Json(SubscriptionList { subscriptions: rows.into_iter().map(status).collect() }))
}

fn status(row: SubscriptionRow) -> SubscriptionStatus {
    SubscriptionStatus {
        subscription_id: Id::text(row.id.get()),
        path: row.path,
        catalog_id: Id::text(row.catalog.get()),
        state: row.state.as_str().to_owned(),
        last_event_type: row.last_event,
        updated_at: Some(row.updated_at.with_offset()),
    }
}

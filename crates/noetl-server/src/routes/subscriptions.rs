//! Subscriptions: registering, moving, reading.

use axum::extract::State;
use axum::http::StatusCode;
use noetl_api::Id;
use noetl_api::subscriptions::{SubscribeRequest, SubscriptionList, SubscriptionStatus};
use noetl_model::SubscriptionId;
use noetl_store::{SubscriptionAction, SubscriptionRow};

use crate::app::App;
use crate::error::ApiError;
use crate::http::extract::{Json, Path};

/// Register a subscription
///
/// By the path of its document. One that is known and not deactivated is answered as it is.
pub(crate) async fn register(
    State(app): State<App>,
    Json(request): Json<SubscribeRequest>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    let row = app.control.subscriptions.register(&app.tenant, &request.path).await?;
    Ok(Json(status(row)))
}

/// Move a subscription
///
/// `activate`, `pause`, `resume`, `drain` or `deactivate`. A body is not looked at.
pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(String, String)>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    let action = SubscriptionAction::from_text(&action).ok_or_else(|| {
        let message = format!("Unknown subscription action '{action}'");
        ApiError::invalid("unknown_action", message)
    })?;
    // Only now: an action that does not exist is said of any id.
    let id = id.parse::<SubscriptionId>().map_err(|_| {
        let message = format!("Invalid URL: Cannot parse `{id}` to a `i64`");
        ApiError::refused(StatusCode::BAD_REQUEST, "invalid_path", message)
    })?;
    let row = app.control.subscriptions.act(&app.tenant, id, action).await?;
    Ok(Json(status(row)))
}

/// Read a subscription
pub(crate) async fn get(
    State(app): State<App>,
    Path(id): Path<i64>,
) -> Result<Json<SubscriptionStatus>, ApiError> {
    let row = app.control.subscriptions.get(&app.tenant, SubscriptionId::new(id)).await?;
    Ok(Json(status(row)))
}

/// List subscriptions
///
/// In the order of their ids; those that are over too.
pub(crate) async fn list(State(app): State<App>) -> Result<Json<SubscriptionList>, ApiError> {
    let rows = app.control.subscriptions.list(&app.tenant).await?;
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

//! Listeners: their settings for gateways, and the messages that this server receives itself. The
//! settings contain secrets, so their route requires the internal token.

pub(crate) mod receive;
pub(crate) mod verify;

use noetl_api::Id;
use noetl_api::ingress::{IngressDispatch, IngressVerify, IngressView};
use noetl_model::SubscriptionId;
use noetl_triggers::Listener;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path};
use crate::http::openapi::ErrorResponses;

/// Reads the settings of a listener
///
/// The first request registers the listener's subscription. The subscription's state and mode don't
/// affect the response.
#[utoipa::path(
    get,
    path = "/api/internal/ingress/{listener}",
    operation_id = "ingress_get",
    tag = "internal",
    params(("listener" = String, Path)),
    responses((status = 200, body = IngressView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(listener): Path<String>,
) -> Result<Json<IngressView>, ApiError> {
    let (found, subscription) = app.control.triggers.listeners.get(&app.tenant, &listener).await?;
    Ok(Json(view(found, subscription)))
}

fn view(listener: Listener, subscription: SubscriptionId) -> IngressView {
    IngressView {
        listener: listener.name,
        catalog_path: listener.path,
        source: listener.source,
        subscription_id: Id::text(subscription.get()),
        verify: IngressVerify {
            kind: listener.verify.kind.as_str().to_owned(),
            header: listener.verify.header,
            secret: listener.verify.secret,
            audience: listener.verify.audience,
            service_account: listener.verify.service_account,
        },
        dispatch: IngressDispatch {
            playbook: listener.playbook,
            payload_from: listener.payload_from,
            execution_pool: listener.execution_pool,
        },
        directives: listener.headers,
    }
}

//! What a gateway has to know of a listener, and what this server takes for one itself. The former
//! is behind the internal token: it hands out secrets.

pub(crate) mod receive;
pub(crate) mod verify;

use noetl_api::Id;
use noetl_api::ingress::{IngressDispatch, IngressVerify, IngressView};
use noetl_control::Listener;
use noetl_model::SubscriptionId;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, Path};

/// Read a listener
///
/// The first asking registers its subscription. Neither its state nor its mode is looked at.
#[utoipa::path(
    get,
    path = "/api/internal/ingress/{listener}",
    operation_id = "ingress_get",
    tag = "internal",
    params(("listener" = String, Path)),
    responses((status = 200, body = IngressView), Failures),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(listener): Path<String>,
) -> Result<Json<IngressView>, ApiError> {
    let (found, subscription) = app.control.listeners.get(&app.tenant, &listener).await?;
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

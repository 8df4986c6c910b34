//! Webhook listeners: configuration for gateways, and the response to received messages.

use std::fmt;

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Response of `GET /api/internal/ingress/{listener}`. Contains the listener's secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IngressView {
    /// Name of the listener.
    pub listener: String,
    /// Catalog path of the subscription document.
    pub catalog_path: String,
    /// Source type of the subscription.
    pub source: String,
    /// Subscription ID, as text. Parent of the executions that messages start.
    pub subscription_id: Id,
    /// Verification of the sender.
    pub verify: IngressVerify,
    /// Playbook that a message starts.
    pub dispatch: IngressDispatch,
    /// The document's `headers` block: the settings that message headers may override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directives: Option<Value>,
}

/// Verification of a message's sender. `Debug` output omits the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressVerify {
    /// Verification type: `hmac_sha256`, `bearer`, or `pubsub_oidc`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the signature header, in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Secret for `hmac_sha256` and `bearer`, in plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Required audience of the token, for `pubsub_oidc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Required service account of the token, for `pubsub_oidc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

impl fmt::Debug for IngressVerify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressVerify").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Playbook that a message starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressDispatch {
    /// Catalog path of the playbook.
    pub playbook: String,
    /// Part of the message whose fields are merged into the payload: `message.json`,
    /// `message.body`, or `message.attributes`.
    pub payload_from: String,
    /// Worker pool for the execution's commands. Default: `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
}

/// Response of `POST /ingress/{listener}` and `POST /ingress/{tenant}/{listener}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressReply {
    /// `accepted`, or `duplicate` if the message was received before.
    pub status: String,
    /// ID of the execution that the message started, as text. For a duplicate, the execution of the
    /// first message.
    pub execution_id: Id,
    /// ID of the subscription, as text.
    pub subscription_id: Id,
}

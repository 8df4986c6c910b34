//! What a gateway has to know of a listener.

use std::fmt;

use noetl_model::Value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The reply of `GET /api/internal/ingress/{listener}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IngressView {
    /// The listener's name.
    pub listener: String,
    /// The path of its subscription's document.
    pub catalog_path: String,
    /// Where its messages come from.
    pub source: String,
    /// Its subscription, as text: the parent of what messages start.
    pub subscription_id: Id,
    /// How senders are known.
    pub verify: IngressVerify,
    /// What a message starts.
    pub dispatch: IngressDispatch,
    /// What headers may decide, as the document has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directives: Option<Value>,
}

/// How senders are known. Printing it shows nothing of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressVerify {
    /// `hmac_sha256`, `bearer` or `pubsub_oidc`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The header of the signature, in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The secret itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whom the token is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Who signs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

impl fmt::Debug for IngressVerify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressVerify").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What a message starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressDispatch {
    /// The playbook's path.
    pub playbook: String,
    /// Which part of the message is laid out in the payload.
    pub payload_from: String,
    /// Which pool runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_pool: Option<String>,
}

/// The reply of `POST /ingress/{listener}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressReply {
    /// `accepted`, or `duplicate` when the message was taken before.
    pub status: String,
    /// The execution it is, as text.
    pub execution_id: Id,
    /// Its subscription, as text.
    pub subscription_id: Id,
}

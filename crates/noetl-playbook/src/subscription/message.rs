//! Messages, independent of how they arrive.

use std::collections::HashMap;

use bytes::Bytes;
use noetl_model::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Subscription;
use super::payload::BODY_DEPTH_MAX;

/// Headers that carry credentials. They are not written to event logs.
const CREDENTIAL_HEADERS: [&str; 4] =
    ["authorization", "cookie", "proxy-authorization", "x-session-token"];

/// Maximum length of a dedup key in bytes. Longer keys are replaced by their digest.
const KEY_MAX: usize = 256;

/// A message, fetched from a source or pushed by a sender.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Message ID, which is the default dedup key.
    pub id: String,
    pub body: Bytes,
    /// Headers in message order. Names may repeat.
    pub headers: Vec<(String, String)>,
    /// Attributes from the source itself. Some sources also repeat the headers here.
    pub attributes: Map,
    /// Origin of the message, such as the stream and its sequence number.
    pub metadata: Map,
    /// Identifier of this delivery at the source.
    pub ack_id: Option<String>,
}

/// Reasons a message can never start an execution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageRejection {
    /// The body is larger than the document allows.
    #[error("the message has {bytes} bytes; at most {most} are dispatched")]
    TooLarge { bytes: usize, most: u64 },
    /// The sender declares JSON, but the body is not.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// The body is not a Pub/Sub push message.
    #[error("the body is not a push message: {0}")]
    NotPushed(&'static str),
    /// The body could be written but not read back.
    #[error("the body nests more than {BODY_DEPTH_MAX} levels deep")]
    TooDeep,
    /// A part of the message contains NUL characters, which not every store supports.
    #[error("the {0} must not hold NUL characters")]
    Nul(&'static str),
}

impl MessageRejection {
    /// Returns the stable code of the rejection.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::NotJson(_) => "malformed_json",
            Self::NotPushed(_) => "not_a_push_message",
            Self::TooDeep => "too_deep",
            Self::Nul(_) => "nul_character",
        }
    }
}

/// Returns the headers by lower-case name. The last of several with the same name wins.
pub fn headers_by_name(headers: &[(String, String)]) -> HashMap<String, &str> {
    headers.iter().map(|(name, value)| (name.to_lowercase(), value.as_str())).collect()
}

/// Returns the headers that may be written to an event log: those without credentials. Names are in
/// lower case unless the document disables it.
pub fn logged_headers(subscription: &Subscription, headers: &[(String, String)]) -> Map {
    let is_lowered = subscription.headers.normalize;
    let logged = headers.iter().filter_map(|(name, value)| {
        let lower = name.to_lowercase();
        let is_logged = !is_credential(subscription, &lower);
        let name = if is_lowered { lower } else { name.clone() };
        is_logged.then(|| (name, Value::from(value.as_str())))
    });
    logged.collect()
}

/// Returns `true` if the header carries a credential or a signature. `name` is in lower case.
pub(super) fn is_credential(subscription: &Subscription, name: &str) -> bool {
    let signature = subscription.ingress.as_ref().and_then(|it| it.verify.header.as_deref());
    CREDENTIAL_HEADERS.contains(&name)
        || signature.is_some_and(|header| header.trim().eq_ignore_ascii_case(name))
}

/// Returns a dedup key that every store accepts. Hashes keys that are empty, too long, or contain
/// control characters.
pub fn dedup_key(key: &str) -> String {
    if key.len() <= KEY_MAX && !key.contains(char::is_control) && !key.is_empty() {
        return key.to_owned();
    }
    digest(key.as_bytes())
}

/// Returns the SHA-256 digest in hex, with a prefix that names the algorithm.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

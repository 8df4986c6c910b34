//! Delivery of messages to a push subscription, and authentication of senders.

use super::VerifyKind;

/// Settings of the gateway for a push subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingress {
    /// Absolute path of the gateway's route.
    pub gateway_path: String,
    /// Method and parameters of sender authentication.
    pub verify: Verify,
    /// Maximum message size in bytes. The server's own limit also applies.
    pub max_bytes: Option<u64>,
}

impl Ingress {
    /// Returns the name of the listener: the last segment of the path.
    pub fn listener(&self) -> &str {
        listener(&self.gateway_path).unwrap_or_default()
    }
}

/// Returns the last segment of a gateway path, ignoring trailing slashes, or `None` if there is
/// none.
pub fn listener(gateway_path: &str) -> Option<&str> {
    let segment = gateway_path.trim_end_matches('/').rsplit('/').next();
    segment.filter(|segment| !segment.is_empty())
}

/// Code of the warning that another subscription has the same listener. A single document cannot
/// reveal it; code that sees all documents reports it.
pub const SHARED_LISTENER: &str = "W115";

/// Method and parameters of sender authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    pub kind: VerifyKind,
    /// Name of the header that contains the signature.
    pub header: Option<String>,
    /// Name of the credential that contains the secret.
    pub secret: Option<String>,
    /// Required audience of the token.
    pub audience: Option<String>,
    pub service_account: Option<String>,
    /// Text before a signature, in addition to [`SIGNATURE_PREFIX`].
    pub prefix: Option<String>,
    /// Signature timestamp settings. `None` if signatures don't include a timestamp.
    pub timestamp: Option<SignedAt>,
    /// Required issuer of the token. Default: [`PUSH_ISSUER`].
    pub issuer: Option<String>,
}

/// Timestamp of a signature. The signature covers it, to prevent replay attacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedAt {
    /// Name of the header that contains the timestamp, in Unix seconds.
    pub header: String,
    /// Maximum difference from the server's clock in seconds. Default: [`TOLERANCE_SECS`].
    pub tolerance_secs: u64,
    /// Form of the signed text, with [`TIMESTAMP_MARK`] and [`BODY_MARK`]. Default: [`SIGNED`].
    pub signed: String,
}

/// Prefix that may precede any signature.
pub const SIGNATURE_PREFIX: &str = "sha256=";

/// Default issuer of tokens from push services.
pub const PUSH_ISSUER: &str = "https://accounts.google.com";

/// Default maximum difference between a signature's timestamp and the server's clock in seconds.
pub const TOLERANCE_SECS: u64 = 300;

/// Maximum configurable tolerance in seconds: one day.
pub const TOLERANCE_SECS_MAX: u64 = 86_400;

/// Position of the timestamp in the signed text.
pub const TIMESTAMP_MARK: &str = "{timestamp}";

/// Position of the body in the signed text.
pub const BODY_MARK: &str = "{body}";

/// Default form of the signed text.
pub const SIGNED: &str = "{timestamp}.{body}";

/// Returns `true` if a text contains the timestamp and the body exactly once each.
pub fn is_signed_form(text: &str) -> bool {
    [TIMESTAMP_MARK, BODY_MARK].iter().all(|mark| text.matches(mark).count() == 1)
}

/// Returns `true` if an issuer can be queried: over TLS, or on this machine.
pub fn is_issuer(text: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let rest = local.iter().find_map(|start| text.strip_prefix(start));
    let is_local = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    is_local || text.strip_prefix("https://").is_some_and(|host| !host.is_empty())
}

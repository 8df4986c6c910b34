//! How messages are handed to a subscription, and how senders are known.

use super::VerifyKind;

/// How messages are handed to a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingress {
    /// The path of the gateway's route, from the root.
    pub gateway_path: String,
    /// How senders are known.
    pub verify: Verify,
    /// The largest message, in bytes. What the server takes at all bounds it.
    pub max_bytes: Option<u64>,
}

impl Ingress {
    /// The name of the listener: the last segment of the path.
    pub fn listener(&self) -> &str {
        listener(&self.gateway_path).unwrap_or_default()
    }
}

/// The last segment of a gateway path, whatever slashes follow it; none when there is none.
pub fn listener(gateway_path: &str) -> Option<&str> {
    let segment = gateway_path.trim_end_matches('/').rsplit('/').next();
    segment.filter(|segment| !segment.is_empty())
}

/// The code of the warning that another subscription has the same listener. One document does not
/// show it; whoever sees all of them says it.
pub const SHARED_LISTENER: &str = "W115";

/// How senders are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    pub kind: VerifyKind,
    /// The header of the signature.
    pub header: Option<String>,
    /// The credential that holds the secret.
    pub secret: Option<String>,
    /// Whom the token is for.
    pub audience: Option<String>,
    pub service_account: Option<String>,
    /// What stands before a signature, besides [`SIGNATURE_PREFIX`].
    pub prefix: Option<String>,
    /// When a signature was made, and until when it counts.
    pub timestamp: Option<SignedAt>,
    /// Who vouches for the identity. Default: [`PUSH_ISSUER`].
    pub issuer: Option<String>,
}

/// When a signature was made: part of what is signed, so that nobody can send it again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedAt {
    /// The header of the time, in seconds since 1970.
    pub header: String,
    /// By how many seconds it may differ from ours. Default: [`TOLERANCE_SECS`].
    pub tolerance_secs: u64,
    /// What is signed, with [`TIMESTAMP_MARK`] and [`BODY_MARK`]. Default: [`SIGNED`].
    pub signed: String,
}

/// What may stand before any signature.
pub const SIGNATURE_PREFIX: &str = "sha256=";

/// Who vouches for push services unless another is named.
pub const PUSH_ISSUER: &str = "https://accounts.google.com";

/// By how many seconds the time of a signature may differ from ours.
pub const TOLERANCE_SECS: u64 = 300;

/// The most that may be said: a day.
pub const TOLERANCE_SECS_MAX: u64 = 86_400;

/// Where the time stands in what is signed.
pub const TIMESTAMP_MARK: &str = "{timestamp}";

/// Where the body stands in what is signed.
pub const BODY_MARK: &str = "{body}";

/// What is signed when a time is.
pub const SIGNED: &str = "{timestamp}.{body}";

/// Whether a text says what is signed: the time and the body, each once.
pub fn is_signed_form(text: &str) -> bool {
    [TIMESTAMP_MARK, BODY_MARK].iter().all(|mark| text.matches(mark).count() == 1)
}

/// Whether an issuer can be asked: over TLS, or on this machine.
pub fn is_issuer(text: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let rest = local.iter().find_map(|start| text.strip_prefix(start));
    let is_local = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    is_local || text.strip_prefix("https://").is_some_and(|host| !host.is_empty())
}

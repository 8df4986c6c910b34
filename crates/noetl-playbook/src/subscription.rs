//! Subscription documents: a message source and the playbook that each message starts.
//!
//! [`crate::check_subscription`] decodes a document into this form. Settings that only a runtime
//! uses are stored as written, so that no information is lost.

mod directives;
mod ingress;
mod message;
mod payload;
mod push;
mod start;

use std::time::Duration;

use serde_json::{Map, Value};

pub use directives::{AppliedDirective, DIRECTIVES_APPLIED, Directives};
pub use ingress::{
    BODY_MARK, Ingress, PUSH_ISSUER, SHARED_LISTENER, SIGNATURE_PREFIX, SIGNED, SignedAt,
    TIMESTAMP_MARK, TOLERANCE_SECS, TOLERANCE_SECS_MAX, Verify, is_issuer, is_signed_form,
    listener,
};
pub use message::{Message, MessageRejection, dedup_key, headers_by_name, logged_headers};
pub use push::{PushContext, PushRequest, PushedMessage};
pub use start::{DEDUP_WINDOW_MAX, MessageContext, MessageDedup, MessageStart, start_for_message};

#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Name of the subscription. Defaults to the path.
    pub name: String,
    /// Catalog path of the document.
    pub path: String,
    /// Kind of the message source.
    pub source: Source,
    /// Whether a runtime fetches messages or a gateway receives them.
    pub mode: Mode,
    pub activation: Activation,
    /// Name of the credential for the source.
    pub auth: Option<String>,
    /// Connection settings of the source, as written: `url`, `stream`, `topic`, …
    pub connection: Map<String, Value>,
    /// Runtime settings: location, and parameters of fetches.
    pub runtime: RuntimeSpec,
    /// Settings of the gateway. Present if and only if the mode is `push`.
    pub ingress: Option<Ingress>,
    /// Playbook that a message starts.
    pub dispatch: Dispatch,
    pub dedup: DedupSpec,
    /// Concurrency, rate, and size limits.
    pub limits: SubscriptionLimits,
    /// Settings that message headers may control.
    pub headers: Headers,
    /// Buffering of messages while executions cannot start.
    pub spool: Option<Spool>,
}

/// Defines an enum of words with their text form.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {$(
            $(#[$word_doc])*
            $word,
        )*}

        impl $name {
            /// All values as written in documents.
            pub const WORDS: &'static [&'static str] = &[$($text),*];

            /// Returns the value as written in documents.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }

            /// Parses the value as written in documents.
            pub fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$word),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Kind of a message source.
    Source {
        Nats = "nats",
        Pubsub = "pubsub",
        Kafka = "kafka",
        /// HTTP requests received by a gateway.
        Webhook = "webhook",
        /// Rows of a table, or notifications, of a Postgres database.
        Postgres = "postgres",
        Redis = "redis",
        /// Topics of an MQTT broker.
        Mqtt = "mqtt",
    }
}

words! {
    Mode {
        /// A runtime fetches messages from the source.
        Pull = "pull",
        /// A gateway receives messages from the sender.
        Push = "push",
    }
}

words! {
    /// Time at which a runtime fetches messages.
    Activation {
        Continuous = "continuous",
        /// Only while activated from outside.
        Scheduled = "scheduled",
    }
}

words! {
    /// Method by which a gateway authenticates senders.
    VerifyKind {
        /// HMAC-SHA256 signature of the body.
        HmacSha256 = "hmac_sha256",
        Bearer = "bearer",
        /// OIDC identity token of the push service.
        PubsubOidc = "pubsub_oidc",
    }
}

words! {
    /// Handling of messages while executions cannot start.
    SpoolMode {
        /// Leaves messages at the source.
        Off = "off",
        /// Stores messages in the spool and acks them.
        BufferAndAck = "buffer_and_ack",
        /// Leaves messages at a source that retains unacked messages. For other sources, stores
        /// them in the spool.
        Hybrid = "hybrid",
    }
}

words! {
    SpoolBackend {
        NatsObject = "nats_object",
        LocalDisk = "local_disk",
        Gcs = "gcs",
        /// Amazon S3 or S3-compatible bucket.
        S3 = "s3",
    }
}

words! {
    /// Order in which spooled messages are replayed.
    Ordering {
        /// Order of arrival across all messages.
        Global = "global",
        /// Order of arrival per key.
        PerKey = "per_key",
        /// Order of replay is unspecified.
        None = "none",
    }
}

words! {
    /// Handling of new messages while the spool is full.
    OnFull {
        /// Stops acking messages, so that they stay at the source.
        StopAcking = "stop_acking",
        /// Dead-letters messages that don't fit.
        DropToDlq = "drop_to_dlq",
        /// Stores messages beyond the limit and only raises an alert.
        AlertOnly = "alert_only",
    }
}

words! {
    /// Order of spooled and new messages after recovery.
    OnRecovery {
        /// Replays spooled messages before new ones.
        OrderedThenLive = "ordered_then_live",
        /// Replays spooled messages among new ones.
        Interleave = "interleave",
    }
}

words! {
    /// Propagation of a message's trace context.
    Propagate {
        /// Uses the W3C Trace Context headers.
        W3c = "w3c",
        None = "none",
    }
}

words! {
    /// Handling of a message's headers in the payload.
    Passthrough {
        Data = "data",
        /// Omits them, so that `message.headers` is empty.
        None = "none",
    }
}

/// Runtime settings of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeSpec {
    pub target: Option<String>,
    /// Worker pool that runs the subscription.
    pub pool: Option<String>,
    /// Maximum number of messages per fetch.
    pub batch: Option<u64>,
    /// Maximum wait of a fetch in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Playbook that a message starts, and its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    pub playbook: String,
    /// Part of the message that becomes the payload. Default: [`PAYLOAD_FROM`].
    pub payload_from: String,
    /// Worker pool of started executions.
    pub execution_pool: Option<String>,
    /// Whether messages fetched together are dispatched in a single request.
    pub batch_dispatch: bool,
    /// Maximum number of messages per request. Default: 100.
    pub batch_max: u64,
}

/// Default part of a message that becomes the payload: its decoded body.
pub const PAYLOAD_FROM: &str = "message.json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DedupSpec {
    /// Whether equal dedup keys start one execution. `None` if the document does not set it: then
    /// only repeated signatures of pushed messages are duplicates.
    pub enabled: Option<bool>,
    /// Deduplication window in seconds. Default: 300.
    pub window_secs: u64,
}

impl Default for DedupSpec {
    fn default() -> Self {
        Self { enabled: None, window_secs: 300 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SubscriptionLimits {
    /// Maximum number of messages in flight.
    pub max_in_flight: Option<u64>,
    /// Maximum number of messages dispatched per second.
    pub max_dispatch_per_sec: Option<f64>,
    /// Number of failures after which a message is dead-lettered.
    pub max_failures: Option<u64>,
    /// Maximum size of a message body in bytes. Larger messages start no execution.
    pub max_message_bytes: Option<u64>,
}

/// Default maximum size of a message body in bytes: 4 MiB.
const MESSAGE_BYTES: u64 = 4 << 20;

/// Upper bound of `max_message_bytes`: 16 MiB, so that the whole payload fits into one request.
const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// Maximum size in bytes of an envelope of Pub/Sub without the message, which is Base64: up to 100
/// attributes with keys of 256 and values of 1,024 bytes, and IDs.
const ENVELOPE_BYTES: u64 = 256 << 10;

impl Subscription {
    /// Returns the maximum size of a message body in bytes. For pushed messages, `ingress.max_bytes`
    /// is a further limit, and the default of `limits.max_message_bytes`.
    pub fn message_bytes_max(&self) -> u64 {
        let received = self.ingress.as_ref().and_then(|ingress| ingress.max_bytes);
        let started = self.limits.max_message_bytes.map(|most| most.min(MESSAGE_BYTES_MAX));
        [received, started].into_iter().flatten().min().unwrap_or(MESSAGE_BYTES)
    }

    /// Returns the maximum size of a push request in bytes. A push service sends the message in an
    /// envelope that is larger than the message.
    pub fn request_bytes_max(&self) -> u64 {
        let message = self.message_bytes_max();
        let request = match self.source {
            Source::Pubsub => message.saturating_add(message / 3).saturating_add(ENVELOPE_BYTES),
            _ => message,
        };
        let received = self.ingress.as_ref().and_then(|ingress| ingress.max_bytes);
        received.map_or(request, |received| received.min(request))
    }

    /// Returns `true` if headers may choose the message ID and directives. A signature covers the
    /// body and the signed time only, so a replay can carry other headers; with signatures, the
    /// document has to allow it (`headers: {unsigned: true}`).
    pub fn trusts_headers(&self) -> bool {
        let verify = self.ingress.as_ref().map(|ingress| ingress.verify.kind);
        verify != Some(VerifyKind::HmacSha256) || self.headers.unsigned
    }
}

impl DedupSpec {
    /// Returns the deduplication window, at most [`DEDUP_WINDOW_MAX`].
    pub fn window(&self) -> Duration {
        Duration::from_secs(self.window_secs).min(DEDUP_WINDOW_MAX)
    }
}

/// Settings that message headers may control.
#[derive(Debug, Clone, PartialEq)]
pub struct Headers {
    /// Whether header names are converted to lower case. Default: `true`.
    pub normalize: bool,
    /// Settings that individual headers control.
    pub directives: Vec<Directive>,
    /// Propagation of trace context. Default: W3C Trace Context headers.
    pub propagate: Propagate,
    /// Baggage keys to propagate with the trace context.
    pub baggage_allowlist: Vec<String>,
    /// Whether the payload contains the headers. Default: `data`.
    pub passthrough: Passthrough,
    /// Whether headers not covered by the message's signature may control settings. Default:
    /// `false`.
    pub unsigned: bool,
    /// The whole section as written, for the gateway. `None` if it is missing.
    pub written: Option<Value>,
}

/// Setting that a header controls.
#[derive(Debug, Clone, PartialEq)]
pub struct Directive {
    pub header: String,
    pub controls: String,
    /// Header values that take effect.
    pub allowed: Vec<String>,
    /// Replacement for each header value.
    pub map: Map<String, Value>,
}

/// Spool settings: buffering of messages while executions cannot start.
#[derive(Debug, Clone, PartialEq)]
pub struct Spool {
    /// Handling of messages while executions cannot start.
    pub mode: SpoolMode,
    /// Storage of the spool. Present unless the mode is `off`.
    pub backend: Option<SpoolBackend>,
    /// Bucket of the storage, for backends other than `local_disk`.
    pub bucket: Option<String>,
    /// Directory of the spool, for the backend `local_disk`.
    pub path: Option<String>,
    /// Name of the credential for the storage.
    pub credential: Option<String>,
    /// Order of replay. Default: `global`.
    pub ordering: Ordering,
    /// Name of the header, attribute, metadata field, or body field that contains the ordering key
    /// of a message.
    pub ordering_key: Option<String>,
    /// Circuit breaker for dispatching.
    pub circuit: Circuit,
    pub retention: SpoolRetention,
    /// Settings of the replay after recovery.
    pub drain: Drain,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Circuit {
    /// Number of consecutive failures that open the circuit.
    pub trip_after: Option<u64>,
    /// Delay before the first probe in milliseconds.
    pub probe_after_ms: Option<u64>,
    /// Interval between probes in milliseconds.
    pub probe_interval_ms: Option<u64>,
    /// Other services that must be available, as written.
    pub downstream: Vec<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolRetention {
    pub max_age_hours: Option<u64>,
    /// Maximum total size in bytes.
    pub max_bytes: Option<u64>,
    /// Handling of new messages while the spool is full.
    pub on_full: Option<OnFull>,
}

/// Replay settings of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Drain {
    pub rate_per_sec: Option<f64>,
    /// Maximum number of replay attempts per message.
    pub max_replay_attempts: Option<u64>,
    /// Order of spooled and new messages.
    pub on_recovery: Option<OnRecovery>,
}

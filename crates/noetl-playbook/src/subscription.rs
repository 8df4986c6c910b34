//! Subscription documents: where messages come from and what each of them starts.
//!
//! A document is read as a whole by [`crate::check_subscription`]; this is what it means. What only
//! a runtime acts on is kept as it is written, so that nothing an author says is lost on the way.

mod ingress;

use serde_json::{Map, Value};

pub use ingress::{
    BODY_MARK, Ingress, PUSH_ISSUER, SHARED_LISTENER, SIGNATURE_PREFIX, SIGNED, SignedAt,
    TIMESTAMP_MARK, TOLERANCE_SECS, TOLERANCE_SECS_MAX, Verify, is_issuer, is_signed_form,
    listener,
};

/// A checked subscription document.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// What it is called.
    pub name: String,
    /// Where the catalog keeps it.
    pub path: String,
    /// Where its messages come from.
    pub source: Source,
    /// Whether it fetches messages or is handed them.
    pub mode: Mode,
    pub activation: Activation,
    /// The credential for its source.
    pub auth: Option<String>,
    /// How its source is reached, as written: `url`, `stream`, `topic`, …
    pub connection: Map<String, Value>,
    /// Where it runs and how it fetches.
    pub runtime: Runtime,
    /// How messages are handed to it; present exactly when they are.
    pub ingress: Option<Ingress>,
    /// What a message starts.
    pub dispatch: Dispatch,
    /// Whether repeats of a message are known.
    pub dedup: Dedup,
    /// How much may go on at once.
    pub limits: Limits,
    /// What headers may decide.
    pub headers: Headers,
    /// What happens while nothing can be started.
    pub spool: Option<Spool>,
}

/// Makes an enum of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {$(
            $(#[$word_doc])*
            $word,
        )*}

        impl $name {
            /// Every word, as it is written.
            pub const WORDS: &'static [&'static str] = &[$($text),*];

            /// As it is written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }

            /// What is written so.
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
    /// Where messages come from.
    Source {
        Nats = "nats",
        Pubsub = "pubsub",
        Kafka = "kafka",
        /// HTTP requests.
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
        /// A runtime fetches messages.
        Pull = "pull",
        /// A gateway is handed them.
        Push = "push",
    }
}

words! {
    /// When a runtime fetches.
    Activation {
        Continuous = "continuous",
        /// When it is started to.
        Scheduled = "scheduled",
    }
}

words! {
    /// How a gateway knows that a message comes from its sender.
    VerifyKind {
        /// By a signature of the body.
        HmacSha256 = "hmac_sha256",
        Bearer = "bearer",
        /// By an identity token of the push service.
        PubsubOidc = "pubsub_oidc",
    }
}

words! {
    /// What happens to messages while nothing can be started.
    SpoolMode {
        /// They stay at their source.
        Off = "off",
        /// They are kept and acknowledged.
        BufferAndAck = "buffer_and_ack",
        /// They stay as long as the source keeps them, then they are kept.
        Hybrid = "hybrid",
    }
}

words! {
    /// Where spooled messages are kept.
    SpoolBackend {
        /// In a NATS object bucket.
        NatsObject = "nats_object",
        /// In a directory.
        LocalDisk = "local_disk",
        /// In a Google Cloud bucket.
        Gcs = "gcs",
        /// In an S3 bucket.
        S3 = "s3",
    }
}

words! {
    /// In which order spooled messages are replayed.
    Ordering {
        /// In the order they came.
        Global = "global",
        /// Those of one key in the order they came.
        PerKey = "per_key",
        /// In any.
        None = "none",
    }
}

words! {
    /// What happens when the spool is full.
    OnFull {
        /// Nothing is acknowledged any more.
        StopAcking = "stop_acking",
        /// Messages go to the dead letters.
        DropToDlq = "drop_to_dlq",
        /// Somebody is told.
        AlertOnly = "alert_only",
    }
}

words! {
    /// How the spool is emptied.
    OnRecovery {
        /// First what was kept, then what is new.
        OrderedThenLive = "ordered_then_live",
        /// Both at once.
        Interleave = "interleave",
    }
}

words! {
    /// How the trace of a message goes on.
    Propagate {
        /// By the headers of W3C Trace Context.
        W3c = "w3c",
        /// Not at all.
        None = "none",
    }
}

/// Where a subscription runs, and how it fetches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runtime {
    /// What kind of place.
    pub target: Option<String>,
    /// Which pool of workers.
    pub pool: Option<String>,
    /// Messages fetched at once.
    pub batch: Option<u64>,
    /// How long a fetch waits.
    pub timeout_ms: Option<u64>,
}

/// What a message starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    pub playbook: String,
    /// Which part of the message is laid out in the payload. Default: [`PAYLOAD_FROM`].
    pub payload_from: String,
    /// Which pool runs it.
    pub execution_pool: Option<String>,
    /// Whether messages that were fetched together are started together.
    pub batch_dispatch: bool,
    /// How many at most. Default: 100.
    pub batch_max: u64,
}

/// The part of a message that is taken unless another is named: its decoded body.
pub const PAYLOAD_FROM: &str = "message.json";

/// Whether repeats of a message are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dedup {
    /// Whether they are. Default: no.
    pub enabled: bool,
    /// For how long. Default: 300.
    pub window_secs: u64,
}

impl Default for Dedup {
    fn default() -> Self {
        Self { enabled: false, window_secs: 300 }
    }
}

/// How much may go on at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Messages that are being dealt with.
    pub max_in_flight: Option<u64>,
    /// Messages begun within a second.
    pub max_dispatch_per_sec: Option<f64>,
    /// Failures of one message after which it is put aside.
    pub max_failures: Option<u64>,
    /// Bytes of a message's body; a larger one is put aside.
    pub max_message_bytes: Option<u64>,
}

/// What headers may decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Headers {
    /// Whether their names are written in lower case. Default: yes.
    pub normalize: bool,
    /// What each may decide.
    pub directives: Vec<Directive>,
    /// How traces go on. Default: as the headers of W3C Trace Context say.
    pub propagate: Propagate,
    /// Which baggage goes on with them.
    pub baggage_allowlist: Vec<String>,
    /// Where the headers themselves go.
    pub passthrough: Option<String>,
    /// Whether headers decide that the signature of a message does not cover. Default: no.
    pub unsigned: bool,
    /// All of it as written, for the gateway; nothing when there is no such section.
    pub written: Option<Value>,
}

/// What one header may decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Directive {
    pub header: String,
    pub controls: String,
    /// The values that count.
    pub allowed: Vec<String>,
    /// What a value stands for.
    pub map: Map<String, Value>,
}

/// What happens to messages while nothing can be started.
#[derive(Debug, Clone, PartialEq)]
pub struct Spool {
    /// What happens to them.
    pub mode: SpoolMode,
    /// Where they are kept.
    pub backend: Option<SpoolBackend>,
    /// In which bucket.
    pub bucket: Option<String>,
    /// In which directory.
    pub path: Option<String>,
    /// The credential for it.
    pub credential: Option<String>,
    /// In which order they are replayed. Default: in the order they came.
    pub ordering: Ordering,
    /// What names the key of a message.
    pub ordering_key: Option<String>,
    /// When starting is given up for a while.
    pub circuit: Circuit,
    /// How much is kept.
    pub retention: SpoolRetention,
    /// How it is emptied.
    pub drain: Drain,
}

/// When starting is given up for a while.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Circuit {
    /// After how many failures in a row.
    pub trip_after: Option<u64>,
    /// How long until the first probe.
    pub probe_after_ms: Option<u64>,
    /// How long between two.
    pub probe_interval_ms: Option<u64>,
    /// What else has to be there, as written.
    pub downstream: Vec<Value>,
}

/// How much a spool keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpoolRetention {
    /// For how long.
    pub max_age_hours: Option<u64>,
    /// How much of it.
    pub max_bytes: Option<u64>,
    /// What happens when it is full.
    pub on_full: Option<OnFull>,
}

/// How a spool is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Drain {
    pub rate_per_sec: Option<f64>,
    /// How often one message is tried.
    pub max_replay_attempts: Option<u64>,
    /// In which order with what is new.
    pub on_recovery: Option<OnRecovery>,
}

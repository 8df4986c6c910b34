//! The services of the control plane, over the store's traits.
//!
//! The [`journal`] is the only writer of the log: it decides inputs in batches and commits each
//! batch in one transaction. [`Executions`] and [`Catalog`] are what programs call; [`local`]
//! hands commands to a worker in this process. Nothing here names a database, a bus or a route.

mod cache;
mod catalog;
mod credentials;
mod dispatch;
mod due;
mod executions;
mod identity;
mod ids;
mod intake;
pub mod journal;
mod listeners;
pub mod local;
mod logs;
mod look;
pub mod metrics;
mod notices;
mod once;
mod options;
pub mod outbox;
mod projections;
mod publishing;
mod recovery;
mod redaction;
mod relay;
mod replay;
mod reports;
mod results;
mod retention;
mod sealing;
mod service;
mod snapshots;
mod stream_metrics;
mod subscriptions;
mod tailer;
mod tokens;
mod verify;
mod watch;
mod why;

pub use catalog::{Catalog, PlaybookError, RegisterError};
pub use credentials::{CredentialError, CredentialRequest, Credentials, OpenCredential};
pub use executions::{
    CLEANED_MAX, Executions, ForkError, ForkRequest, Forked, RetryRequest, StartError,
    StartRequest, Started,
};
pub use identity::IdentityError;
pub use intake::{Intake, Taken};
pub use journal::{Accepted, Journal, SubmitError};
pub use listeners::{Listener, ListenerError, ListenerVerify, Listeners};
pub use local::{Assignment, Ended, LOCAL_WORKER, LoadError, LocalCommands};
pub use logs::{LINES_MAX, LogError, LogLines};
pub use metrics::Metrics;
pub use noetl_engine::Caps;
pub use noetl_store::LogStream;
pub use notices::{Notices, Notifier};
pub use once::{Once, StartedOnce, Starts, WINDOW_MAX};
pub use options::Options;
pub use outbox::Outgoing;
pub use projections::{Projected, Projections};
pub use publishing::{Publishing, PublishingOptions};
pub use redaction::{
    LENGTH_MIN, Mark, Redaction, Secrets, mark, marks_in, short_fields, unmark, unmark_failure,
};
pub use replay::{
    Advanced, ORGANIZATION, PayloadLabel, PayloadResolution, Payloads, PayloadsSummary, Replay,
    ReplayRequest, Replayed, Resolution,
};
pub use reports::{Report, ReportError, Reports, is_event_type};
pub use retention::{PurgeError, Purged, purge};
pub use sealing::{EncryptionKey, KEY_VARIABLE, KeyError, SealError};
pub use service::{Control, OpenError};
pub use subscriptions::{SubscriptionError, Subscriptions};
pub use tokens::{Holder, Role, TokenError, TokenRequest, Tokens, UnknownRole};
pub use verify::{Problem, Verified, verify};
pub use watch::{Follow, Watch};
pub use why::{Ending, Wait, Why};

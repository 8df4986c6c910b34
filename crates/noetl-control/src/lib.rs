//! Services of the control plane, built on the traits of `noetl-store`.
//!
//! The [`journal`] is the only writer of event logs: it decides inputs in batches and commits each
//! batch in one transaction. Programs call [`Executions`] and [`Catalog`]; [`local`] assigns
//! commands to the worker in this process. No module depends on a particular database, bus, or HTTP
//! route.

mod administration;
mod announcing;
mod approvals;
mod audit;
mod binding;
mod cache;
mod callbacks;
mod catalog;
mod claiming;
mod content;
mod credentials;
mod dead_letters;
mod dispatch;
mod due;
mod executions;
mod grants;
mod identity;
mod ids;
mod intake;
pub mod journal;
mod keychain;
mod leasing;
mod listeners;
pub mod local;
mod logs;
mod look;
mod lost_reports;
pub mod lower;
pub mod metrics;
mod notices;
mod objects;
mod once;
mod options;
pub mod outbox;
mod overview;
mod placeholders;
mod projections;
mod publishing;
mod quotas;
mod rates;
mod recovery;
mod redaction;
mod relay;
mod replay;
mod reports;
mod results;
mod retention;
mod rotation;
mod schedules;
mod sealing;
mod service;
mod snapshots;
mod stored_results;
mod stream_metrics;
mod stretches;
mod subscription_metrics;
mod subscriptions;
mod system;
mod tailer;
mod tokens;
mod traces;
mod variables;
mod verify;
mod watch;
mod why;
mod worker_access;
mod worker_seal;
mod workers;

pub use administration::{Administration, DirectTokens};
pub use announcing::{Announcing, AnnouncingOptions, COMMAND_STREAM, readers_of};
pub use approvals::{Approval, Approvals, Load, WorkerLoad};
pub use audit::{Asking, AuditCheck, Given, SecretUses, verify_audit};
pub use binding::{Resealed, verify_sealed};
pub use callbacks::{CallbackError, Callbacks, Called};
pub use catalog::{Catalog, Checkup, PlaybookError, RegisterError, ReplaceError};
pub use claiming::{ClaimError, Claimed, Claims};
pub use content::{CONTENT_MAX, Content, ContentError, Upload};
pub use credentials::{
    CredentialError, CredentialRequest, Credentials, OpenCredential,
    Resolved as ResolvedPlaceholder,
};
pub use dead_letters::{DeadLetter, DeadLetterError, DeadLetters};
pub use executions::{
    CLEANED_MAX, Executions, ForkError, ForkRequest, ForkVersion, Forked, RetryRequest, StartError,
    StartRequest, Started,
};
pub use grants::{GrantError, GrantRequest, Grants, covers};
pub use identity::IdentityError;
pub use intake::{Intake, Taken, WrongRow, check_depth, check_type, read_row};
pub use journal::{Accepted, Elsewhere, Journal, SubmitError};
pub use keychain::settings as keychain_settings;
pub use keychain::{KeychainFound, KeychainPlace, KeychainRequest, Keychains, Revealed};
pub use leasing::{BATCH_MAX, LEASE, LeaseError, LeaseRequest, Leased, Leasing, Renewed, WAIT_MAX};
pub use listeners::{
    Dedup, Ingress, Listener, ListenerError, ListenerVerify, Listeners, Message, MessageError,
    ReceiveError, TakenIn,
};
pub use local::{Assignment, Ended, LOCAL_WORKER, LoadError, LocalCommands};
pub use logs::{LINES_MAX, LogError, LogLines};
pub use metrics::Metrics;
pub use noetl_engine::Caps;
pub use noetl_store::LogStream;
pub use notices::{Notices, Notifier};
pub use objects::{ObjectError, Objects, Suite};
pub use once::{Once, StartedOnce, Starts, WINDOW_MAX};
pub use options::Options;
pub use outbox::Outgoing;
pub use overview::{Overview, Stats};
pub use projections::{Projected, Projections};
pub use publishing::{Publishing, PublishingOptions};
pub use quotas::{OverQuota, Quota, QuotaSettings, QuotaSettingsError, Quotas};
pub use rates::Rates;
pub use redaction::reveal;
pub use redaction::{LENGTH_MIN, Mint, Redaction, Secrets, short_fields};
pub use replay::{
    Advanced, ORGANIZATION, PayloadLabel, PayloadResolution, Payloads, PayloadsSummary, Replay,
    ReplayRequest, Replayed, Resolution,
};
pub use reports::{End, EndTaken, Repeated, Report, ReportError, Reports, is_event_type};
pub use results::{INLINE_MAX, is_small, small_fields};
pub use retention::{PurgeError, Purged, purge};
pub use rotation::{KeyStatus, KeyTally, Keys, Rotated};
pub use schedules::{ScheduleError, ScheduleWanted, Schedules};
pub use sealing::{
    EncryptionKey, KEY_VARIABLE, KEY_VERSION_VARIABLE, KeyError, PREVIOUS_KEY_VARIABLE, SealError,
};
pub use service::{Control, OpenError};
pub use stored_results::{ResolveError, Resolved, ResultRequest, StoredResults, execution_in};
pub use stretches::{Stretch, Stretches};
pub use subscription_metrics::{MessageCounts, SubscriptionMetrics};
pub use subscriptions::{SubscriptionError, SubscriptionWhy, Subscriptions};
pub use system::{SystemReaders, SystemReading};
pub use tokens::{
    BELIEVED as TOKEN_BELIEVED, Holder, Role, TokenError, TokenRequest, Tokens, UnknownRole,
    random_text,
};
pub use traces::{Received, TraceOf, Traces};
pub use variables::{KeepError, Variables};
pub use verify::{Problem, Verified, verify};
pub use watch::{Follow, Watch};
pub use why::{Ending, Wait, Why};
pub use worker_access::{CredentialHolder, WorkerAccess, WorkerBinding};
pub use worker_seal::{SEAL_ALGORITHM, SEAL_VERSION, WorkerKey, WorkerKeyError, WorkerSeal};
pub use workers::{Registration, Scope, WorkerError, Workers};

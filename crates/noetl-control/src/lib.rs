//! Services of the control plane, built on the traits of `noetl-store`.
//!
//! The [`journal`] is the only writer of event logs: it decides inputs in batches and commits each
//! batch in one transaction. Programs call [`Executions`] and [`Catalog`]; [`local`] assigns
//! commands to the worker in this process. No module depends on a particular database, bus, or HTTP
//! route.

mod administration;
mod announcements;
mod approvals;
mod audit;
mod binding;
mod callbacks;
mod catalog;
pub mod compat;
mod content;
mod credentials;
mod dead_letters;
mod dedup;
mod dispatch;
mod event_pages;
mod executions;
mod grants;
mod identity;
mod ids;
mod import;
pub mod journal;
mod keychain;
mod leasing;
mod listeners;
pub mod local;
mod lost_reports;
mod message_starts;
pub mod metrics;
mod notifications;
mod objects;
mod options;
mod orphans;
pub mod outbox;
mod overview;
mod placeholders;
mod projections;
mod published_claims;
mod publisher;
mod quotas;
mod rate_limit;
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
mod state_cache;
mod step_logs;
mod stored_results;
mod stream_metrics;
mod subscription_metrics;
mod subscriptions;
mod system_consumers;
mod tailer;
mod timers;
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
pub use announcements::{AnnouncerHandle, AnnouncerOptions, COMMAND_STREAM, consumers_of_pool};
pub use approvals::{Approval, ApprovalPage, LoadSummary, WorkerLoad};
pub use audit::{AuditCheck, SecretAuditLog, SecretOutcome, SecretRequest, verify_audit};
pub use binding::{Resealed, verify_sealed};
pub use callbacks::{CallbackError, CallbackOutcome, Callbacks};
pub use catalog::{Catalog, Checkup, PlaybookError, RegisterError, ReplaceError};
pub use content::{CONTENT_MAX, Content, ContentError, Upload};
pub use credentials::{
    CredentialError, CredentialRequest, Credentials, OpenCredential,
    Resolved as ResolvedPlaceholder,
};
pub use dead_letters::{DeadLetter, DeadLetterError, DeadLetters};
pub use dedup::{DedupKey, DedupStart, DedupStarter, WINDOW_MAX};
pub use event_pages::{EventPages, EventRange};
pub use executions::{
    CLEANED_MAX, Executions, ForkError, ForkRequest, ForkVersion, Forked, RetryRequest, StartError,
    StartRequest, StartedExecution,
};
pub use grants::{GrantError, GrantRequest, Grants, covers};
pub use identity::IdentityError;
pub use import::{ImportService, ImportSummary, InvalidRow, check_depth, check_type, parse_row};
pub use journal::{Accepted, Journal, LeaseHolder, SubmitError};
pub use keychain::settings as keychain_settings;
pub use keychain::{KeychainKey, KeychainLookup, KeychainRequest, KeychainService, RevealedSecret};
pub use leasing::{
    BATCH_MAX, LEASE, LeaseError, LeaseService, LeasedRow, LongPoll, RenewalResult, WAIT_MAX,
};
pub use listeners::{
    IngressMessage, IngressService, Listener, ListenerError, ListenerVerify, Listeners,
    OpenListener, ReceiveError, ReceiveOutcome,
};
pub use local::{CommandAssignment, CommandOutcome, LOCAL_WORKER, LoadError, LocalCommands};
pub use message_starts::{MessageEntry, MessageStarter};
pub use metrics::Metrics;
pub use noetl_engine::ExecutionLimits;
pub use noetl_store::LogStream;
pub use notifications::{Notifications, Notifier};
pub use objects::{ObjectError, Objects, Suite};
pub use options::Options;
pub use outbox::OutboxService;
pub use overview::{Overview, Stats};
pub use projections::{ProjectionProgress, Projections};
pub use published_claims::{ClaimError, ClaimedCommand, PublishedClaims};
pub use publisher::{PublisherHandle, PublisherOptions};
pub use quotas::{Quota, QuotaExceeded, QuotaSettings, QuotaSettingsError, Quotas};
pub use rate_limit::RateLimiter;
pub use redaction::reveal;
pub use redaction::{LENGTH_MIN, Mint, Redaction, SecretTable, short_fields};
pub use replay::{
    AdvancedState, ORGANIZATION, PayloadLabel, PayloadResolution, Payloads, PayloadsSummary,
    Replay, ReplayRequest, Replayed, Resolution,
};
pub use reports::{
    Completion, CompletionAck, EventReport, Repeated, ReportError, Reports, is_event_type,
};
pub use results::{INLINE_MAX, is_small, small_fields};
pub use retention::{PurgeError, Purged, purge};
pub use rotation::{KeyRotation, KeyStatus, KeyUsage, Rotated};
pub use schedules::{ScheduleError, ScheduleSpec, Schedules};
pub use sealing::{
    EncryptionKey, KEY_VARIABLE, KEY_VERSION_VARIABLE, KeyError, PREVIOUS_KEY_VARIABLE, SealError,
};
pub use service::{ControlPlane, OpenError};
pub use step_logs::{LINES_MAX, LogError, StepLogs};
pub use stored_results::{ResolveError, Resolved, ResultRequest, StoredResults, execution_in};
pub use subscription_metrics::{MessageCounts, SubscriptionMetrics};
pub use subscriptions::{SubscriptionError, SubscriptionWhy, Subscriptions};
pub use system_consumers::{SystemConsumers, SystemConsumersHandle};
pub use tokens::{
    BELIEVED as TOKEN_BELIEVED, Role, TokenError, TokenHolder, TokenRequest, Tokens, UnknownRole,
    random_text,
};
pub use traces::{IncomingTrace, TraceParent, Traces};
pub use variables::{SaveError, Variables};
pub use verify::{Inconsistency, VerifyReport, verify};
pub use watch::{CommitWatch, ExecutionWatcher};
pub use why::{EndReason, Wait, WhyReport};
pub use worker_access::{CredentialHolder, WorkerAccess, WorkerBinding};
pub use worker_seal::{SEAL_ALGORITHM, SEAL_VERSION, SealedReply, WorkerKey, WorkerKeyError};
pub use workers::{Registration, TenantScope, WorkerError, Workers};

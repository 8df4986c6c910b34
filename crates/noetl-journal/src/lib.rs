//! The writer of event logs, and everything that moves an execution.
//!
//! The [`Journal`] is the only writer: it decides inputs in batches and commits each batch in one
//! transaction. [`Executions`] starts, cancels, and explains executions; [`LocalCommands`] assigns
//! commands to the worker in this process; timers, recovery, and the orphan scan continue what
//! waits. No module depends on a particular database, bus, or HTTP route.

mod announcements;
mod approvals;
mod assignment;
mod callbacks;
mod dispatch;
mod executions;
mod expiry;
mod journal;
mod lifetime;
mod local;
mod lost_reports;
pub mod metrics;
mod notifications;
mod orphans;
mod pending;
mod recovery;
mod scope;
mod service;
mod shards;
mod snapshots;
mod state_cache;
mod step_logs;
mod subscription_metrics;
mod subscriptions;
mod timer_rows;
mod timers;
mod traces;
mod watch;
mod why;

pub use announcements::{AnnouncementQueue, PendingAnnouncement};
pub use approvals::{Approval, ApprovalPage, LoadSummary, WorkerLoad};
pub use assignment::CommandAssignment;
pub use callbacks::{CallbackError, CallbackOutcome, Callbacks};
pub use dispatch::{LongPolls, QueuedPoll, RemotePools};
pub use executions::{
    CLEANED_MAX, Executions, ForkError, ForkRequest, ForkVersion, Forked, PreassignedId,
    RetryRequest, StartError, StartRequest, StartedExecution,
};
pub use journal::{Accepted, Journal, LeaseHolder, Queued, SubmitError};
pub use lifetime::Lifetime;
pub use local::{LOCAL_WORKER, LoadError, LocalCommands};
pub use lost_reports::LostReports;
pub use metrics::{Metrics, type_label};
pub use notifications::{Notifications, Notifier};
pub use scope::TenantScope;
pub use service::{JournalDeps, JournalService, OpenError, Options};
pub use step_logs::{LogError, StepLogs};
pub use subscription_metrics::SubscriptionMetrics;
pub use subscriptions::{SubscriptionError, SubscriptionWhy, Subscriptions};
pub use timer_rows::ABANDON;
pub use traces::{IncomingTrace, TraceParent, Traces};
pub use watch::{CommitWatch, ExecutionWatcher};
pub use why::{EndReason, Wait, WhyReport};

//! The services of the control plane, over the store's traits.
//!
//! The [`journal`] is the only writer of the log: it decides inputs in batches and commits each
//! batch in one transaction. [`Executions`] and [`Catalog`] are what programs call; [`local`]
//! hands commands to a worker in this process. Nothing here names a database, a bus or a route.

mod cache;
mod catalog;
mod dispatch;
mod due;
mod executions;
mod identity;
mod ids;
mod intake;
pub mod journal;
pub mod local;
mod look;
pub mod metrics;
mod once;
mod options;
pub mod outbox;
mod publishing;
mod recovery;
mod relay;
mod replay;
mod reports;
mod results;
mod retention;
mod service;
mod snapshots;
mod stream_metrics;
mod tailer;
mod verify;
mod watch;

pub use catalog::{Catalog, PlaybookError, RegisterError};
pub use executions::{Executions, StartError, StartRequest, Started};
pub use identity::IdentityError;
pub use intake::{Intake, Taken};
pub use journal::{Accepted, Journal, SubmitError};
pub use local::{Assignment, LOCAL_WORKER, LocalCommands};
pub use metrics::Metrics;
pub use once::{Once, StartedOnce, Starts, WINDOW_MAX};
pub use options::Options;
pub use outbox::Outgoing;
pub use publishing::{Publishing, PublishingOptions};
pub use replay::{
    Advanced, ORGANIZATION, PayloadLabel, PayloadResolution, Payloads, PayloadsSummary, Replay,
    ReplayRequest, Replayed, Resolution,
};
pub use reports::{Report, ReportError, Reports};
pub use retention::{PurgeError, Purged, purge};
pub use service::{Control, OpenError};
pub use verify::{Problem, Verified, verify};
pub use watch::Watch;

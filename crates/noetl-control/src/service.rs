//! Assembles the services of a control plane and manages their lifetime.

mod assemble;
mod background;
mod closing;
mod error;
mod measure;
mod parts;

use std::sync::Arc;

use noetl_model::Clock;
use noetl_store::{Blobs, Store};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::error::OpenError;
use crate::audit::SecretAuditLog;
use crate::callbacks::Callbacks;
use crate::catalog::Catalog;
use crate::content::Content;
use crate::credentials::Credentials;
use crate::dead_letters::DeadLetters;
use crate::dedup::DedupStarter;
use crate::dispatch::Dispatcher;
use crate::event_pages::EventPages;
use crate::executions::Executions;
use crate::import::ImportService;
use crate::keychain::KeychainService;
use crate::leasing::LeaseService;
use crate::listeners::{IngressService, Listeners};
use crate::local::LocalCommands;
use crate::message_starts::MessageStarter;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::options::Options;
use crate::outbox::OutboxService;
use crate::overview::Overview;
use crate::projections::Projections;
use crate::published_claims::PublishedClaims;
use crate::replay::Replay;
use crate::reports::Reports;
use crate::rotation::KeyRotation;
use crate::schedules::Schedules;
use crate::step_logs::StepLogs;
use crate::stored_results::StoredResults;
use crate::subscriptions::Subscriptions;
use crate::tokens::Tokens;
use crate::traces::Traces;
use crate::variables::Variables;
use crate::watch::CommitWatch;
use crate::worker_access::WorkerAccess;
use crate::workers::Workers;

/// A running control plane.
pub struct ControlPlane {
    /// Playbooks and other documents.
    pub catalog: Catalog,
    /// Starts, cancels, and reads executions.
    pub executions: Executions,
    /// Starts that are deduplicated by key.
    pub starts: DedupStarter,
    /// Reports of workers and clients.
    pub reports: Reports,
    /// Replay of event logs.
    pub replay: Replay,
    pub subscriptions: Subscriptions,
    /// Messages of subscriptions that could not start an execution.
    pub dead_letters: DeadLetters,
    /// Settings of push subscriptions' listeners.
    pub listeners: Listeners,
    /// Starts for messages of subscriptions.
    pub messages: MessageStarter,
    /// Messages pushed to this server.
    pub ingress: IngressService,
    pub schedules: Schedules,
    /// Aggregate numbers for dashboards.
    pub overview: Overview,
    /// Registration and liveness of remote workers.
    pub workers: Workers,
    /// Claims of published workers, one command each.
    pub claims: PublishedClaims,
    /// Leases of remote workers that renew them.
    pub leasing: LeaseService,
    /// Answers of jobs that were started without waiting for them.
    pub callbacks: Callbacks,
    pub credentials: Credentials,
    /// Secrets by the names that playbooks give them.
    pub keychain: KeychainService,
    /// Audit log of secret use.
    pub uses: SecretAuditLog,
    /// Encryption key and its rotation.
    pub keys: KeyRotation,
    /// Ranges of event logs by event ID.
    pub stretches: EventPages,
    /// Variables stored outside event logs.
    pub variables: Variables,
    /// Results that workers store independently of reports.
    pub stored_results: StoredResults,
    /// Large results by digest.
    pub content: Content,
    /// Objects and modules shared by workers.
    pub objects: Objects,
    /// Access tokens of callers.
    pub tokens: Tokens,
    /// Path permissions of callers, and credential permissions of playbooks.
    pub grants: crate::Grants,
    /// Restrictions of workers' tokens.
    pub worker_access: WorkerAccess,
    pub logs: StepLogs,
    /// Snapshots for external consumers.
    pub projections: Projections,
    /// Rows imported by system pools.
    pub intake: ImportService,
    /// Outbox rows for external publishers.
    pub outbox: OutboxService,
    pub metrics: Arc<Metrics>,
    pub traces: Traces,
    /// Notifications of commits in this process.
    pub watch: CommitWatch,
    /// Commands of the worker in this process.
    pub local: LocalCommands,
    /// Number of open commands of an earlier process found at startup.
    pub resumed: usize,
    store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    dispatch: Dispatcher,
    draining: CancellationToken,
    closing: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    sealing: CancellationToken,
    writers: Mutex<Vec<JoinHandle<()>>>,
    leaving: CancellationToken,
    identity: Mutex<Option<JoinHandle<()>>>,
}

impl ControlPlane {
    /// Opens a control plane on a store. Unfinished executions of an earlier process resume as soon
    /// as a worker polls for commands.
    pub async fn open(
        options: Options,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::open_sharded(options, store.clone(), vec![store], clock).await
    }

    /// Like [`open`](Self::open), on several databases: `store` routes calls, `shards` contain
    /// executions.
    pub async fn open_sharded(
        options: Options,
        store: Arc<dyn Store>,
        shards: Vec<Arc<dyn Store>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        // Contains every service, which is too large for the callers' futures.
        Box::pin(Self::assemble(options, store, shards, clock)).await
    }
}

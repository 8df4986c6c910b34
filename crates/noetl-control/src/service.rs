//! The control plane as one thing: made, used, closed.

mod assemble;
mod beside;
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
use crate::audit::SecretUses;
use crate::callbacks::Callbacks;
use crate::catalog::Catalog;
use crate::claiming::Claims;
use crate::content::Content;
use crate::credentials::Credentials;
use crate::dead_letters::DeadLetters;
use crate::dispatch::Dispatch;
use crate::executions::Executions;
use crate::intake::Intake;
use crate::keychain::Keychains;
use crate::leasing::Leasing;
use crate::listeners::{Ingress, Listeners};
use crate::local::LocalCommands;
use crate::logs::LogLines;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::once::Starts;
use crate::options::Options;
use crate::outbox::Outgoing;
use crate::overview::Overview;
use crate::projections::Projections;
use crate::replay::Replay;
use crate::reports::Reports;
use crate::rotation::Keys;
use crate::schedules::Schedules;
use crate::stored_results::StoredResults;
use crate::stretches::Stretches;
use crate::subscriptions::Subscriptions;
use crate::tokens::Tokens;
use crate::traces::Traces;
use crate::variables::Variables;
use crate::watch::Watch;
use crate::worker_access::WorkerAccess;
use crate::workers::Workers;

/// A running control plane.
pub struct Control {
    /// Playbooks.
    pub catalog: Catalog,
    /// Executions.
    pub executions: Executions,
    /// Executions that are to be started once.
    pub starts: Starts,
    /// What workers and clients say.
    pub reports: Reports,
    /// Logs as read models.
    pub replay: Replay,
    /// Subscriptions.
    pub subscriptions: Subscriptions,
    /// Messages of subscriptions that cannot become executions.
    pub dead_letters: DeadLetters,
    /// What gateways have to know of them.
    pub listeners: Listeners,
    /// Messages this server is handed for them.
    pub ingress: Ingress,
    /// When playbooks are started by the clock.
    pub schedules: Schedules,
    /// The numbers of all of it.
    pub overview: Overview,
    /// Workers elsewhere.
    pub workers: Workers,
    /// Commands for published workers, which claim each by itself.
    pub claims: Claims,
    /// Commands for those that renew what they hold.
    pub leasing: Leasing,
    /// Answers of jobs that were started and not waited for.
    pub callbacks: Callbacks,
    /// Credentials.
    pub credentials: Credentials,
    /// Secrets by the names playbooks give them.
    pub keychain: Keychains,
    /// Who was given which secret.
    pub uses: SecretUses,
    /// The key secrets are encrypted with.
    pub keys: Keys,
    /// Stretches of logs by the ids of events.
    pub stretches: Stretches,
    /// Variables beside executions.
    pub variables: Variables,
    /// Results that workers hand in apart.
    pub stored_results: StoredResults,
    /// Large results by their digest.
    pub content: Content,
    /// What workers keep for each other.
    pub objects: Objects,
    /// Tokens of callers.
    pub tokens: Tokens,
    /// Paths of callers, and credentials of playbooks.
    pub grants: crate::Grants,
    /// Limits of the tokens of workers.
    pub worker_access: WorkerAccess,
    pub logs: LogLines,
    /// Snapshots for readers elsewhere.
    pub projections: Projections,
    /// Rows that system pools hand in.
    pub intake: Intake,
    /// Rows on their way to publishers outside.
    pub outbox: Outgoing,
    pub metrics: Arc<Metrics>,
    pub traces: Traces,
    /// What was committed, as it happens.
    pub watch: Watch,
    /// Commands for a worker in this process.
    pub local: LocalCommands,
    /// How many commands of an earlier process were found open.
    pub resumed: usize,
    store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    dispatch: Dispatch,
    draining: CancellationToken,
    closing: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    sealing: CancellationToken,
    writers: Mutex<Vec<JoinHandle<()>>>,
    leaving: CancellationToken,
    identity: Mutex<Option<JoinHandle<()>>>,
}

impl Control {
    /// Opens a control plane on a store. Executions that an earlier process left unfinished go on
    /// from here, as soon as a worker asks for commands.
    pub async fn open(
        options: Options,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        Self::open_sharded(options, store.clone(), vec![store], clock).await
    }

    /// Like [`open`](Self::open) on several databases: `store` routes calls, `shards` have executions.
    pub async fn open_sharded(
        options: Options,
        store: Arc<dyn Store>,
        shards: Vec<Arc<dyn Store>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        // Holds every service at once, which is too much for the futures of callers.
        Box::pin(Self::assemble(options, store, shards, clock)).await
    }
}

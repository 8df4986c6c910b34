//! Opens the journal with the services that depend on it, and shuts them down.

mod closing;
mod error;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::{Catalog, Playbooks, Quotas};
use noetl_engine::ExecutionLimits;
use noetl_identity::{IdGenerator, ProcessIdentity};
use noetl_model::Clock;
use noetl_results::ResultStorage;
use noetl_secrets::{LocalSecrets, Secrets};
use noetl_store::JournalStore;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::error::OpenError;
use crate::announcements::AnnouncementQueue;
use crate::callbacks::Callbacks;
use crate::dispatch::Dispatcher;
use crate::dispatch::long_polls::LongPolls;
use crate::dispatch::remote_pools::RemotePools;
use crate::executions::Executions;
use crate::journal::{Journal, JournalWriter, WriterDeps};
use crate::lifetime::Lifetime;
use crate::local::{LocalCommands, LocalDeps};
use crate::lost_reports::LostReports;
use crate::metrics::Metrics;
use crate::notifications::Notifications;
use crate::orphans::OrphanScanner;
use crate::recovery::{self, Resumed};
use crate::snapshots::SnapshotQueue;
use crate::step_logs::StepLogs;
use crate::timers::TimerService;
use crate::traces::Traces;
use crate::watch::CommitWatch;

/// Settings of the journal and of executions.
#[derive(Clone)]
pub struct Options {
    /// Number of commands that the worker in this process runs at a time; 0 for no worker.
    pub slots: usize,
    /// Maximum size of cached execution state, in bytes. Evicted state is read from the store.
    pub cache_bytes: usize,
    /// Variables that templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Duration of the process lease. Other processes take over the work of a process that has not
    /// renewed its lease for this long.
    pub lease: Duration,
    /// Time after which a command of a worker that doesn't name its commands is reissued, counted
    /// from a restart of the server or a gap in the worker's heartbeats.
    pub lost_reports: Duration,
    /// Whether recovery resumes the executions that have not ended.
    pub resume: bool,
    /// Limits of a single execution.
    pub limits: ExecutionLimits,
    pub notifications: Notifications,
    pub traces: Traces,
}

/// Stores, identity, and services that the journal uses.
pub struct JournalDeps {
    /// Routes calls to the store that has the data.
    pub store: Arc<dyn JournalStore>,
    /// Databases that contain executions, at least one.
    pub shards: Vec<Arc<dyn JournalStore>>,
    pub clock: Arc<dyn Clock>,
    pub identity: ProcessIdentity,
    pub ids: IdGenerator,
    pub catalog: Catalog,
    pub playbooks: Playbooks,
    pub quotas: Quotas,
    pub results: ResultStorage,
    pub secrets: Secrets,
}

/// The journal and the services that move executions.
pub struct JournalService {
    pub journal: Journal,
    /// Starts, cancels, and reads executions.
    pub executions: Executions,
    /// Answers of jobs that were started without waiting for them.
    pub callbacks: Callbacks,
    /// Commands of the worker in this process.
    pub local: LocalCommands,
    pub logs: StepLogs,
    pub metrics: Arc<Metrics>,
    pub traces: Traces,
    /// Notifications of commits in this process.
    pub watch: CommitWatch,
    /// Limits of leases whose reports may be lost.
    pub lost: LostReports,
    /// Background tasks of the control plane.
    pub lifetime: Lifetime,
    /// Number of open commands of an earlier process found at startup.
    pub resumed: usize,
    store: Arc<dyn JournalStore>,
    dispatch: Dispatcher,
    /// Fires once nothing submits inputs any more.
    sealing: CancellationToken,
    writers: Mutex<Vec<JoinHandle<()>>>,
    /// Fires once the process no longer needs its machine ID.
    leaving: CancellationToken,
    identity: Mutex<Option<JoinHandle<()>>>,
}

impl JournalService {
    /// Opens the journal. Unfinished executions of an earlier process resume as soon as a worker
    /// polls for commands.
    pub async fn open(options: Options, deps: JournalDeps) -> Result<Self, OpenError> {
        let JournalDeps { store, shards, clock, identity, ids, catalog, .. } = deps;
        let JournalDeps { playbooks, quotas, results, secrets, .. } = deps;
        let (journal, queues) = Journal::new(shards.len());
        let dispatch = Dispatcher::new(options.slots, shards.len());
        let (watch, metrics) = (CommitWatch::new(), Arc::new(Metrics::new()));
        let (lifetime, redaction) = (Lifetime::default(), secrets.redaction.clone());
        let lost = LostReports::new(store.clone(), options.lost_reports);
        let executions = Executions {
            store: store.clone(),
            journal: journal.clone(),
            catalog,
            ids: ids.clone(),
            results: results.clone(),
            watch: watch.clone(),
            redaction: redaction.clone(),
            placeholders: secrets.placeholders.clone(),
            clock: clock.clone(),
            traces: options.traces.clone(),
            quotas,
            has_worker: dispatch.has_worker(),
            lost: lost.clone(),
            actor: None,
        };
        let (logs, write_logs) = StepLogs::new(
            store.clone(),
            redaction.clone(),
            clock.clone(),
            watch.clone(),
            lifetime.closing().clone(),
        );
        lifetime.spawn(write_logs);
        let (assignments, assigned) = mpsc::channel(options.slots.max(1));
        // Fires after all tasks that submit to the writers have ended, so their inputs are still
        // decided.
        let (sealing, mut writers) = (CancellationToken::new(), Vec::new());
        for (shard, (queue, database)) in queues.into_iter().zip(&shards).enumerate() {
            let (snapshots, store_snapshots) =
                SnapshotQueue::new(database.clone(), lifetime.closing().clone());
            lifetime.spawn(store_snapshots);
            let due_written = Arc::new(Notify::new());
            let writer = JournalWriter::new(WriterDeps {
                store: database.clone(),
                shard,
                catalog: store.clone(),
                results: results.clone(),
                snapshots,
                identity: identity.clone(),
                due_written: due_written.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                playbooks: playbooks.clone(),
                dispatch: dispatch.clone(),
                watch: watch.clone(),
                env: options.env.clone(),
                caps: options.limits,
                notify: options.notifications.clone(),
                traces: options.traces.clone(),
                assignments: assignments.clone(),
                metrics: metrics.clone(),
                cache_bytes: options.cache_bytes / shards.len().max(1),
                closing: sealing.clone(),
            });
            writers.push(tokio::spawn(writer.run(queue)));
            lifetime.spawn(
                TimerService {
                    store: database.clone(),
                    everywhere: store.clone(),
                    journal: journal.clone(),
                    executions: executions.clone(),
                    notices: options.notifications.clone(),
                    clock: clock.clone(),
                    written: due_written.clone(),
                    closing: lifetime.closing().clone(),
                }
                .run(),
            );
            if database.is_shared() {
                let scanner = OrphanScanner {
                    store: database.clone(),
                    journal: journal.clone(),
                    dispatch: dispatch.clone(),
                    due: due_written,
                    // A process's work is orphaned once its lease has expired; more frequent scans
                    // find little.
                    every: options.lease * 2 / 3,
                    closing: lifetime.closing().clone(),
                };
                lifetime.spawn(scanner.run());
            }
        }
        lifetime.spawn(dispatch.clone().reclaim_untaken(lifetime.closing().clone()));
        // Renewed until the end: queued inputs are still decided and committed during shutdown.
        let leaving = CancellationToken::new();
        let others = identity.others().await.map_err(OpenError::Store)?;
        let identity = tokio::spawn(identity.renew_until_closed(ids.clone(), leaving.clone()));
        // Larger than every ID in the store, smaller than every ID this process mints.
        let newest = ids.event().into();
        let mut resumed = 0;
        if options.resume {
            let found = recovery::resume(&*store, &journal, &dispatch, newest).await;
            let Resumed { open, remote } = found.map_err(OpenError::Resume)?;
            let (closing, at) = (lifetime.closing().clone(), clock.now());
            let limit = lost.clone().after_restart(at, remote, others, options.lease, closing);
            lifetime.spawn(limit);
            resumed = open;
        }
        let callbacks =
            Callbacks::new(store.clone(), journal.clone(), results.clone(), redaction.clone());
        let local = LocalCommands::new(
            LocalDeps {
                journal: journal.clone(),
                results,
                dispatch: dispatch.clone(),
                secrets: LocalSecrets::new(secrets.credentials.clone()),
                clock,
                logs: logs.clone(),
                draining: lifetime.draining().clone(),
                closing: lifetime.closing().clone(),
            },
            assigned,
        );
        Ok(Self {
            journal,
            executions,
            callbacks,
            local,
            logs,
            metrics,
            traces: options.traces,
            watch,
            lost,
            lifetime,
            resumed,
            store,
            dispatch,
            sealing,
            writers: Mutex::new(writers),
            leaving,
            identity: Mutex::new(Some(identity)),
        })
    }

    /// Returns the queue of commands to announce to workers on a bus.
    pub fn announcements(&self) -> AnnouncementQueue {
        self.dispatch.announcements().clone()
    }

    /// Returns the long polls of remote workers that wait for commands.
    pub fn long_polls(&self) -> &LongPolls {
        self.dispatch.calls()
    }

    /// Returns the pools that remote workers serve.
    pub fn remote_pools(&self) -> &RemotePools {
        self.dispatch.served()
    }
}

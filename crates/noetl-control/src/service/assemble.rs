//! Assembles the services of a control plane, in the order in which they depend on each other.

use std::sync::Arc;

use noetl_model::Clock;
use noetl_store::{Blobs, Store};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::background::BackgroundTasks;
use super::{ControlPlane, OpenError};
use crate::audit::SecretAuditLog;
use crate::callbacks::Callbacks;
use crate::catalog::{Catalog, Playbooks};
use crate::content::Content;
use crate::credentials::{Credentials, LocalSecrets};
use crate::dead_letters::DeadLetters;
use crate::dedup::DedupStarter;
use crate::dispatch::Dispatcher;
use crate::event_pages::EventPages;
use crate::executions::Executions;
use crate::identity::ProcessIdentity;
use crate::ids::IdGenerator;
use crate::import::ImportService;
use crate::journal::{Journal, JournalWriter, WriterDeps};
use crate::keychain::KeychainService;
use crate::leasing::{ExecutionCache, HandoffCache, LeaseActivity, LeaseService};
use crate::listeners::{IngressService, Listeners};
use crate::local::{LocalCommands, LocalDeps};
use crate::lost_reports::LostReports;
use crate::message_starts::MessageStarter;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::options::Options;
use crate::outbox::OutboxService;
use crate::overview::Overview;
use crate::placeholders::Placeholders;
use crate::projections::Projections;
use crate::published_claims::PublishedClaims;
use crate::quotas::Quotas;
use crate::recovery::{self, Resumed};
use crate::redaction::Redaction;
use crate::replay::Replay;
use crate::reports::Reports;
use crate::results::ResultStorage;
use crate::rotation::KeyRotation;
use crate::schedules::{Runner, ScheduleRows, Schedules};
use crate::snapshots::SnapshotQueue;
use crate::step_logs::StepLogs;
use crate::stored_results::StoredResults;
use crate::subscriptions::Subscriptions;
use crate::tokens::Tokens;
use crate::variables::Variables;
use crate::watch::CommitWatch;
use crate::worker_access::WorkerAccess;
use crate::workers::Workers;

impl ControlPlane {
    pub(super) async fn assemble(
        options: Options,
        store: Arc<dyn Store>,
        shards: Vec<Arc<dyn Store>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let identity =
            ProcessIdentity::acquire(store.clone(), options.machine, options.lease).await;
        let identity = identity.map_err(OpenError::Identity)?;
        let held = identity.clone();
        let ids = IdGenerator::new(clock.clone(), identity.machine(), move || held.is_held());
        if let Some(newest) = store.newest_id().await.map_err(OpenError::Store)? {
            ids.advance_past(newest);
        }
        let (journal, queues) = Journal::new(shards.len());
        let playbooks = Playbooks::new();
        let blobs: Arc<dyn Blobs> = options.blobs.unwrap_or_else(|| store.clone());
        let results = ResultStorage::new(blobs.clone());
        let dispatch = Dispatcher::new(options.slots, shards.len());
        let watch = CommitWatch::new();
        let (draining, closing) = (CancellationToken::new(), CancellationToken::new());
        let (assignments, assigned) = mpsc::channel(options.slots.max(1));
        let metrics = Arc::new(Metrics::new());
        let subscriptions = Subscriptions::new(store.clone(), clock.clone(), ids.clone());
        let grants = crate::Grants::new(store.clone());
        let worker_access = WorkerAccess::new(&store, &grants);
        let redaction = Redaction::default();
        let placeholders = Placeholders::new(store.clone(), options.encryption_key.clone());
        let uses = SecretAuditLog::new(store.clone(), ids.clone(), options.audit_required);
        let keys = KeyRotation::new(store.clone(), options.encryption_key.clone());
        let credentials = Credentials::new(
            store.clone(),
            ids.clone(),
            options.encryption_key,
            redaction.clone(),
            uses.clone(),
            placeholders.clone(),
            grants.clone(),
        );
        credentials.learn().await.map_err(OpenError::Store)?;
        let keychain = KeychainService::new(
            store.clone(),
            clock.clone(),
            credentials.clone(),
            playbooks.clone(),
        );
        let variables = Variables::new(store.clone(), redaction.clone());
        let stored_results =
            StoredResults::new(store.clone(), ids.clone(), results.clone(), redaction.clone());
        let objects = Objects::new(store.clone(), clock.clone());
        let listeners = Listeners::new(store.clone(), subscriptions.clone(), credentials.clone());
        let schedule_rows = ScheduleRows::new(store.clone(), clock.clone(), ids.clone());
        let quotas = Quotas::new(options.quotas.clone());
        let catalog = Catalog::new(
            store.clone(),
            clock.clone(),
            ids.clone(),
            playbooks.clone(),
            listeners.clone(),
            schedule_rows.clone(),
            quotas.clone(),
        );
        let lost = LostReports::new(store.clone(), options.lost_reports);
        let executions = Executions {
            store: store.clone(),
            journal: journal.clone(),
            catalog: catalog.clone(),
            ids: ids.clone(),
            results: results.clone(),
            watch: watch.clone(),
            redaction: redaction.clone(),
            placeholders: placeholders.clone(),
            clock: clock.clone(),
            traces: options.traces.clone(),
            quotas: quotas.clone(),
            has_worker: dispatch.has_worker(),
            lost: lost.clone(),
            actor: None,
        };
        let (logs, write_logs) = StepLogs::new(
            store.clone(),
            redaction.clone(),
            clock.clone(),
            watch.clone(),
            closing.clone(),
        );
        let mut tasks = vec![tokio::spawn(write_logs)];
        // Closed after all tasks that submit to the writers, so their inputs are still decided.
        let (sealing, mut writers) = (CancellationToken::new(), Vec::new());
        let held = LeaseActivity::default();
        let beside = BackgroundTasks {
            everywhere: store.clone(),
            journal: journal.clone(),
            executions: executions.clone(),
            notices: options.notices.clone(),
            clock: clock.clone(),
            dispatch: dispatch.clone(),
            held: held.clone(),
            metrics: metrics.clone(),
            lost: lost.clone(),
            lease: options.lease,
            worker_lease: options.worker_lease,
            closing: closing.clone(),
        };
        for (shard, (queue, database)) in queues.into_iter().zip(&shards).enumerate() {
            let (snapshots, keep) = SnapshotQueue::new(database.clone(), closing.clone());
            tasks.push(tokio::spawn(keep));
            let due_written = Arc::new(Notify::new());
            let writer = JournalWriter::new(WriterDeps {
                store: database.clone(),
                shard,
                catalog: store.clone(),
                results: results.clone(),
                snapshots: snapshots.clone(),
                identity: identity.clone(),
                due_written: due_written.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                playbooks: playbooks.clone(),
                dispatch: dispatch.clone(),
                watch: watch.clone(),
                env: options.env.clone(),
                caps: options.caps,
                notify: options.notices.clone(),
                traces: options.traces.clone(),
                assignments: assignments.clone(),
                metrics: metrics.clone(),
                cache_bytes: options.cache_bytes / shards.len().max(1),
                closing: sealing.clone(),
            });
            writers.push(tokio::spawn(writer.run(queue)));
            tasks.extend(beside.start(database, due_written));
        }
        tasks.push(tokio::spawn(dispatch.clone().reclaim_untaken(closing.clone())));
        // Held until the end: queued inputs are still decided and committed during shutdown.
        let leaving = CancellationToken::new();
        let others = identity.others().await.map_err(OpenError::Store)?;
        let identity = tokio::spawn(identity.renew_until_closed(ids.clone(), leaving.clone()));
        // Larger than every ID in the store, smaller than every ID this process mints.
        let newest = ids.event().into();
        let resumed = if options.resume {
            let resumed = recovery::resume(&*store, &journal, &dispatch, newest).await;
            let Resumed { open, remote } = resumed.map_err(OpenError::Resume)?;
            let (lost, at) = (lost.clone(), clock.now());
            let limit = lost.after_restart(at, remote, others, options.lease, closing.clone());
            tasks.push(tokio::spawn(limit));
            open
        } else {
            0
        };
        tasks.extend(options.retention.map(|policy| beside.spawn_retention(blobs.clone(), policy)));
        let schedules = Schedules::new(schedule_rows, executions.clone(), metrics.clone());
        if options.schedules {
            let runner = Runner::new(schedules.clone(), closing.clone());
            tasks.push(tokio::spawn(runner.run()));
        }
        let workers =
            Workers::new(store.clone(), ids.clone(), held, dispatch.served().clone(), lost);
        let callbacks =
            Callbacks::new(store.clone(), journal.clone(), results.clone(), redaction.clone());
        let known = ExecutionCache::default();
        let leasing = LeaseService {
            store: store.clone(),
            journal: journal.clone(),
            workers: workers.clone(),
            calls: dispatch.calls().clone(),
            metrics: metrics.clone(),
            draining: draining.clone(),
            lease: options.worker_lease,
            known: known.clone(),
            last: Arc::default(),
        };
        let reports = Reports {
            store: store.clone(),
            journal: journal.clone(),
            ids: ids.clone(),
            results: results.clone(),
            subscriptions: subscriptions.clone(),
            redaction,
            placeholders,
            workers: workers.clone(),
            stored: stored_results.clone(),
            known,
            handed: HandoffCache::default(),
            logs: logs.clone(),
        };
        let claims = PublishedClaims::new(&reports, &credentials, &keychain);
        let dead_letters =
            DeadLetters::new(objects.clone(), reports.clone(), subscriptions.clone());
        let replay = Replay::new(store.clone(), results.clone(), stored_results.clone());
        let starts = DedupStarter::new(
            store.clone(),
            executions.clone(),
            subscriptions.clone(),
            ids.clone(),
        );
        let messages = MessageStarter::new(
            executions.clone(),
            starts.clone(),
            reports.clone(),
            metrics.clone(),
        );
        Ok(Self {
            ingress: IngressService::new(
                subscriptions.clone(),
                messages.clone(),
                metrics.clone(),
                clock.clone(),
                options.replay_window,
            ),
            messages,
            starts,
            executions,
            intake: ImportService::new(store.clone(), reports.clone(), ids),
            outbox: OutboxService::new(store.clone()),
            projections: Projections::new(store.clone(), replay.clone(), metrics.clone()),
            metrics,
            traces: options.traces,
            replay,
            dead_letters,
            reports,
            subscriptions,
            listeners,
            schedules,
            overview: Overview { store: store.clone() },
            workers,
            claims,
            leasing,
            callbacks,
            local: LocalCommands::new(
                LocalDeps {
                    journal,
                    results,
                    dispatch: dispatch.clone(),
                    secrets: LocalSecrets::new(credentials.clone()),
                    clock: clock.clone(),
                    logs: logs.clone(),
                    draining: draining.clone(),
                    closing: closing.clone(),
                },
                assigned,
            ),
            logs,
            credentials,
            keychain,
            uses,
            keys,
            stretches: EventPages::new(store.clone()),
            variables,
            stored_results,
            content: Content::new(blobs.clone()),
            objects,
            tokens: Tokens::new(store.clone(), clock.clone()),
            worker_access,
            grants,
            catalog,
            watch,
            resumed,
            store,
            blobs,
            clock,
            dispatch,
            draining,
            closing,
            tasks: Mutex::new(tasks),
            sealing,
            writers: Mutex::new(writers),
            leaving,
            identity: Mutex::new(Some(identity)),
        })
    }
}

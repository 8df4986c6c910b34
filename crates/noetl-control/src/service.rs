//! A control plane: its services, opened in the order in which they depend on each other.

use std::sync::Arc;

use noetl_catalog::{Catalog, Playbooks, Quotas};
use noetl_identity::{IdGenerator, ProcessIdentity};
use noetl_journal::{JournalDeps, JournalService, OpenError, Subscriptions};
use noetl_model::{Clock, ExecutionId, Timestamp};
use noetl_publishing::Publishing;
use noetl_remote::{RemoteDeps, RemoteService};
use noetl_results::ExecutionData;
use noetl_secrets::Secrets;
use noetl_store::{Blobs, RetentionPolicy, Store};
use noetl_triggers::{DocumentTriggers, TriggerDeps, Triggers};
use noetl_views::Views;
use noetl_work::Redaction;

use crate::options::Options;
use crate::retention::{PurgeError, Purged, RetentionTask};

pub struct ControlPlane {
    pub catalog: Catalog,
    /// Credentials, tokens, grants, and their audit.
    pub secrets: Secrets,
    /// Results, variables, and objects outside event logs.
    pub data: ExecutionData,
    /// Executions and everything that moves them.
    pub journal: JournalService,
    pub remote: RemoteService,
    /// Answers that are read from event logs.
    pub views: Views,
    /// Schedules, listeners, and dead letters.
    pub triggers: Triggers,
    /// The outbox, and imported rows.
    pub publishing: Publishing,
    pub(crate) store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
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

    async fn assemble(
        options: Options,
        store: Arc<dyn Store>,
        shards: Vec<Arc<dyn Store>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let identity =
            ProcessIdentity::acquire(store.clone(), options.machine, options.lease).await;
        let identity = identity.map_err(OpenError::Identity)?;
        let lease_identity = identity.clone();
        let ids =
            IdGenerator::new(clock.clone(), identity.machine(), move || lease_identity.is_held());
        if let Some(newest) = store.newest_id().await.map_err(OpenError::Store)? {
            ids.advance_past(newest);
        }
        let blobs: Arc<dyn Blobs> = options.blobs.clone().unwrap_or_else(|| store.clone());
        let (playbooks, redaction) = (Playbooks::new(), Redaction::default());
        let quotas = Quotas::new(options.quotas.clone());
        let secrets = Secrets::open(
            options.secrets(),
            store.clone(),
            &clock,
            &ids,
            &playbooks,
            redaction.clone(),
        );
        let secrets = secrets.await.map_err(OpenError::Store)?;
        let data = ExecutionData::new(store.clone(), &blobs, &clock, &ids, &redaction);
        let subscriptions = Subscriptions::new(store.clone(), clock.clone(), ids.clone());
        let documents = DocumentTriggers::new(
            store.clone(),
            &clock,
            &ids,
            &subscriptions,
            &secrets.credentials,
        );
        let catalog = Catalog::new(
            store.clone(),
            clock.clone(),
            ids.clone(),
            playbooks.clone(),
            Arc::new(documents.clone()),
            quotas.clone(),
        );
        let journal = JournalDeps {
            store: store.clone(),
            shards: shards.iter().map(|shard| shard.clone() as _).collect(),
            clock: clock.clone(),
            identity,
            ids: ids.clone(),
            catalog: catalog.clone(),
            playbooks,
            quotas,
            results: data.results.clone(),
            secrets: secrets.clone(),
        };
        let journal = JournalService::open(options.journal(), journal).await?;
        let remote = RemoteDeps {
            store: store.clone(),
            shards: shards.into_iter().map(|shard| shard as _).collect(),
            ids: &ids,
            journal: &journal,
            subscriptions: &subscriptions,
            data: &data,
            secrets: &secrets,
        };
        let remote = RemoteService::open(&options.remote(), remote);
        let triggers = TriggerDeps {
            store: store.clone(),
            clock: &clock,
            ids: &ids,
            documents: &documents,
            journal: &journal,
            remote: &remote,
            data: &data,
        };
        let triggers = Triggers::open(&options.triggers(), triggers);
        if let Some(policy) = options.retention {
            let task = RetentionTask {
                store: store.clone(),
                blobs: blobs.clone(),
                policy,
                clock: clock.clone(),
                closing: journal.lifetime.closing().clone(),
            };
            journal.lifetime.spawn(task.run());
        }
        Ok(Self {
            catalog,
            secrets,
            views: Views::new(store.clone(), &data, &journal.metrics),
            publishing: Publishing::new(store.clone(), &ids, &remote),
            data,
            journal,
            remote,
            triggers,
            store,
            blobs,
            clock,
        })
    }

    /// Stops assigning commands. Running commands may still end and be reported.
    pub fn drain(&self) {
        self.journal.drain();
    }

    /// Stops claiming and waits until no command runs in this process that must not run twice,
    /// except those of `own`. Commands claimed before still start. Calls `waits` with the number of
    /// such commands, if there are any.
    pub async fn drain_non_idempotent(&self, own: ExecutionId, waits: impl FnOnce(usize)) {
        self.journal.drain_non_idempotent(own, waits).await;
    }

    /// Commits submitted inputs and stops. On a shared store, commands that still run are released,
    /// so other processes can run them at once; otherwise they are recovered at the next start.
    pub async fn close(&self) {
        self.journal.close().await;
    }

    /// Deletes the data that a policy does not retain, and reports it. A dry run deletes nothing.
    pub async fn purge(
        &self,
        policy: &RetentionPolicy,
        dry_run: bool,
    ) -> Result<Purged, PurgeError> {
        crate::retention::purge(&*self.store, &*self.blobs, policy, dry_run).await
    }

    /// Returns the current time, by the clock that timestamps events.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

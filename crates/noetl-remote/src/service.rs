//! The services of this crate, opened together.

use std::sync::Arc;
use std::time::Duration;

use noetl_identity::IdGenerator;
use noetl_journal::{JournalService, Subscriptions};
use noetl_results::ExecutionData;
use noetl_secrets::Secrets;
use noetl_store::RemoteStore;

use crate::connection::WorkerConnections;
use crate::lease_activity::LeaseActivity;
use crate::leasing::{ExecutionCache, HandoffCache, LEASE, LeaseReaper, LeaseService};
use crate::published_claims::PublishedClaims;
use crate::reports::Reports;
use crate::workers::Workers;

/// Settings of the services for remote workers.
#[derive(Debug, Clone)]
pub struct Options {
    /// Duration of a lease that its worker renews. Default: [`LEASE`].
    pub lease: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { lease: LEASE }
    }
}

/// Services for remote and published workers, and for reports of clients. Cheap to clone.
#[derive(Clone)]
pub struct RemoteService {
    /// Registration and liveness of remote workers.
    pub workers: Workers,
    /// Leases of remote workers that renew them.
    pub leasing: LeaseService,
    /// Reports of workers and clients.
    pub reports: Reports,
    /// Connections of remote workers that get their commands pushed.
    pub connections: WorkerConnections,
    /// Claims of published workers, one command each.
    pub claims: PublishedClaims,
}

/// Stores and services that these services use.
pub struct RemoteDeps<'a> {
    /// Routes calls to the store that has the data.
    pub store: Arc<dyn RemoteStore>,
    pub shards: Vec<Arc<dyn RemoteStore>>,
    pub ids: &'a IdGenerator,
    pub journal: &'a JournalService,
    pub subscriptions: &'a Subscriptions,
    pub data: &'a ExecutionData,
    pub secrets: &'a Secrets,
}

impl RemoteService {
    /// Opens the services, and starts a task for each shard that expires overdue leases.
    pub fn open(options: &Options, deps: RemoteDeps<'_>) -> Self {
        let lease = options.lease;
        let RemoteDeps { store, shards, ids, journal, subscriptions, data, secrets } = deps;
        let (held, known) = (LeaseActivity::default(), ExecutionCache::default());
        for database in shards {
            let reaper = LeaseReaper {
                store: database,
                journal: journal.journal.clone(),
                held: held.clone(),
                metrics: journal.metrics.clone(),
                lost: journal.lost.clone(),
                lease,
                closing: journal.lifetime.closing().clone(),
            };
            journal.lifetime.spawn(reaper.run());
        }
        let workers = Workers::new(
            store.clone(),
            ids.clone(),
            held,
            journal.remote_pools().clone(),
            journal.lost.clone(),
        );
        let leasing = LeaseService {
            store: store.clone(),
            journal: journal.journal.clone(),
            workers: workers.clone(),
            calls: journal.long_polls().clone(),
            metrics: journal.metrics.clone(),
            draining: journal.lifetime.draining().clone(),
            lease,
            known: known.clone(),
            last: Arc::default(),
        };
        let reports = Reports {
            store,
            journal: journal.journal.clone(),
            ids: ids.clone(),
            results: data.results.clone(),
            subscriptions: subscriptions.clone(),
            redaction: secrets.redaction.clone(),
            placeholders: secrets.placeholders.clone(),
            workers: workers.clone(),
            stored: data.stored_results.clone(),
            known,
            handed: HandoffCache::default(),
            logs: journal.logs.clone(),
        };
        let claims = PublishedClaims::new(&reports, &secrets.credentials, &secrets.keychain);
        let connections = WorkerConnections::new(&leasing, &reports);
        Self { workers, leasing, reports, connections, claims }
    }
}

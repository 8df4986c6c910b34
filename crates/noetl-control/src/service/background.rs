//! Background tasks of a database, besides its journal.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::Clock;
use noetl_store::retention::RetentionPolicy;
use noetl_store::{Blobs, Store};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Dispatcher;
use crate::executions::Executions;
use crate::journal::Journal;
use crate::leasing::{LeaseActivity, LeaseReaper};
use crate::lost_reports::LostReports;
use crate::metrics::Metrics;
use crate::notifications::Notifications;
use crate::orphans::OrphanScanner;
use crate::retention::RetentionTask;
use crate::timers::TimerService;

/// Dependencies shared by the tasks of all databases.
pub(super) struct BackgroundTasks {
    pub(super) everywhere: Arc<dyn Store>,
    pub(super) journal: Journal,
    pub(super) executions: Executions,
    pub(super) notices: Notifications,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dispatch: Dispatcher,
    pub(super) held: LeaseActivity,
    pub(super) metrics: Arc<Metrics>,
    pub(super) lost: LostReports,
    /// Duration of a process lease.
    pub(super) lease: Duration,
    /// Duration of a command lease that its worker renews.
    pub(super) worker_lease: Duration,
    pub(super) closing: CancellationToken,
}

impl BackgroundTasks {
    /// Starts the tasks that deliver timers, expire leases, and recover work of dead processes.
    pub(super) fn start(
        &self,
        database: &Arc<dyn Store>,
        due_written: Arc<Notify>,
    ) -> Vec<JoinHandle<()>> {
        let deliverer = TimerService {
            store: database.clone(),
            everywhere: self.everywhere.clone(),
            journal: self.journal.clone(),
            executions: self.executions.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
            written: due_written.clone(),
            closing: self.closing.clone(),
        };
        let leases = LeaseReaper {
            store: database.clone(),
            journal: self.journal.clone(),
            held: self.held.clone(),
            metrics: self.metrics.clone(),
            lost: self.lost.clone(),
            lease: self.worker_lease,
            closing: self.closing.clone(),
        };
        let mut tasks = vec![tokio::spawn(deliverer.run()), tokio::spawn(leases.run())];
        if database.is_shared() {
            let look = OrphanScanner {
                store: database.clone(),
                journal: self.journal.clone(),
                dispatch: self.dispatch.clone(),
                due: due_written,
                // A process's work is orphaned once its lease has expired; more frequent scans find
                // little.
                every: self.lease * 2 / 3,
                closing: self.closing.clone(),
            };
            tasks.push(tokio::spawn(look.run()));
        }
        tasks
    }

    /// Starts the retention task for all databases.
    pub(super) fn spawn_retention(
        &self,
        blobs: Arc<dyn Blobs>,
        policy: RetentionPolicy,
    ) -> JoinHandle<()> {
        let retainer = RetentionTask {
            store: self.everywhere.clone(),
            blobs,
            policy,
            clock: self.clock.clone(),
            closing: self.closing.clone(),
        };
        tokio::spawn(retainer.run())
    }
}

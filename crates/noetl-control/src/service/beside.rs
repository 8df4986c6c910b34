//! What is done for a database beside its journal.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::Clock;
use noetl_store::retention::Policy;
use noetl_store::{Blobs, Store};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Dispatch;
use crate::due::Deliverer;
use crate::executions::Executions;
use crate::journal::Journal;
use crate::leasing::{Held, LeaseLook};
use crate::look::Look;
use crate::lost_reports::LostReports;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::retention::Retainer;

/// What the tasks of every database share.
pub(super) struct Beside {
    pub(super) everywhere: Arc<dyn Store>,
    pub(super) journal: Journal,
    pub(super) executions: Executions,
    pub(super) notices: Notices,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dispatch: Dispatch,
    pub(super) held: Held,
    pub(super) metrics: Arc<Metrics>,
    pub(super) lost: LostReports,
    /// How long the lease of a process lasts.
    pub(super) lease: Duration,
    /// How long a lease of a command lasts that its worker renews.
    pub(super) worker_lease: Duration,
    pub(super) closing: CancellationToken,
}

impl Beside {
    /// Delivers what is due, ends leases that are over, and finds what processes left that are gone.
    pub(super) fn start(
        &self,
        database: &Arc<dyn Store>,
        due_written: Arc<Notify>,
    ) -> Vec<JoinHandle<()>> {
        let deliverer = Deliverer {
            store: database.clone(),
            everywhere: self.everywhere.clone(),
            journal: self.journal.clone(),
            executions: self.executions.clone(),
            notices: self.notices.clone(),
            clock: self.clock.clone(),
            written: due_written.clone(),
            closing: self.closing.clone(),
        };
        let leases = LeaseLook {
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
            let look = Look {
                store: database.clone(),
                journal: self.journal.clone(),
                dispatch: self.dispatch.clone(),
                due: due_written,
                // What a process held is missed once its lease has ended; looking more often than
                // that finds little.
                every: self.lease * 2 / 3,
                closing: self.closing.clone(),
            };
            tasks.push(tokio::spawn(look.run()));
        }
        tasks
    }

    /// Removes what is old, from all databases.
    pub(super) fn retain(&self, blobs: Arc<dyn Blobs>, policy: Policy) -> JoinHandle<()> {
        let retainer = Retainer {
            store: self.everywhere.clone(),
            blobs,
            policy,
            clock: self.clock.clone(),
            closing: self.closing.clone(),
        };
        tokio::spawn(retainer.run())
    }
}

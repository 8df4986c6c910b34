//! The control plane as one thing: made, used, closed.

use std::sync::Arc;

use noetl_model::Clock;
use noetl_store::{Store, StoreError};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, Playbooks};
use crate::dispatch::Dispatch;
use crate::executions::Executions;
use crate::ids::Ids;
use crate::journal::{Journal, SubmitError, Writer, WriterParts};
use crate::local::{LOCAL_WORKER, LocalCommands};
use crate::options::Options;
use crate::recovery;
use crate::reports::Reports;
use crate::watch::Watch;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// Unfinished executions could not go on.
    #[error("unfinished executions could not be resumed")]
    Resume(#[source] SubmitError),
}

/// A running control plane.
pub struct Control {
    /// Playbooks.
    pub catalog: Catalog,
    /// Executions.
    pub executions: Executions,
    /// What workers and clients say.
    pub reports: Reports,
    /// What was committed, as it happens.
    pub watch: Watch,
    /// Commands for a worker in this process.
    pub local: LocalCommands,
    /// How many commands of an earlier process were found open.
    pub resumed: usize,
    dispatch: Dispatch,
    draining: CancellationToken,
    closing: CancellationToken,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Control {
    /// Opens a control plane on a store. Executions that an earlier process left unfinished go on
    /// from here, as soon as a worker asks for commands.
    pub async fn open(
        options: Options,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let ids = Ids::new(clock.clone(), options.machine);
        if let Some(newest) = store.newest_id().await.map_err(OpenError::Store)? {
            ids.go_past(newest);
        }
        let (journal, queue) = Journal::new();
        let playbooks = Playbooks::new();
        let dispatch = Dispatch::new(options.slots);
        let watch = Watch::new();
        let (draining, closing) = (CancellationToken::new(), CancellationToken::new());
        let (assignments, assigned) = mpsc::channel(options.slots.max(1));
        let writer = Writer::new(WriterParts {
            store: store.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
            playbooks: playbooks.clone(),
            dispatch: dispatch.clone(),
            watch: watch.clone(),
            env: options.env,
            assignments,
            journal: journal.clone(),
            worker: Arc::from(LOCAL_WORKER),
            cache_bytes: options.cache_bytes,
            closing: closing.clone(),
        });
        let writer = tokio::spawn(writer.run(queue));
        // Larger than every id in the store, smaller than every id this process issues.
        let newest = ids.event().into();
        let resumed = if options.resume {
            let resumed = recovery::resume(&*store, &journal, &dispatch, newest).await;
            resumed.map_err(OpenError::Resume)?
        } else {
            0
        };
        let catalog = Catalog::new(store.clone(), clock, ids.clone(), playbooks);
        Ok(Self {
            executions: Executions::new(
                store.clone(),
                journal.clone(),
                catalog.clone(),
                ids.clone(),
                watch.clone(),
            ),
            reports: Reports::new(store, journal.clone(), ids),
            local: LocalCommands::new(
                journal,
                dispatch.clone(),
                assigned,
                draining.clone(),
                closing.clone(),
            ),
            catalog,
            watch,
            resumed,
            dispatch,
            draining,
            closing,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Hands out no further command. What runs may still end and be reported.
    pub fn drain(&self) {
        self.dispatch.close();
        self.draining.cancel();
    }

    /// Commits what was submitted and stops. Commands that still run are found again at the next
    /// start.
    pub async fn close(&self) {
        self.drain();
        self.closing.cancel();
        if let Some(writer) = self.writer.lock().await.take() {
            // A writer that panicked has nothing left to commit.
            let _ = writer.await;
        }
    }
}

//! Serializes all writes to the event log through one writer per shard.
//!
//! Inputs queue while a batch commits. The writer then takes every queued input, up to the batch
//! limit, without waiting for more. It decides each input against the state of its execution and
//! commits the batch in one transaction. Callers receive the outcome once the commit is durable.
//! The transaction covers a decision and all its consequences: events, command rows, the execution
//! row, and the claim of a new command for a free local slot.

mod batch;
mod claim;
mod contention;
mod decide;
mod handoff;
mod in_flight;
mod load;
mod outcome;
mod retry;
mod unconfirmed;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::PlaybookError;
use noetl_engine::{Input, Rejection};
use noetl_model::{CommandId, Event, EventId, ExecutionId, ExponentialBackoff, Tenant};
use noetl_playbook::Playbook;
use noetl_results::ResultError;
use noetl_store::{BlobError, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::dispatch::WorkerSlot;
use crate::shards::shard_of;

pub use handoff::LeaseHolder;
pub(crate) use writer::{JournalWriter, WriterDeps};

/// Capacity of a shard's input queue. Holds a few batches, so it absorbs a burst and applies
/// backpressure to callers under sustained overload.
const QUEUE_MAX: usize = 4096;

/// Time an input waits for room in the queue before it fails with [`SubmitError::Busy`].
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);

/// Backoff before an input is retried after a transient failure.
pub(crate) const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(5));

/// Handle for submitting inputs to the writers. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    /// Sending end of each shard's queue, by shard index.
    jobs: Arc<[mpsc::Sender<QueuedInput>]>,
}

#[derive(Debug, Clone)]
pub struct Accepted {
    /// Events the input led to. Empty if the input was already applied.
    pub events: Vec<Arc<Event>>,
    /// Command among `events` that was claimed for the reporting worker.
    pub handed: Option<CommandId>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// The engine rejected the input. Retrying cannot succeed.
    #[error(transparent)]
    Refused(#[from] Rejection),
    /// Another start uses this execution ID. Mint a new ID and retry.
    #[error("the execution id is taken")]
    Taken,
    /// The playbook version is missing or does not compile.
    #[error("failed to load the execution's playbook")]
    Playbook(#[source] Arc<PlaybookError>),
    /// The read or commit failed. Safe to retry: inputs are idempotent.
    #[error("failed to commit to the event log")]
    Store(#[source] Arc<StoreError>),
    /// The machine-ID lease lapsed, so new IDs could collide. Retry once it is renewed.
    #[error("this process has no machine number for now")]
    Unleased,
    /// The queue stayed full for 20 s, or the input met too many commit conflicts. Retry with
    /// backoff.
    #[error("too many inputs are queued")]
    Busy,
    /// The control plane is shutting down.
    #[error("the control plane is stopping")]
    Stopped,
}

impl From<ResultError> for SubmitError {
    fn from(error: ResultError) -> Self {
        match error {
            ResultError::Blob(BlobError::Place(error)) => Self::Store(Arc::new(error)),
            other => Self::Store(Arc::new(StoreError::backend("read a result", other))),
        }
    }
}

/// Data that only the first input of an execution carries.
#[derive(Clone)]
pub(crate) struct NewExecution {
    pub(crate) key: u64,
    pub(crate) tenant: Tenant,
    pub(crate) playbook: Arc<Playbook>,
}

pub(crate) struct QueuedInput {
    pub(crate) execution: ExecutionId,
    pub(crate) input: Input,
    pub(crate) start: Option<NewExecution>,
    /// ID for the first resulting event, taken from the report so a resent report is recognized as
    /// a duplicate.
    pub(crate) first_id: Option<EventId>,
    /// Slot of the command this input ends. The writer frees it before it decides, so commands
    /// issued by this input can use it.
    pub(crate) slot: Option<WorkerSlot>,
    /// Reporting remote worker, if it renews its leases by command ID.
    pub(crate) lease_holder: Option<LeaseHolder>,
    /// Number of times the input was decided but not committed.
    pub(crate) attempts: u32,
    pub(crate) reply: oneshot::Sender<Result<Accepted, SubmitError>>,
}

/// Receives the outcome of a queued input.
type SubmitReceiver = oneshot::Receiver<Result<Accepted, SubmitError>>;

/// Input that is queued and not committed yet.
pub struct Queued(SubmitReceiver);

impl Queued {
    /// Waits until the input is committed or rejected.
    pub async fn done(self) -> Result<Accepted, SubmitError> {
        self.0.await.unwrap_or(Err(SubmitError::Stopped))
    }
}

impl QueuedInput {
    fn new(execution: ExecutionId, input: Input) -> (Self, SubmitReceiver) {
        let (reply, answer) = oneshot::channel();
        let (start, first_id, slot, lease_holder) = (None, None, None, None);
        (Self { execution, input, start, first_id, slot, lease_holder, attempts: 0, reply }, answer)
    }
}

impl Journal {
    /// Creates a journal for `shards` shards, at least one. Returns it with the receiving end of
    /// each queue.
    pub(crate) fn new(shards: usize) -> (Self, Vec<mpsc::Receiver<QueuedInput>>) {
        let (jobs, queues): (Vec<_>, Vec<_>) =
            (0..shards.max(1)).map(|_| mpsc::channel(QUEUE_MAX)).unzip();
        (Self { jobs: jobs.into() }, queues)
    }

    fn queue_of(&self, execution: ExecutionId) -> &mpsc::Sender<QueuedInput> {
        &self.jobs[shard_of(execution, self.jobs.len())]
    }

    /// Submits an input and waits until all its consequences are durable.
    pub async fn submit(
        &self,
        execution: ExecutionId,
        input: Input,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = QueuedInput::new(execution, input);
        self.send(job, answer).await
    }

    /// Queues an input and returns once it is in the queue. Inputs of one execution that are queued
    /// one after the other are decided in that order. The first resulting event gets `first_id`, if
    /// given. [`Queued::done`] returns the outcome.
    pub async fn queue(
        &self,
        execution: ExecutionId,
        input: Input,
        first_id: Option<EventId>,
    ) -> Result<Queued, SubmitError> {
        let (job, answer) = QueuedInput::new(execution, input);
        self.put(QueuedInput { first_id, ..job }).await?;
        Ok(Queued(answer))
    }

    /// Like [`submit`](Self::submit), but for a report of a remote worker that renews its leases by
    /// command ID. The writer leases the commands it claims for that worker.
    pub async fn submit_from_worker(
        &self,
        execution: ExecutionId,
        input: Input,
        lease_holder: LeaseHolder,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = QueuedInput::new(execution, input);
        self.send(QueuedInput { lease_holder: Some(lease_holder), ..job }, answer).await
    }

    pub(crate) async fn start(
        &self,
        execution: ExecutionId,
        input: Input,
        start: NewExecution,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = QueuedInput::new(execution, input);
        self.send(QueuedInput { start: Some(start), ..job }, answer).await
    }

    /// Submits an input and retries transient failures until it is committed.
    ///
    /// Retries store errors, a full queue, and a lapsed machine-ID lease with the delays of
    /// [`RETRY`], so a worker's result survives a full disk or a database outage. Passes `slot` on
    /// with the first attempt only.
    ///
    /// Returns any other [`SubmitError`] unchanged, and [`SubmitError::Stopped`] on shutdown.
    pub(crate) async fn submit_with_retry(
        &self,
        execution: ExecutionId,
        input: Input,
        mut slot: Option<WorkerSlot>,
        closing: &CancellationToken,
    ) -> Result<(), SubmitError> {
        let mut delays = RETRY.delays();
        loop {
            let (job, answer) = QueuedInput::new(execution, input.clone());
            match self.send(QueuedInput { slot: slot.take(), ..job }, answer).await {
                Ok(_) => return Ok(()),
                Err(SubmitError::Store(_) | SubmitError::Busy | SubmitError::Unleased) => {}
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = closing.cancelled() => return Err(SubmitError::Stopped),
            }
        }
    }

    async fn send(
        &self,
        job: QueuedInput,
        answer: SubmitReceiver,
    ) -> Result<Accepted, SubmitError> {
        self.put(job).await?;
        Queued(answer).done().await
    }

    async fn put(&self, job: QueuedInput) -> Result<(), SubmitError> {
        self.queue_of(job.execution).send_timeout(job, QUEUE_TIMEOUT).await.map_err(|error| {
            match error {
                mpsc::error::SendTimeoutError::Timeout(_) => SubmitError::Busy,
                mpsc::error::SendTimeoutError::Closed(_) => SubmitError::Stopped,
            }
        })
    }
}

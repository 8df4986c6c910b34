//! The only writer of the log.
//!
//! Inputs queue up while a batch commits; the writer then takes what is there, never waits for
//! more, decides each against its execution's state and commits the batch in one transaction.
//! Whoever submitted is answered once the commit is durable. A decision and everything that
//! follows from it (events, command rows, the execution's row, a claim by a free local slot) are in
//! the same transaction.

mod again;
mod batch;
mod claim;
mod decide;
mod elsewhere;
mod held;
mod load;
mod outcome;
mod suspects;
mod under_way;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Input, Refusal};
use noetl_model::{CommandId, Event, EventId, ExecutionId, Tenant};
use noetl_playbook::Playbook;
use noetl_store::StoreError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::catalog::PlaybookError;
use crate::dispatch::Slot;

pub use elsewhere::Elsewhere;
pub(crate) use writer::{Writer, WriterParts};

/// Inputs that may queue while a batch commits: a few batches' worth, so that a burst is taken up
/// and a flood is felt by whoever sends it.
const QUEUE_MAX: usize = 4096;

/// How long a report waits for room in the queue before it is told to come again.
const PATIENCE: Duration = Duration::from_secs(20);

/// First and longest pause before an input is tried again when the store does not take it.
pub(crate) const RETRY_MIN: Duration = Duration::from_millis(50);
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(5);

/// Where inputs are submitted. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    /// One queue per shard.
    jobs: Arc<[mpsc::Sender<Job>]>,
}

#[derive(Debug, Clone)]
pub struct Accepted {
    /// The events this input led to; none when it was known already.
    pub events: Vec<Arc<Event>>,
    /// The command among them that was claimed for the worker whose report this was.
    pub handed: Option<CommandId>,
}

/// Why an input was not accepted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// The engine refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The execution id is taken. Mint again.
    #[error("the execution id is taken")]
    Taken,
    /// The execution's playbook cannot be read.
    #[error("the execution's playbook is not usable")]
    Playbook(#[source] Arc<PlaybookError>),
    /// The store did not take it. Come again.
    #[error("the store did not take it")]
    Store(#[source] Arc<StoreError>),
    /// This process's machine number may be another's by now. Come again.
    #[error("this process has no machine number for now")]
    Unleased,
    /// Too much is queued. Come again.
    #[error("too many inputs are queued")]
    Busy,
    /// The control plane is stopping.
    #[error("the control plane is stopping")]
    Stopped,
}

/// What only the first input of an execution carries.
#[derive(Clone)]
pub(crate) struct StartOf {
    pub(crate) key: u64,
    pub(crate) tenant: Tenant,
    pub(crate) playbook: Arc<Playbook>,
}

/// The shard of an execution among this many.
pub(crate) fn shard_of(execution: ExecutionId, shards: usize) -> usize {
    let shards = u32::try_from(shards).unwrap_or(u32::MAX);
    usize::try_from(noetl_model::shard_for(execution, shards)).unwrap_or_default()
}

pub(crate) struct Job {
    pub(crate) execution: ExecutionId,
    pub(crate) input: Input,
    pub(crate) start: Option<StartOf>,
    /// The id the report came with, for the first event it leads to.
    pub(crate) first_id: Option<EventId>,
    /// The slot of the command this input ends: free for what the input leads to.
    pub(crate) slot: Option<Slot>,
    /// The worker elsewhere that says it, if that names what it holds.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// How often it was decided and not kept.
    pub(crate) tries: u32,
    pub(crate) reply: oneshot::Sender<Result<Accepted, SubmitError>>,
}

/// Where what became of an input is told.
type Answer = oneshot::Receiver<Result<Accepted, SubmitError>>;

/// An input in the queue.
pub(crate) struct Queued(Answer);

impl Queued {
    /// Waits until the input is kept, or refused.
    pub(crate) async fn done(self) -> Result<Accepted, SubmitError> {
        self.0.await.unwrap_or(Err(SubmitError::Stopped))
    }
}

impl Job {
    fn new(execution: ExecutionId, input: Input) -> (Self, Answer) {
        let (reply, answer) = oneshot::channel();
        let (start, first_id, slot, elsewhere) = (None, None, None, None);
        (Self { execution, input, start, first_id, slot, elsewhere, tries: 0, reply }, answer)
    }
}

impl Journal {
    /// A journal for this many shards, and the queue of each.
    pub(crate) fn new(shards: usize) -> (Self, Vec<mpsc::Receiver<Job>>) {
        let (jobs, queues): (Vec<_>, Vec<_>) =
            (0..shards.max(1)).map(|_| mpsc::channel(QUEUE_MAX)).unzip();
        (Self { jobs: jobs.into() }, queues)
    }

    fn queue_of(&self, execution: ExecutionId) -> &mpsc::Sender<Job> {
        &self.jobs[shard_of(execution, self.jobs.len())]
    }

    /// Submits an input and waits until what follows from it is durable.
    pub async fn submit(
        &self,
        execution: ExecutionId,
        input: Input,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = Job::new(execution, input);
        self.send(job, answer).await
    }

    /// Puts an input into the queue, and answers as soon as it is there: inputs that are queued one
    /// after the other are decided in that order. The first event of a report that came with an ID
    /// has that ID. [`Queued::done`] is what became of it.
    pub(crate) async fn queue(
        &self,
        execution: ExecutionId,
        input: Input,
        first_id: Option<EventId>,
    ) -> Result<Queued, SubmitError> {
        let (job, answer) = Job::new(execution, input);
        self.put(Job { first_id, ..job }).await?;
        Ok(Queued(answer))
    }

    /// The same for what a worker elsewhere says that names what it holds.
    pub(crate) async fn submit_for(
        &self,
        execution: ExecutionId,
        input: Input,
        elsewhere: Elsewhere,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = Job::new(execution, input);
        self.send(Job { elsewhere: Some(elsewhere), ..job }, answer).await
    }

    pub(crate) async fn start(
        &self,
        execution: ExecutionId,
        input: Input,
        start: StartOf,
    ) -> Result<Accepted, SubmitError> {
        let (job, answer) = Job::new(execution, input);
        self.send(Job { start: Some(start), ..job }, answer).await
    }

    /// Submits an input again and again until the store takes it, the engine refuses it, or the
    /// control plane closes: what a worker found out is not lost because a disk was full for a
    /// while. Returns the refusal of a state that no retry will mend.
    pub(crate) async fn submit_surely(
        &self,
        execution: ExecutionId,
        input: Input,
        mut slot: Option<Slot>,
        closing: &CancellationToken,
    ) -> Result<(), SubmitError> {
        let mut pause = RETRY_MIN;
        loop {
            let (job, answer) = Job::new(execution, input.clone());
            match self.send(Job { slot: slot.take(), ..job }, answer).await {
                Ok(_) => return Ok(()),
                Err(SubmitError::Store(_) | SubmitError::Busy | SubmitError::Unleased) => {}
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = closing.cancelled() => return Err(SubmitError::Stopped),
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    async fn send(&self, job: Job, answer: Answer) -> Result<Accepted, SubmitError> {
        self.put(job).await?;
        Queued(answer).done().await
    }

    async fn put(&self, job: Job) -> Result<(), SubmitError> {
        self.queue_of(job.execution).send_timeout(job, PATIENCE).await.map_err(
            |error| match error {
                mpsc::error::SendTimeoutError::Timeout(_) => SubmitError::Busy,
                mpsc::error::SendTimeoutError::Closed(_) => SubmitError::Stopped,
            },
        )
    }
}

//! The thread that writes.
//!
//! It commits all queued batches in one transaction without waiting for more. Under load, many
//! callers thus share the cost of one sync. If a group fails, the thread retries the batch of each
//! caller separately, so that no caller fails because of another.

use std::thread::JoinHandle;

use noetl_model::Timestamp;
use noetl_store::{Committed, StoreClock, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::append::Appender;
use crate::checkpoint::Checkpoints;
use crate::encoded_append::EncodedAppend;
use crate::error::{commit_error, store_error};

/// Maximum number of calls that wait for the writer: enough to keep the writer busy while callers
/// wake up, and few enough to reveal an overload.
const QUEUE_MAX: usize = 256;

/// Maximum number of items per transaction, checked before the last batch is added. A few hundred
/// amortize the sync, and a longer transaction only delays its first caller.
const GROUP_MAX: usize = 1024;

/// Request to the writer thread.
pub(crate) enum WriterRequest {
    /// Appends a batch of items.
    Commit(AppendRequest),
    /// Runs other work on the writer's connection, outside a group.
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
}

pub(crate) struct AppendRequest {
    items: Vec<EncodedAppend>,
    answer: oneshot::Sender<AppendOutcome>,
}

type AppendOutcome = Result<Vec<Committed>, StoreError>;

/// Handle to the writer thread.
#[derive(Debug)]
pub(crate) struct WriterThread {
    requests: mpsc::Sender<WriterRequest>,
    /// Locked while a commit waits for room in the queue, so that commits are queued in call order.
    turn: Mutex<()>,
    thread: JoinHandle<()>,
}

impl WriterThread {
    pub(crate) fn start(
        connection: Connection,
        checkpoints: Option<Checkpoints>,
        clock: StoreClock,
        has_outbox: bool,
    ) -> std::io::Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let mut thread = Thread { connection, checkpoints, queue, held: None, clock, has_outbox };
        let builder = std::thread::Builder::new().name("noetl-sqlite".into());
        let thread = builder.spawn(move || {
            thread.run();
            thread.close();
        })?;
        Ok(Self { requests, turn: Mutex::new(()), thread })
    }

    pub(crate) async fn commit(&self, items: Vec<EncodedAppend>) -> AppendOutcome {
        let (answer, answered) = oneshot::channel();
        let request = WriterRequest::Commit(AppendRequest { items, answer });
        {
            // On a full queue, a new sender can overtake a waiting one. This lock is fair.
            let _turn = self.turn.lock().await;
            self.requests.send(request).await.map_err(|_| stopped())?;
        }
        answered.await.unwrap_or_else(|gone| Err(StoreError::Unknown(gone.into())))
    }

    /// Runs `work` on the writer's connection, between transactions.
    pub(crate) async fn run<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let request = WriterRequest::Run(Box::new(move |connection| {
            // A caller that has gone away doesn't need the result.
            let _ = answer.send(work(connection));
        }));
        self.requests.send(request).await.map_err(|_| stopped())?;
        answered.await.unwrap_or_else(|gone| Err(StoreError::Unknown(gone.into())))
    }

    /// Finishes the queued requests and waits until the thread has closed the file. Returns `false`
    /// if the thread panicked.
    pub(crate) fn stop(self) -> bool {
        drop(self.requests);
        self.thread.join().is_ok()
    }
}

fn stopped() -> StoreError {
    StoreError::backend("take the call", "the writer thread has stopped")
}

struct Thread {
    connection: Connection,
    checkpoints: Option<Checkpoints>,
    queue: mpsc::Receiver<WriterRequest>,
    held: Option<WriterRequest>,
    clock: StoreClock,
    has_outbox: bool,
}

impl Thread {
    fn run(&mut self) {
        while let Some(request) = self.held.take().or_else(|| self.queue.blocking_recv()) {
            match request {
                WriterRequest::Commit(first) => {
                    let group = self.gather(first);
                    commit_group(&mut self.connection, group, &self.clock, self.has_outbox);
                }
                WriterRequest::Run(work) => work(&mut self.connection),
            }
            if let Some(checkpoints) = &mut self.checkpoints {
                checkpoints.look(&self.connection);
            }
        }
    }

    /// Returns `first` and the commits queued behind it, up to the next request of another kind.
    fn gather(&mut self, first: AppendRequest) -> Vec<AppendRequest> {
        let mut size = first.items.len();
        let mut group = vec![first];
        while size < GROUP_MAX {
            match self.queue.try_recv() {
                Ok(WriterRequest::Commit(next)) => {
                    size += next.items.len();
                    group.push(next);
                }
                Ok(other) => {
                    self.held = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        group
    }

    fn close(self) {
        let Self { connection, checkpoints, .. } = self;
        if let Some(checkpoints) = checkpoints {
            checkpoints.stop(&connection);
        }
        if let Err((_, error)) = connection.close() {
            tracing::warn!(%error, "failed to close database");
        }
    }
}

fn commit_group(
    connection: &mut Connection,
    mut group: Vec<AppendRequest>,
    clock: &StoreClock,
    has_outbox: bool,
) {
    match write(connection, &group, clock, has_outbox) {
        Ok(outcomes) => {
            for (commit, outcome) in group.into_iter().zip(outcomes) {
                commit.answer(Ok(outcome));
            }
        }
        Err(StoreError::Unknown(error)) => {
            let text = error.to_string();
            for commit in group {
                commit.answer(Err(StoreError::Unknown(text.clone().into())));
            }
        }
        Err(error) => match group.pop() {
            Some(only) if group.is_empty() => only.answer(Err(error)),
            last => {
                for commit in group.into_iter().chain(last) {
                    commit_group(connection, vec![commit], clock, has_outbox);
                }
            }
        },
    }
}

impl AppendRequest {
    fn answer(self, outcome: AppendOutcome) {
        // A caller that has gone away learns the outcome from the log.
        let _ = self.answer.send(outcome);
    }
}

/// Writes a group in one transaction. After an error other than `Unknown`, nothing of it is
/// committed.
fn write(
    connection: &mut Connection,
    group: &[AppendRequest],
    clock: &StoreClock,
    has_outbox: bool,
) -> Result<Vec<Vec<Committed>>, StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(|error| store_error("begin a transaction", error))?;
    let outcomes = append(&transaction, group, clock.now(), has_outbox)?;
    transaction.commit().map_err(|error| commit_error("commit to the event log", error))?;
    Ok(outcomes)
}

fn append(
    transaction: &Transaction<'_>,
    group: &[AppendRequest],
    now: Timestamp,
    has_outbox: bool,
) -> Result<Vec<Vec<Committed>>, StoreError> {
    let mut appender = Appender::new(transaction, now, has_outbox)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for commit in group {
        let items = commit.items.iter().map(|item| appender.append(item));
        outcomes.push(items.collect::<Result<Vec<_>, _>>()?);
    }
    appender.finish()?;
    Ok(outcomes)
}

//! Step logs: output that steps print.
//!
//! Printing never blocks: text enters a bounded queue, and a background task writes it in batches.
//! If steps print faster than the store can write, text is dropped and counted, because output
//! matters less than the step that prints it. Known secrets are redacted before anything is stored.

mod dropped;
mod texts;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::placeholder::defuse;
use noetl_model::{Clock, CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{
    JournalStore, LogGap, LogLine, LogQuery, LogStream, NewLine, SkippedLines, StoreError,
};
use noetl_work::Redaction;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::dropped::DroppedLines;
use self::texts::{join, split};
use crate::watch::CommitWatch;

/// Maximum number of queued texts. A text is a few lines: at most one read from a pipe.
const QUEUE_MAX: usize = 4096;

/// Maximum number of texts written at a time.
const BATCH_MAX: usize = 256;

/// Delays before each retry of a batch that failed to be written. After the last, the batch is
/// lost.
const TRIES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];

/// Maximum total time to write queued lines once the control plane closes.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// Maximum time a command's completion waits for its output to be written. The completion takes
/// precedence over its output.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Errors of appending step logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The execution does not exist.
    #[error("Execution not found: {0}")]
    NotFound(ExecutionId),
    /// The execution has no such command.
    #[error("execution {execution} has no command {command}")]
    NoCommand { execution: ExecutionId, command: CommandId },
    #[error("store is unavailable")]
    Store(#[from] StoreError),
}

/// Text printed by a command.
struct Printed {
    execution: ExecutionId,
    command: CommandId,
    at: Timestamp,
    stream: LogStream,
    text: String,
}

enum LogWork {
    Print(Printed),
    /// Resolves the sender once all earlier work is written.
    Flush(oneshot::Sender<()>),
}

/// Step logs of all executions. Cheap to clone.
#[derive(Clone)]
pub struct StepLogs {
    store: Arc<dyn JournalStore>,
    redaction: Redaction,
    clock: Arc<dyn Clock>,
    watch: CommitWatch,
    queue: mpsc::Sender<LogWork>,
    dropped: Arc<AtomicU64>,
    lost: DroppedLines,
    /// Commands in this process that have printed and not ended. Used with a shared store only.
    printing: Arc<Mutex<HashSet<CommandId>>>,
}

impl StepLogs {
    /// Returns the service, and the task that writes printed text until the control plane closes.
    pub(crate) fn new(
        store: Arc<dyn JournalStore>,
        redaction: Redaction,
        clock: Arc<dyn Clock>,
        watch: CommitWatch,
        closing: CancellationToken,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, work) = mpsc::channel(QUEUE_MAX);
        let (dropped, lost) = (Arc::default(), DroppedLines::default());
        let printing = Arc::default();
        let lines = Self { store, redaction, clock, watch, queue, dropped, lost, printing };
        let writer = lines.clone().write(work, closing);
        (lines, writer)
    }

    /// Returns a function that queues output of a command in this process. It never blocks: text is
    /// dropped and counted if the queue is full.
    pub fn printer(
        &self,
        execution: ExecutionId,
        command: CommandId,
    ) -> impl Fn(LogStream, &str) + Send + Sync + 'static {
        let (queue, clock) = (self.queue.clone(), self.clock.clone());
        let (dropped, lost) = (self.dropped.clone(), self.lost.clone());
        // Other processes can read the lines only if the store is shared.
        let printing = self.store.is_shared().then(|| self.printing.clone());
        let has_printed = AtomicBool::new(false);
        move |stream, text| {
            if let Some(printing) = &printing
                && !has_printed.swap(true, Ordering::Relaxed)
            {
                lock(printing).insert(command);
            }
            let Ok(room) = queue.try_reserve() else {
                dropped.fetch_add(1, Ordering::Relaxed);
                lost.text(execution, command, text);
                return;
            };
            let (at, text) = (clock.now(), text.to_owned());
            room.send(LogWork::Print(Printed { execution, command, at, stream, text }));
        }
    }

    /// Returns the number of texts dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything printed in this process before the call is written or lost.
    pub async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(LogWork::Flush(done)).await.is_ok() {
            // A stopped writer has nothing left to write.
            let _ = is_done.await;
        }
    }

    /// Waits up to [`FLUSH_MAX`] until the output of a command of this process is written, if it
    /// printed any. Clients of other processes take the end of an execution as the end of its step
    /// logs.
    pub(crate) async fn flush_of(&self, command: CommandId) {
        if lock(&self.printing).remove(&command) {
            let _ = tokio::time::timeout(FLUSH_MAX, self.flush()).await;
        }
    }

    /// Appends lines sent by a remote worker, with secrets redacted. Returns the number of the last
    /// line.
    pub async fn append(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<u64, LogError> {
        if self.store.execution(tenant, execution).await?.is_none() {
            return Err(LogError::NotFound(execution));
        }
        let mut known: Vec<CommandId> = Vec::new();
        for line in &lines {
            if known.contains(&line.command) {
                continue;
            }
            let found = self.store.command(line.command).await?;
            if found.is_none_or(|found| found.execution != execution) {
                return Err(LogError::NoCommand { execution, command: line.command });
            }
            known.push(line.command);
        }
        let mut clean = Vec::with_capacity(lines.len());
        for line in lines {
            let text = self.cleaned(tenant, line.text.clone());
            clean.extend(split(&text).map(|text| NewLine { text, ..line.clone() }));
        }
        let last = self.store.append_lines(execution, clean).await?;
        self.watch.notify(execution);
        last.ok_or(LogError::NotFound(execution))
    }

    /// Returns the current time, for lines without a timestamp.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns lines of an execution in order. Does not check the tenant; callers do.
    pub async fn read(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        self.store.lines(execution, query).await
    }

    /// Returns the gaps in an execution's step logs, where lines were lost or dropped.
    pub async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        self.store.gaps(execution, command).await
    }

    fn cleaned(&self, tenant: &Tenant, text: String) -> String {
        let mut value = Value::String(text);
        defuse(&mut value);
        self.redaction.value(tenant, &mut value);
        match value {
            Value::String(text) => text,
            _ => String::new(),
        }
    }

    /// Writes printed text until the control plane closes, and remaining text for up to
    /// [`CLOSING_MAX`] after that.
    async fn write(self, work: mpsc::Receiver<LogWork>, closing: CancellationToken) {
        let too_long = async {
            closing.cancelled().await;
            tokio::time::sleep(CLOSING_MAX).await;
        };
        tokio::select! {
            () = self.write_all(work, &closing) => {}
            () = too_long => warn!("shutdown timeout reached, remaining step logs lost"),
        }
    }

    async fn write_all(&self, mut work: mpsc::Receiver<LogWork>, closing: &CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut told = 0;
        loop {
            tokio::select! {
                biased;
                taken = work.recv_many(&mut batch, BATCH_MAX) => if taken == 0 { return },
                () = closing.cancelled() => {
                    // Text printed up to now is still written.
                    while let Ok(one) = work.try_recv() {
                        batch.push(one);
                    }
                    self.write_batch(std::mem::take(&mut batch)).await;
                    return;
                }
                // Losses have to be counted even if no further text is written.
                () = self.lost.noted() => {}
            }
            self.write_batch(std::mem::take(&mut batch)).await;
            let dropped = self.dropped();
            if dropped > told {
                warn!(texts = dropped - told, "step log queue full, text dropped");
                told = dropped;
            }
        }
    }

    async fn write_batch(&self, batch: Vec<LogWork>) {
        let mut executions: Vec<(ExecutionId, Vec<Printed>)> = Vec::new();
        let mut places: HashMap<ExecutionId, usize> = HashMap::new();
        let mut waiters = Vec::new();
        for one in batch {
            match one {
                LogWork::Flush(waiter) => waiters.push(waiter),
                LogWork::Print(printed) => {
                    let place = *places.entry(printed.execution).or_insert_with(|| {
                        executions.push((printed.execution, Vec::new()));
                        executions.len() - 1
                    });
                    join(&mut executions[place].1, printed);
                }
            }
        }
        for (execution, texts) in executions {
            let lines = match self.lines_of(execution, texts).await {
                Ok(lines) => lines,
                Err((error, texts)) => {
                    warn!(execution.id = %execution, %error, "failed to prepare step logs, lines lost");
                    for printed in texts {
                        self.lost.text(execution, printed.command, &printed.text);
                    }
                    continue;
                }
            };
            if let Err(error) = self.keep(execution, &lines).await {
                warn!(execution.id = %execution, %error, "failed to write step logs, lines lost");
                for line in lines {
                    let (command, bytes) = (line.command, line.cost());
                    self.lost.add(execution, SkippedLines { command, lines: 1, bytes });
                }
            }
            self.watch.notify(execution);
        }
        self.count_lost().await;
        for waiter in waiters {
            // The receiver may have been dropped.
            let _ = waiter.send(());
        }
    }

    /// Records lost lines as gaps in the store. Losses that cannot be recorded now are recorded
    /// with the next batch.
    async fn count_lost(&self) {
        for (execution, lost) in self.lost.take() {
            match self.store.pass_over_lines(execution, lost.clone()).await {
                Ok(_) => {}
                Err(error) if matches!(error.failure(), StoreError::Unknown(_)) => {
                    // The gap may have been recorded. Recording it twice would be as wrong as not
                    // recording it.
                    warn!(execution.id = %execution, %error, "lost step log lines may be uncounted");
                }
                Err(error) => {
                    warn!(execution.id = %execution, %error, "failed to count lost step log lines, retrying");
                    self.lost.put_back(execution, lost);
                }
            }
        }
    }

    /// Returns printed text as lines with secrets redacted.
    async fn lines_of(
        &self,
        execution: ExecutionId,
        texts: Vec<Printed>,
    ) -> Result<Vec<NewLine>, (StoreError, Vec<Printed>)> {
        let tenant = match self.redaction.is_empty() {
            true => None,
            false => match self.store.tenant_of(execution).await {
                Ok(tenant) => tenant,
                Err(error) => return Err((error, texts)),
            },
        };
        let mut lines = Vec::with_capacity(texts.len());
        for Printed { command, at, stream, text, .. } in texts {
            let text = match &tenant {
                Some(tenant) => self.cleaned(tenant, text),
                None => self.cleaned(&Tenant::default(), text),
            };
            lines.extend(split(&text).map(|text| NewLine { command, at, stream, text }));
        }
        Ok(lines)
    }

    async fn keep(&self, execution: ExecutionId, lines: &[NewLine]) -> Result<(), StoreError> {
        let mut pauses = TRIES.into_iter();
        loop {
            match self.store.append_lines(execution, lines.to_vec()).await {
                Ok(_) => return Ok(()),
                // The lines may have been written. A duplicated line is worse than a lost one.
                Err(error) if matches!(error.failure(), StoreError::Unknown(_)) => {
                    return Err(error);
                }
                Err(error) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => return Err(error),
                },
            }
        }
    }
}

fn lock(printing: &Mutex<HashSet<CommandId>>) -> MutexGuard<'_, HashSet<CommandId>> {
    printing.lock().unwrap_or_else(PoisonError::into_inner)
}

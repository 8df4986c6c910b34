//! What steps print, on its way to the store and from it.
//!
//! Whoever prints never waits: texts go into a bounded queue, and a task of the control plane writes
//! them in batches. When more is printed than the store takes, texts are dropped and counted, because
//! a line is worth less than the step that prints it. Known secrets are taken out before anything is
//! kept.

mod lost;
mod texts;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::placeholder::defuse;
use noetl_model::{Clock, CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_store::{LogGap, LogLine, LogQuery, LogStream, NewLine, PassedOver, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::lost::Lost;
use self::texts::{join, split};
use crate::redaction::Redaction;
use crate::watch::Watch;

/// Texts that may wait to be written. A text is a few lines, at most what one read of a pipe gives.
const QUEUE_MAX: usize = 4096;

/// Texts written at a time.
const BATCH_MAX: usize = 256;

/// How often a batch is tried that the store does not take, and the pause before each further try.
const TRIES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];

/// How long lines may take to be written once the control plane closes, all of them together.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// How long the end of a command waits for what it printed: its report counts for more.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Lines that one call may hand in.
pub const LINES_MAX: usize = 1000;

/// Why lines were not kept.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no such execution.
    #[error("Execution not found: {0}")]
    NotFound(ExecutionId),
    /// The execution has no such command.
    #[error("execution {execution} has no command {command}")]
    NoCommand { execution: ExecutionId, command: CommandId },
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Something that was printed.
struct Printed {
    execution: ExecutionId,
    command: CommandId,
    at: Timestamp,
    stream: LogStream,
    text: String,
}

enum Work {
    Print(Printed),
    /// Somebody waits until everything before this is written.
    Flush(oneshot::Sender<()>),
}

/// Lines of steps. Cheap to clone.
#[derive(Clone)]
pub struct LogLines {
    store: Arc<dyn Store>,
    redaction: Redaction,
    clock: Arc<dyn Clock>,
    watch: Watch,
    queue: mpsc::Sender<Work>,
    dropped: Arc<AtomicU64>,
    lost: Lost,
    /// Commands in this process that printed and have not ended.
    printing: Arc<Mutex<HashSet<CommandId>>>,
}

impl LogLines {
    /// Lines in this store, and the task that writes what is printed until the control plane closes.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        redaction: Redaction,
        clock: Arc<dyn Clock>,
        watch: Watch,
        closing: CancellationToken,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, work) = mpsc::channel(QUEUE_MAX);
        let (dropped, lost) = (Arc::default(), Lost::default());
        let printing = Arc::default();
        let lines = Self { store, redaction, clock, watch, queue, dropped, lost, printing };
        let writer = lines.clone().write(work, closing);
        (lines, writer)
    }

    /// Where a command in this process prints. Never waits.
    pub fn printer(
        &self,
        execution: ExecutionId,
        command: CommandId,
    ) -> impl Fn(LogStream, &str) + Send + Sync + 'static {
        let (queue, clock) = (self.queue.clone(), self.clock.clone());
        let (dropped, lost) = (self.dropped.clone(), self.lost.clone());
        // Others read the lines through processes of their own only if they share the store.
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
            room.send(Work::Print(Printed { execution, command, at, stream, text }));
        }
    }

    /// How many texts were dropped because too much was printed.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything that was printed in this process before this call is written, or was
    /// given up.
    pub async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(Work::Flush(done)).await.is_ok() {
            // A writer that stopped has nothing left to write.
            let _ = is_done.await;
        }
    }

    /// Waits a while until what a command of this process printed is written, if it printed anything:
    /// whoever reads through another process takes the end of an execution for the end of its lines.
    pub(crate) async fn flush_of(&self, command: CommandId) {
        if lock(&self.printing).remove(&command) {
            let _ = tokio::time::timeout(FLUSH_MAX, self.flush()).await;
        }
    }

    /// Keeps lines that a worker elsewhere hands in. The number of the last.
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
        self.watch.stirred(execution);
        last.ok_or(LogError::NotFound(execution))
    }

    /// The present, for lines that come without a time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lines of an execution, in order. Whose it is, the caller has looked.
    pub async fn read(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        self.store.lines(execution, query).await
    }

    /// What went of an execution's lines.
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

    /// Writes what is printed until the control plane closes, and then for a while what is left.
    async fn write(self, work: mpsc::Receiver<Work>, closing: CancellationToken) {
        let too_long = async {
            closing.cancelled().await;
            tokio::time::sleep(CLOSING_MAX).await;
        };
        tokio::select! {
            () = self.write_all(work, &closing) => {}
            () = too_long => warn!("the last lines of steps are lost: the store does not take them"),
        }
    }

    async fn write_all(&self, mut work: mpsc::Receiver<Work>, closing: &CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut told = 0;
        loop {
            tokio::select! {
                biased;
                taken = work.recv_many(&mut batch, BATCH_MAX) => if taken == 0 { return },
                () = closing.cancelled() => {
                    // What was printed until now is still written.
                    while let Ok(one) = work.try_recv() {
                        batch.push(one);
                    }
                    self.write_batch(std::mem::take(&mut batch)).await;
                    return;
                }
                // There may be nothing left to write that would bring it along.
                () = self.lost.noted() => {}
            }
            self.write_batch(std::mem::take(&mut batch)).await;
            let dropped = self.dropped();
            if dropped > told {
                warn!(texts = dropped - told, "more was printed than could be kept");
                told = dropped;
            }
        }
    }

    async fn write_batch(&self, batch: Vec<Work>) {
        let mut executions: Vec<(ExecutionId, Vec<Printed>)> = Vec::new();
        let mut places: HashMap<ExecutionId, usize> = HashMap::new();
        let mut waiters = Vec::new();
        for one in batch {
            match one {
                Work::Flush(waiter) => waiters.push(waiter),
                Work::Print(printed) => {
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
                    warn!(execution.id = %execution, %error, "lines of steps are lost");
                    for printed in texts {
                        self.lost.text(execution, printed.command, &printed.text);
                    }
                    continue;
                }
            };
            if let Err(error) = self.keep(execution, &lines).await {
                warn!(execution.id = %execution, %error, "lines of steps are lost");
                for line in lines {
                    let (command, bytes) = (line.command, line.cost());
                    self.lost.add(execution, PassedOver { command, lines: 1, bytes });
                }
            }
            self.watch.stirred(execution);
        }
        self.count_lost().await;
        for waiter in waiters {
            // Whoever waited may have gone.
            let _ = waiter.send(());
        }
    }

    /// Counts what was lost where readers are told of it. What cannot be counted now is counted with
    /// what is written next.
    async fn count_lost(&self) {
        for (execution, lost) in self.lost.take() {
            match self.store.pass_over_lines(execution, lost.clone()).await {
                Ok(_) => {}
                Err(error) if matches!(error.failure(), StoreError::Unknown(_)) => {
                    // It may have been counted; twice would be wrong, and so may this be.
                    warn!(execution.id = %execution, %error, "lost lines may not be counted");
                }
                Err(error) => {
                    warn!(execution.id = %execution, %error, "lost lines are not counted yet");
                    self.lost.put_back(execution, lost);
                }
            }
        }
    }

    /// What was printed, as lines without secrets.
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
                // It may have been kept; a line twice is worse than one that is lost.
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

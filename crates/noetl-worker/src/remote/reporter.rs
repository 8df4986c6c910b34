//! Reports completions in batches until each is accepted or can no longer take effect.
//!
//! The worker's slots bound the queue: a command occupies its slot until its completion has a
//! response. While a request is in flight, further completions accumulate, so a busier worker sends
//! fewer requests per completion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use noetl_api::completions::{
    CompletionItem, CompletionResult, CompletionStatus, CompletionsRequest, NextCommandFilter,
};
use noetl_api::workers::LeasedCommand;
use noetl_api::{ClientError, work};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::line::Line;
use super::link::{RETRY, ServerLink, chain};

/// Maximum number of queued completions. Further commands wait before they queue theirs.
const QUEUE_MAX: usize = 1024;

/// Maximum number of completions in one request.
const BATCH_MAX: usize = 256;

/// Size in bytes at which a request takes no more completions, well below the servers' limit. The
/// last completion may exceed it.
const BYTES_MAX: usize = 1 << 20;

/// Requests in flight at a time, so that one slow request doesn't delay the others.
const SENDERS: usize = 4;

/// Outcome of a reported completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportOutcome {
    Accepted,
    /// The command had already ended.
    Late,
    /// The server rejected the completion, for this reason.
    Refused(String),
}

/// Response to a reported completion.
#[derive(Debug)]
pub(crate) struct ReportReply {
    pub(crate) reported: ReportOutcome,
    /// Command handed off to this worker with the response.
    pub(crate) next: Option<Box<LeasedCommand>>,
}

impl From<ReportOutcome> for ReportReply {
    fn from(reported: ReportOutcome) -> Self {
        Self { reported, next: None }
    }
}

/// Queues completions for the senders. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    queue: mpsc::Sender<QueuedCompletion>,
    line: Line,
    /// Number of the last completion, for its ID.
    last: Arc<AtomicU64>,
}

struct QueuedCompletion {
    end: Box<RawValue>,
    /// Whether the command's slot can receive a handoff.
    takes_next: bool,
    answer: oneshot::Sender<ReportReply>,
}

impl Reporter {
    /// Starts the senders, which run until `stop` is cancelled.
    pub(crate) fn start(
        link: &Arc<ServerLink>,
        pool: Option<&String>,
        line: Line,
        stop: &CancellationToken,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..SENDERS {
            let next = NextCommandFilter { pool: pool.cloned(), kinds: None };
            let sender = ReportSender { link: link.clone(), next, waiting: waiting.clone() };
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = sender.run() => {}
                    () = stop.cancelled() => {}
                }
            });
        }
        Self { queue, line, last: Arc::default() }
    }

    /// Reports a completion until the server responds, over the connection or over HTTP. Returns
    /// `None` if the senders stop first. The server may hand off a command if `takes_next` is set:
    /// with the response over HTTP, and as a pushed command over the connection.
    pub(crate) async fn report(
        &self,
        end: &CompletionItem,
        takes_next: bool,
    ) -> Option<ReportReply> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}.{number}", end.event_id);
        if let Some(reply) = self.line.report(id, end, takes_next).await {
            return Some(reply);
        }
        let end = match serde_json::value::to_raw_value(end) {
            Ok(end) => end,
            Err(error) => return Some(ReportOutcome::Refused(error.to_string()).into()),
        };
        let (answer, answered) = oneshot::channel();
        self.queue.send(QueuedCompletion { end, takes_next, answer }).await.ok()?;
        answered.await.ok()
    }
}

struct ReportSender {
    link: Arc<ServerLink>,
    /// Filter of the commands accepted as a handoff.
    next: NextCommandFilter,
    waiting: Arc<Mutex<mpsc::Receiver<QueuedCompletion>>>,
}

impl ReportSender {
    async fn run(&self) {
        while let Some(batch) = self.next().await {
            self.send(batch).await;
        }
    }

    /// Waits for completions and returns as many as fit into one request.
    async fn next(&self) -> Option<Vec<QueuedCompletion>> {
        let mut waiting = self.waiting.lock().await;
        let first = waiting.recv().await?;
        let (mut bytes, mut batch) = (first.end.get().len(), vec![first]);
        while batch.len() < BATCH_MAX && bytes < BYTES_MAX {
            let Ok(next) = waiting.try_recv() else { break };
            bytes += next.end.get().len();
            batch.push(next);
        }
        Some(batch)
    }

    /// Sends a batch until every completion in it has a response.
    async fn send(&self, mut batch: Vec<QueuedCompletion>) {
        let mut delays = RETRY.delays();
        let mut one_by_one = false;
        loop {
            // A caller stops waiting when another worker owns its command.
            batch.retain(|waiting| !waiting.answer.is_closed());
            if batch.is_empty() {
                return;
            }
            let count = if one_by_one { 1 } else { batch.len() };
            match self.ask(&batch[..count]).await {
                Ok(answers) => {
                    delays.reset();
                    let sent: Vec<QueuedCompletion> = batch.drain(..count).collect();
                    let mut unanswered = answered(sent, answers);
                    if !unanswered.is_empty() {
                        batch.append(&mut unanswered);
                        tokio::time::sleep(delays.next_delay()).await;
                    }
                }
                Err(error) if is_about_the_body(&error) && count > 1 => one_by_one = true,
                Err(error) if is_about_the_body(&error) => {
                    let waiting = batch.remove(0);
                    // The caller may have stopped waiting.
                    let _ = waiting.answer.send(ReportOutcome::Refused(error.to_string()).into());
                }
                Err(error) => {
                    // `ServerLink::ask` has logged transient errors as an unavailable server.
                    if !error.is_passing() {
                        warn!(error = chain(&error), "server rejected completions, retrying");
                    }
                    tokio::time::sleep(delays.next_delay()).await;
                }
            }
        }
    }

    async fn ask(&self, batch: &[QueuedCompletion]) -> Result<Vec<CompletionResult>, ClientError> {
        let request = CompletionsRequest {
            worker_id: self.link.name.clone(),
            ends: batch.iter().map(|waiting| waiting.end.clone()).collect(),
            next: batch.iter().all(|waiting| waiting.takes_next).then(|| self.next.clone()),
        };
        Ok(self.link.request(work::report(&request)).await?.ends)
    }
}

/// Passes each outcome to its caller. Returns the completions that must be sent again.
fn answered(sent: Vec<QueuedCompletion>, answers: Vec<CompletionResult>) -> Vec<QueuedCompletion> {
    let mut unanswered = Vec::new();
    let mut answers = answers.into_iter();
    for waiting in sent {
        let Some(CompletionResult { status, error, next }) = answers.next() else {
            unanswered.push(waiting);
            continue;
        };
        let reported = match status {
            CompletionStatus::Taken => ReportOutcome::Accepted,
            CompletionStatus::Late => ReportOutcome::Late,
            CompletionStatus::Refused => {
                ReportOutcome::Refused(error.unwrap_or_else(|| "without a reason".to_owned()))
            }
            CompletionStatus::Again => {
                unanswered.push(waiting);
                continue;
            }
        };
        // The caller may have stopped waiting.
        let _ = waiting.answer.send(ReportReply { reported, next });
    }
    unanswered
}

/// Returns `true` if the server rejected the request body rather than the worker.
fn is_about_the_body(error: &ClientError) -> bool {
    matches!(error.status(), Some(400 | 413 | 422))
}

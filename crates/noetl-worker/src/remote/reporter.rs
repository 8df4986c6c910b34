//! Sends how commands ended, many at a time, until each is taken or cannot count any more.
//!
//! What waits here is bounded by the worker's places: a command keeps its place until its report is
//! answered. While a request is under way the next ones gather, so that the busier a worker is, the
//! fewer requests each report costs.

use std::sync::Arc;

use noetl_api::ends::{EndAnswer, EndGiven, EndStatus, EndsRequest};
use noetl_api::{ClientError, work};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::backoff::Backoff;
use super::link::{Link, chain};

/// Reports that wait to be sent; those behind them wait with their commands.
const QUEUE_MAX: usize = 1024;

/// Reports of one request.
const BATCH_MAX: usize = 256;

/// Bytes of one request, well below what servers take. One that is larger goes alone.
const BYTES_MAX: usize = 1 << 20;

/// Requests under way at a time: what one waits for must not hold up the others.
const SENDERS: usize = 4;

/// What became of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reported {
    /// It counts.
    Taken,
    /// The command was over.
    Late,
    /// It cannot be taken as it is, and why.
    Refused(String),
}

/// Sends reports. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    queue: mpsc::Sender<Waiting>,
}

struct Waiting {
    end: Box<RawValue>,
    answer: oneshot::Sender<Reported>,
}

impl Reporter {
    /// A reporter whose senders run until this fires.
    pub(crate) fn start(link: &Arc<Link>, stop: &CancellationToken) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..SENDERS {
            let sender = Sender { link: link.clone(), waiting: waiting.clone() };
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = sender.run() => {}
                    () = stop.cancelled() => {}
                }
            });
        }
        Self { queue }
    }

    /// Sends a report until it is answered; `None` when this stops before.
    pub(crate) async fn report(&self, end: &EndGiven) -> Option<Reported> {
        let end = match serde_json::value::to_raw_value(end) {
            Ok(end) => end,
            Err(error) => return Some(Reported::Refused(error.to_string())),
        };
        let (answer, answered) = oneshot::channel();
        self.queue.send(Waiting { end, answer }).await.ok()?;
        answered.await.ok()
    }
}

struct Sender {
    link: Arc<Link>,
    waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>,
}

impl Sender {
    async fn run(&self) {
        while let Some(batch) = self.next().await {
            self.send(batch).await;
        }
    }

    /// What waits, as far as it fits into one request.
    async fn next(&self) -> Option<Vec<Waiting>> {
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

    /// Sends a batch until every report in it is answered.
    async fn send(&self, mut batch: Vec<Waiting>) {
        let mut backoff = Backoff::default();
        let mut one_by_one = false;
        loop {
            // Whoever waited may have given up, because the command is somebody else's.
            batch.retain(|waiting| !waiting.answer.is_closed());
            if batch.is_empty() {
                return;
            }
            let count = if one_by_one { 1 } else { batch.len() };
            match self.ask(&batch[..count]).await {
                Ok(answers) => {
                    backoff.reset();
                    let sent: Vec<Waiting> = batch.drain(..count).collect();
                    let mut again = answered(sent, answers);
                    if !again.is_empty() {
                        batch.append(&mut again);
                        backoff.pause().await;
                    }
                }
                Err(error) if is_about_the_body(&error) && count > 1 => one_by_one = true,
                Err(error) if is_about_the_body(&error) => {
                    let waiting = batch.remove(0);
                    // Whoever waited may have gone.
                    let _ = waiting.answer.send(Reported::Refused(error.to_string()));
                }
                Err(error) => {
                    // One that passes was noted as the server's absence.
                    if !error.is_passing() {
                        warn!(error = chain(&error), "the server does not take reports");
                    }
                    backoff.pause().await;
                }
            }
        }
    }

    async fn ask(&self, batch: &[Waiting]) -> Result<Vec<EndAnswer>, ClientError> {
        let request = EndsRequest {
            worker_id: self.link.name.clone(),
            ends: batch.iter().map(|waiting| waiting.end.clone()).collect(),
        };
        Ok(self.link.ask(work::report(&request)).await?.ends)
    }
}

/// Tells each what became of its report; those that are to be sent again come back.
fn answered(sent: Vec<Waiting>, answers: Vec<EndAnswer>) -> Vec<Waiting> {
    let mut again = Vec::new();
    let mut answers = answers.into_iter();
    for waiting in sent {
        let reported = match answers.next() {
            Some(EndAnswer { status: EndStatus::Taken, .. }) => Reported::Taken,
            Some(EndAnswer { status: EndStatus::Late, .. }) => Reported::Late,
            Some(EndAnswer { status: EndStatus::Refused, error }) => {
                Reported::Refused(error.unwrap_or_else(|| "without a reason".to_owned()))
            }
            Some(EndAnswer { status: EndStatus::Again, .. }) | None => {
                again.push(waiting);
                continue;
            }
        };
        // Whoever waited may have gone.
        let _ = waiting.answer.send(reported);
    }
    again
}

/// Whether the server would take something else from the same worker.
fn is_about_the_body(error: &ClientError) -> bool {
    matches!(error.status(), Some(400 | 413 | 422))
}

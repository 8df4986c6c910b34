//! Sends how commands ended, many at a time, until each is taken or cannot count any more.
//!
//! What waits here is bounded by the worker's places: a command keeps its place until its report is
//! answered. While a request is under way the next ones gather, so that the busier a worker is, the
//! fewer requests each report costs.

use std::sync::Arc;

use noetl_api::ends::{EndAnswer, EndGiven, EndStatus, EndsRequest, NextWanted};
use noetl_api::workers::LeasedCommand;
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
    Taken,
    /// The command was over.
    Late,
    /// It cannot be taken as it is, and why.
    Refused(String),
}

/// What a report is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What became of it.
    pub(crate) reported: Reported,
    /// What this worker holds in its place.
    pub(crate) next: Option<Box<LeasedCommand>>,
}

impl From<Reported> for Answer {
    fn from(reported: Reported) -> Self {
        Self { reported, next: None }
    }
}

/// Sends reports. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reporter {
    queue: mpsc::Sender<Waiting>,
}

struct Waiting {
    end: Box<RawValue>,
    /// Whether its place is free for another.
    takes_next: bool,
    answer: oneshot::Sender<Answer>,
}

impl Reporter {
    /// A reporter whose senders run until this fires.
    pub(crate) fn start(link: &Arc<Link>, pool: Option<&String>, stop: &CancellationToken) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..SENDERS {
            let next = NextWanted { pool: pool.cloned(), kinds: None };
            let sender = Sender { link: link.clone(), next, waiting: waiting.clone() };
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

    /// Sends a report until it is answered; `None` when this stops before. A command may come with the
    /// answer if it `takes_next`.
    pub(crate) async fn report(&self, end: &EndGiven, takes_next: bool) -> Option<Answer> {
        let end = match serde_json::value::to_raw_value(end) {
            Ok(end) => end,
            Err(error) => return Some(Reported::Refused(error.to_string()).into()),
        };
        let (answer, answered) = oneshot::channel();
        self.queue.send(Waiting { end, takes_next, answer }).await.ok()?;
        answered.await.ok()
    }
}

struct Sender {
    link: Arc<Link>,
    /// What is taken in the place of what has ended.
    next: NextWanted,
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
                    let _ = waiting.answer.send(Reported::Refused(error.to_string()).into());
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
            next: batch.iter().all(|waiting| waiting.takes_next).then(|| self.next.clone()),
        };
        Ok(self.link.ask(work::report(&request)).await?.ends)
    }
}

/// Tells each what became of its report; those that are to be sent again come back.
fn answered(sent: Vec<Waiting>, answers: Vec<EndAnswer>) -> Vec<Waiting> {
    let mut again = Vec::new();
    let mut answers = answers.into_iter();
    for waiting in sent {
        let Some(EndAnswer { status, error, next }) = answers.next() else {
            again.push(waiting);
            continue;
        };
        let reported = match status {
            EndStatus::Taken => Reported::Taken,
            EndStatus::Late => Reported::Late,
            EndStatus::Refused => {
                Reported::Refused(error.unwrap_or_else(|| "without a reason".to_owned()))
            }
            EndStatus::Again => {
                again.push(waiting);
                continue;
            }
        };
        // Whoever waited may have gone.
        let _ = waiting.answer.send(Answer { reported, next });
    }
    again
}

/// Whether the server would take something else from the same worker.
fn is_about_the_body(error: &ClientError) -> bool {
    matches!(error.status(), Some(400 | 413 | 422))
}

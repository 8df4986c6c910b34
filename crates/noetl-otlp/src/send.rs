//! The task that sends spans.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::ExponentialBackoff;
use noetl_model::trace::Span;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::counters::SpanCounters;
use crate::encode;
use crate::messages::{ExportTraceServiceResponse, Resource};

/// Maximum number of attempts to send a batch. The batch is dropped if the collector stays
/// unavailable longer; new spans wait in the queue, up to its capacity.
const TRIES: u32 = 4;

/// Maximum delay before a retry, whatever the collector requests.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// Backoff before a retry, unless the collector requests a delay.
const RETRY: ExponentialBackoff = ExponentialBackoff::new(Duration::from_secs(1), DELAY_MAX);

/// Maximum number of bytes read of a response; a valid one has a few bytes.
const ANSWER_MAX: usize = 64 << 10;

/// Time to send the remaining spans on shutdown.
const LAST_WORDS: Duration = Duration::from_secs(3);

const TOO_LATE: &str = "it takes too long at the end";

pub(crate) struct SpanSender {
    pub(crate) http: Client,
    pub(crate) url: Url,
    pub(crate) resource: Resource,
    pub(crate) batch: usize,
    pub(crate) delay: Duration,
    pub(crate) counts: Arc<SpanCounters>,
    pub(crate) closing: CancellationToken,
    /// Whether the last batch failed. Limits the server log to one line per outage.
    pub(crate) is_away: bool,
}

enum Tried {
    /// The collector accepted the batch, except for this number of spans.
    Taken { refused: usize },
    /// The collector rejected the batch permanently.
    Refused(String),
    /// The attempt failed and can be retried, after `pause` if the collector requested one.
    Later { why: String, pause: Option<Duration> },
}

impl SpanSender {
    pub(crate) async fn run(mut self, mut waiting: mpsc::Receiver<Span>) {
        let closing = self.closing.clone();
        let mut spans = Vec::new();
        loop {
            tokio::select! {
                count = waiting.recv_many(&mut spans, self.batch) => if count == 0 { break },
                () = closing.cancelled() => break,
            }
            self.gather(&mut waiting, &mut spans).await;
            self.send(std::mem::take(&mut spans)).await;
        }
        self.end(waiting, spans).await;
    }

    /// Waits until the batch is full or the first span has waited for the configured delay.
    async fn gather(&self, waiting: &mut mpsc::Receiver<Span>, spans: &mut Vec<Span>) {
        let until = Instant::now() + self.delay;
        while spans.len() < self.batch {
            let room = self.batch - spans.len();
            tokio::select! {
                more = timeout_at(until, waiting.recv_many(spans, room)) => {
                    if !more.is_ok_and(|received| received > 0) {
                        return;
                    }
                }
                () = self.closing.cancelled() => return,
            }
        }
    }

    /// Sends a batch, with retries.
    async fn send(&mut self, spans: Vec<Span>) {
        let body = encode::request(&self.resource, &spans);
        for tries in 1..=TRIES {
            let tried = tokio::select! {
                tried = self.attempt(body.clone()) => tried,
                () = self.last_words() => Tried::Refused(TOO_LATE.to_owned()),
            };
            match tried {
                Tried::Taken { refused } => return self.record_accepted(spans.len(), refused),
                Tried::Later { pause, .. } if tries < TRIES && !self.closing.is_cancelled() => {
                    let delay = pause.unwrap_or(RETRY.delay(tries)).min(DELAY_MAX);
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        // Retries at once, for the last time.
                        () = self.closing.cancelled() => {}
                    }
                }
                Tried::Refused(why) | Tried::Later { why, .. } => {
                    return self.lost(spans.len(), &why);
                }
            }
        }
    }

    /// Waits until shutdown was requested and the grace period of a request has passed.
    async fn last_words(&self) {
        self.closing.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    }

    /// Sends the remaining spans, trying each batch once, within a few seconds.
    async fn end(&mut self, mut waiting: mpsc::Receiver<Span>, mut spans: Vec<Span>) {
        waiting.close();
        while let Ok(span) = waiting.try_recv() {
            spans.push(span);
        }
        let until = Instant::now() + LAST_WORDS;
        let batches: Vec<Vec<Span>> = spans.chunks(self.batch).map(<[Span]>::to_vec).collect();
        for batch in batches {
            let body = encode::request(&self.resource, &batch);
            match timeout_at(until, self.attempt(body)).await {
                Ok(Tried::Taken { refused }) => self.record_accepted(batch.len(), refused),
                Ok(Tried::Refused(why) | Tried::Later { why, .. }) => self.lost(batch.len(), &why),
                Err(_) => self.lost(batch.len(), TOO_LATE),
            }
        }
    }

    async fn attempt(&self, body: Vec<u8>) -> Tried {
        let request = self.http.post(self.url.clone());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Tried::Later { why: root_cause(&error), pause: None },
        };
        let status = response.status();
        if status.is_success() {
            return Tried::Taken { refused: refused(response).await };
        }
        let why = format!("it answered {status}");
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let asked = response.headers().get(RETRY_AFTER);
                let asked = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
                Tried::Later { why, pause: asked.map(Duration::from_secs) }
            }
            _ => Tried::Refused(why),
        }
    }

    fn record_accepted(&mut self, spans: usize, refused: usize) {
        let refused = refused.min(spans);
        SpanCounters::add(&self.counts.exported, spans - refused);
        SpanCounters::add(&self.counts.failed, refused);
        if std::mem::take(&mut self.is_away) {
            info!("span export recovered");
        }
    }

    fn lost(&mut self, spans: usize, why: &str) {
        SpanCounters::add(&self.counts.failed, spans);
        if !std::mem::replace(&mut self.is_away, true) {
            let host = self.url.host_str().unwrap_or_default();
            warn!(host, why, "span export failed, dropping spans");
        }
    }
}

/// Returns the number of spans in a batch that the collector reports as rejected. A response
/// without that number, or one that cannot be decoded, counts as accepting all.
async fn refused(mut response: Response) -> usize {
    let mut answer = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        answer.extend_from_slice(&part);
        if answer.len() > ANSWER_MAX {
            return 0;
        }
    }
    let answer = ExportTraceServiceResponse::decode(&answer[..]).unwrap_or_default();
    let refused = answer.partial_success.map_or(0, |partly| partly.rejected_spans);
    usize::try_from(refused).unwrap_or_default()
}

/// Returns the message of the innermost cause. Omits URLs, which may contain a token.
fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "it does not answer".to_owned(),
        None => cause.to_string(),
    }
}

//! Publishes the outbox to the event stream, for deployments without an external publisher.
//!
//! A row is claimed for a limited time, published, and marked as published once the stream has
//! stored it. If a process dies in between, its claim expires and the row is published again under
//! the same message ID, which the stream deduplicates. A row that fails is retried with backoff and
//! does not block others. A row that the bus rejects because of its content is retried by
//! reference, in a smaller form, and then skipped; otherwise it would count as pending forever.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_bus::{EventStream, PublishError, StreamMessage};
use noetl_journal::type_label;
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Origin};
use noetl_store::outbox::subject;
use noetl_store::tail::by_reference;
use noetl_store::{OutboxRow, PublishingStore, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::event_stream::{PublisherOptions, RETRY, payload_limit};
use crate::outbox::delay;
use crate::stream_metrics::StreamMetrics;

/// Maximum number of rows claimed at a time. Their payloads are in memory together.
const CLAIM_MAX: usize = 200;

/// Maximum number of attempts for a row that the bus rejects.
const TRIES_MAX: u32 = 3;

/// Maximum number of rows whose rejections are counted. Beyond it, all counts start over.
const REFUSED_MAX: usize = 100_000;

/// Payload size in bytes that every bus accepts.
const SMALL: usize = 64 * 1024;

pub(crate) struct Relay {
    pub(crate) store: Arc<dyn PublishingStore>,
    pub(crate) bus: Arc<dyn EventStream>,
    pub(crate) options: PublisherOptions,
    pub(crate) metrics: Arc<StreamMetrics>,
    pub(crate) woken: watch::Receiver<()>,
    /// Number of rejections by row, for rows that the bus rejected because of their content. Other
    /// failures do not count: a row that waited for an unavailable bus was not rejected.
    pub(crate) refused: HashMap<i64, u32>,
}

impl Relay {
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            () = self.publish_all() => {}
            () = closing.cancelled() => {}
        }
    }

    async fn publish_all(&mut self) {
        let mut failures: u32 = 0;
        let mut is_ensured = false;
        loop {
            // No row is claimed while the bus is unavailable.
            self.bus.connected().await;
            if !is_ensured {
                match self.bus.ensure(&self.options.stream()).await {
                    Ok(()) => is_ensured = true,
                    Err(error) => {
                        failures += 1;
                        complain(failures, &error);
                        tokio::time::sleep(RETRY.delay(failures)).await;
                        continue;
                    }
                }
            }
            self.woken.borrow_and_update();
            match self.publish_some().await {
                Ok(Some(PublishError::NoStream)) => is_ensured = false,
                Ok(Some(error)) => {
                    failures += 1;
                    complain(failures, &error);
                    tokio::time::sleep(RETRY.delay(failures)).await;
                }
                Ok(None) => failures = 0,
                Err(Idle::Empty) => {
                    failures = 0;
                    tokio::select! {
                        () = tokio::time::sleep(self.options.poll) => {}
                        Ok(()) = self.woken.changed() => {}
                    }
                }
                Err(Idle::Store(error)) => {
                    failures += 1;
                    complain(failures, &error);
                    tokio::time::sleep(RETRY.delay(failures)).await;
                }
            }
        }
    }

    /// Publishes the next rows. Returns the first error that is not specific to a row.
    async fn publish_some(&mut self) -> Result<Option<PublishError>, Idle> {
        let rows = self.store.claim(self.options.batch.min(CLAIM_MAX)).await?;
        if rows.is_empty() {
            return Err(Idle::Empty);
        }
        let limit = payload_limit(&*self.bus);
        let (mut sent, mut messages) = (Vec::with_capacity(rows.len()), Vec::new());
        // Rows that are done: published or skipped.
        let mut over = Vec::new();
        for row in rows {
            match self.message(&row, limit) {
                Some(message) => {
                    messages.push(message);
                    sent.push(row);
                }
                None => {
                    self.skip(&row, "the payload is too large even by reference");
                    over.push(row.id);
                }
            }
        }
        let mut first = None;
        for (row, answer) in sent.iter().zip(self.bus.publish(messages).await) {
            match answer {
                Ok(_) => {
                    self.refused.remove(&row.id);
                    over.push(row.id);
                    self.metrics.metrics.outbox_published.inc();
                    self.metrics.add_published(type_label(
                        PayloadIdentity::from_row(row).event_type.as_deref(),
                    ));
                }
                // An error specific to one row does not block the next.
                Err(error) if error.is_own_fault() => {
                    if self.is_given_up(row.id) {
                        self.skip(row, &error.to_string());
                        over.push(row.id);
                    } else {
                        self.fail(row, &error.to_string()).await?;
                    }
                }
                Err(error) => {
                    self.fail(row, &error.to_string()).await?;
                    first.get_or_insert(error);
                }
            }
        }
        self.store.mark_published(&over).await?;
        Ok(first)
    }

    /// Counts a rejection. Returns `true` if the row has no attempts left.
    fn is_given_up(&mut self, row: i64) -> bool {
        // Bounds the map: rows that another process published are never removed individually.
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear();
        }
        let tries = self.refused.entry(row).or_default();
        *tries += 1;
        let is_over = *tries >= TRIES_MAX;
        if is_over {
            self.refused.remove(&row);
        }
        is_over
    }

    fn skip(&self, row: &OutboxRow, error: &str) {
        warn!(outbox.id = row.id, event.id = %row.event, error, "skipping outbox row");
        self.metrics.add_skipped(type_label(PayloadIdentity::from_row(row).event_type.as_deref()));
    }

    async fn fail(&self, row: &OutboxRow, error: &str) -> Result<(), StoreError> {
        let attempts = i32::try_from(row.attempts).unwrap_or(i32::MAX);
        let delay = delay(attempts, RETRY_MAX_SECONDS);
        self.store.mark_failed(row.id, error, delay).await.map(drop)
    }

    /// Returns the message of a row: whole if it fits, else by reference. A row that was rejected
    /// is made as small as possible, because the bus may accept less than it advertises.
    fn message(&self, row: &OutboxRow, limit: usize) -> Option<StreamMessage> {
        let said = PayloadIdentity::from_row(row);
        let whole = without_tags(&row.payload);
        let is_refused = self.refused.contains_key(&row.id);
        let least = is_refused.then(|| by_reference(&whole, SMALL.min(limit))).flatten();
        let payload = match least {
            Some(least) => least,
            None if whole.len() <= limit => whole.to_string(),
            None => by_reference(&whole, limit)?,
        };
        if payload.len() < whole.len() {
            self.metrics.add_referenced(type_label(said.event_type.as_deref()));
        }
        let id = match said.origin.as_deref() {
            Some(origin) if origin == Origin::Decided.as_str() => row.event.to_string(),
            _ => format!("{}:{}", row.event, row.execution.map_or(0, ExecutionId::get)),
        };
        let named = row.subject.clone().filter(|subject| !subject.is_empty());
        let subject = named.unwrap_or_else(|| subject(said.event_type.as_deref()));
        Some(StreamMessage { subject, id, payload: payload.into_bytes() })
    }
}

/// Fields of a payload that determine the message ID, which equals the one the tailer uses.
#[derive(Default, serde::Deserialize)]
struct PayloadIdentity {
    event_type: Option<String>,
    origin: Option<String>,
}

impl PayloadIdentity {
    fn from_row(row: &OutboxRow) -> Self {
        serde_json::from_str(&row.payload).unwrap_or_default()
    }
}

/// Maximum retry delay of a row, in seconds.
const RETRY_MAX_SECONDS: i32 = 300;

/// Reasons no row was published.
enum Idle {
    Empty,
    Store(StoreError),
}

impl From<StoreError> for Idle {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn complain(failures: u32, error: &dyn std::error::Error) {
    if failures == 1 {
        warn!(%error, "outbox publishing failed, retrying");
    }
}

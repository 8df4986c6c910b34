//! Publishes what is in the outbox, for whoever keeps one and has no publisher of their own.
//!
//! A row is claimed for a while, published, and said to be published once the stream has it. Who dies
//! in between leaves a claim that ends, and the row is published again under the id the stream knows
//! already. A row that fails comes back later, each time after a longer while, and holds up nobody.

use std::sync::Arc;

use noetl_bus::{EventStream, Message, PublishError};
use noetl_model::Origin;
use noetl_store::tail::by_reference;
use noetl_store::{OutboxRow, Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::metrics::type_label;
use crate::outbox::delay;
use crate::publishing::{PublishingOptions, pause, payload_limit};
use crate::stream_metrics::StreamMetrics;

/// Rows claimed at a time, at most: their payloads are in memory together.
const CLAIM_MAX: usize = 200;

pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn EventStream>,
    pub(crate) options: PublishingOptions,
    pub(crate) metrics: Arc<StreamMetrics>,
    pub(crate) woken: watch::Receiver<()>,
}

impl Relay {
    /// Publishes until this is told to close.
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
            // Nothing is claimed for a bus that is not there.
            self.bus.connected().await;
            if !is_ensured {
                match self.bus.ensure(&self.options.stream()).await {
                    Ok(()) => is_ensured = true,
                    Err(error) => {
                        failures += 1;
                        complain(failures, &error);
                        tokio::time::sleep(pause(failures)).await;
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
                    tokio::time::sleep(pause(failures)).await;
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
                    tokio::time::sleep(pause(failures)).await;
                }
            }
        }
    }

    /// Publishes the next rows. What the bus said of the first that came to nothing.
    async fn publish_some(&self) -> Result<Option<PublishError>, Idle> {
        let rows = self.store.claim(self.options.batch.min(CLAIM_MAX)).await?;
        if rows.is_empty() {
            return Err(Idle::Empty);
        }
        let limit = payload_limit(&*self.bus);
        let (mut sent, mut messages) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            match self.message(&row, limit) {
                Some(message) => {
                    messages.push(message);
                    sent.push(row);
                }
                None => self.fail(&row, "the payload is too large even by reference").await?,
            }
        }
        let mut published = Vec::new();
        let mut first = None;
        for (row, answer) in sent.iter().zip(self.bus.publish(messages).await) {
            match answer {
                Ok(_) => {
                    published.push(row.id);
                    self.metrics.metrics.outbox_published.inc();
                    self.metrics.add_published(type_label(Said::of(row).event_type.as_deref()));
                }
                Err(error) => {
                    self.fail(row, &error.to_string()).await?;
                    // What is wrong with one row keeps nobody from the next.
                    if !error.is_own_fault() {
                        first.get_or_insert(error);
                    }
                }
            }
        }
        self.store.mark_published(&published).await?;
        Ok(first)
    }

    async fn fail(&self, row: &OutboxRow, error: &str) -> Result<(), StoreError> {
        let attempts = i32::try_from(row.attempts).unwrap_or(i32::MAX);
        let delay = delay(attempts, RETRY_MAX_SECONDS);
        self.store.mark_failed(row.id, error, delay).await.map(drop)
    }

    fn message(&self, row: &OutboxRow, limit: usize) -> Option<Message> {
        let said = Said::of(row);
        let payload = if row.payload.len() <= limit {
            row.payload.clone()
        } else {
            let smaller = by_reference(&row.payload, limit)?;
            self.metrics.add_referenced(type_label(said.event_type.as_deref()));
            smaller
        };
        let id = match said.origin.as_deref() {
            Some(origin) if origin == Origin::Decided.as_str() => row.event.to_string(),
            _ => format!("{}:{}", row.event, row.execution),
        };
        Some(Message { subject: row.subject.clone(), id, payload: payload.into_bytes() })
    }
}

/// What a payload says of its event; the tailer gives a row the same id.
#[derive(Default, serde::Deserialize)]
struct Said {
    event_type: Option<String>,
    origin: Option<String>,
}

impl Said {
    fn of(row: &OutboxRow) -> Self {
        serde_json::from_str(&row.payload).unwrap_or_default()
    }
}

/// The longest a failed row waits.
const RETRY_MAX_SECONDS: i32 = 300;

/// Why nothing was published.
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
        warn!(%error, "the outbox is not published; trying again");
    }
}

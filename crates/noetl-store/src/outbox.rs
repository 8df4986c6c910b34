//! Transactional outbox: committed events to publish to a message bus.
//!
//! With the outbox enabled, a store writes one row per event in the event's own transaction, so
//! that no event is lost and no uncommitted event is published. A publisher claims rows, publishes
//! them, and marks them as published. A claim is a lease: the rows of a publisher that died can be
//! claimed again. A row may therefore be published twice; consumers deduplicate by event ID.
//!
//! [`subject`], [`Envelope`], and [`cut`] define the content of a row for all stores.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::placeholder::without_tags;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandId, EventId, ExecutionId, Map, Tenant, Timestamp, Value};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::StoreError;

/// Outbox options of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxOptions {
    /// Whether events are written to the outbox. Default `false`: a table without a publisher only
    /// grows.
    pub is_on: bool,
    /// Duration of a claim. Default 60 s: long enough for a slow bus, short enough for a quick
    /// takeover.
    pub lease: Duration,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self { is_on: false, lease: Duration::from_secs(60) }
    }
}

/// Codec of the payloads that stores write.
pub const CODEC: &str = "json";

/// Maximum size of the payloads in one claim, in bytes: the store and the publisher hold them in
/// memory together.
pub const CLAIM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of characters stored of an error.
const ERROR_CHARS_MAX: usize = 2000;

/// Maximum number of characters of an event type in a subject; no accepted type has more.
const TYPE_CHARS_MAX: usize = 200;

/// Returns the subject on which an event of this type is published. The dots of the type separate
/// subject tokens. Characters that are invalid in a subject become `_`, so that no event type can
/// stop or redirect a publisher.
pub fn subject(event_type: Option<&str>) -> String {
    let event_type = event_type.unwrap_or_default();
    let short: String = event_type.chars().take(TYPE_CHARS_MAX).collect();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
    let tokens = short.split('.').map(|token| match token {
        "" => "_".to_owned(),
        token => token.chars().map(|c| if is_safe(c) { c } else { '_' }).collect(),
    });
    let tokens: Vec<String> = tokens.collect();
    format!("noetl.events.{}", tokens.join("."))
}

/// Truncates an error to the part that is stored.
pub fn cut(error: &str) -> &str {
    match error.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => &error[..end],
        None => error,
    }
}

/// An event as published: its row, with values that depend on its log.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    pub tenant: &'a Tenant,
    /// Catalog entry of the execution; 0 if unknown.
    pub catalog: CatalogId,
    /// Previous event in the log.
    pub previous: Option<EventId>,
    pub row: &'a EventRow,
}

/// Keys that a consumer of the stream expects, with absent values as null, followed by this
/// server's own.
#[derive(Serialize)]
struct OutboxBody<'a> {
    event_id: EventId,
    execution_id: ExecutionId,
    catalog_id: Option<CatalogId>,
    event_type: Option<&'a str>,
    status: Option<&'a str>,
    created_at: Timestamp,
    node_id: Option<&'a str>,
    node_name: Option<&'a str>,
    node_type: Option<&'a str>,
    parent_event_id: Option<EventId>,
    prev_event_id: Option<EventId>,
    parent_execution_id: Option<ExecutionId>,
    context: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    meta: Option<&'a RawValue>,
    error: Option<&'a str>,
    worker_id: Option<&'a str>,
    command_id: Option<CommandId>,
    tenant_id: &'a str,
    seq: u64,
    origin: &'a str,
}

impl Envelope<'_> {
    /// Returns the payload as compact JSON text. The row's own JSON is included unchanged, except
    /// for the tags of placeholders, which only the event log contains.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        fn raw(text: &Option<String>) -> Result<Option<&RawValue>, serde_json::Error> {
            text.as_deref().map(serde_json::from_str).transpose()
        }
        let row = self.row;
        let body = OutboxBody {
            event_id: row.event_id,
            execution_id: row.execution_id,
            // An imported row may lack it.
            catalog_id: Some(self.catalog).filter(|id| id.get() != 0),
            event_type: row.event_type.as_deref(),
            status: row.status.as_deref(),
            created_at: row.produced_at().unwrap_or(row.created_at),
            node_id: row.node_id(),
            node_name: row.node_name.as_deref(),
            node_type: row.node_type.as_deref(),
            parent_event_id: None,
            prev_event_id: self.previous,
            parent_execution_id: row.parent_execution_id,
            context: raw(&row.context)?,
            result: raw(&row.result)?,
            meta: raw(&row.meta)?,
            error: row.error.as_deref(),
            worker_id: row.worker_id.as_deref(),
            command_id: row.command_id,
            tenant_id: self.tenant.as_str(),
            seq: row.seq.0,
            origin: row.origin.as_str(),
        };
        let Some(more) = &row.more else { return serde_json::to_string(&body).map(shown) };
        // Columns that an imported row brought along override values derived here.
        let mut whole = serde_json::to_value(&body)?;
        if let Value::Object(whole) = &mut whole {
            whole.extend(serde_json::from_str::<Map>(more)?);
        }
        serde_json::to_string(&whole).map(shown)
    }
}

fn shown(text: String) -> String {
    match without_tags(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// Row ID: larger means written later. Within an execution, IDs follow the order of the log.
    pub id: i64,
    pub tenant: Tenant,
    pub event: EventId,
    /// Execution of the event. A row written by another program may have none.
    pub execution: Option<ExecutionId>,
    /// Subject to publish on. A row written by another program may have none.
    pub subject: Option<String>,
    /// Payload as JSON text. A publisher sends it unchanged; a payload that cannot be decoded must
    /// not block the claims of other rows.
    pub payload: String,
    /// Encoding to use for the payload.
    pub codec: String,
    /// Number of claims, including the current one.
    pub attempts: u32,
    /// Message of the last failure.
    pub error: Option<String>,
}

/// Rows to publish. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait OutboxStore: Send + Sync {
    /// Claims up to `limit` rows with [`CLAIM_BYTES_MAX`] of payload, like
    /// [`OutboxStore::claim_within`].
    async fn claim(&self, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.claim_within(limit, CLAIM_BYTES_MAX).await
    }

    /// Claims up to `limit` rows, smallest ID first: pending and failed rows whose time has come,
    /// and rows whose claim has expired. Two callers never get the same row while its claim lasts.
    /// The payloads have at most `bytes` in total, except that a single row is claimed whatever its
    /// size, because otherwise it would never be published.
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// Marks rows as published, which is final, whichever publisher claimed them. Returns the
    /// number of rows that were not published before; repeated and unknown IDs do not count.
    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError>;

    /// Marks a row as failed, so that it can be claimed again `delay` from now, and stores the
    /// first 2,000 characters of the error. Returns `false` without effect if the row is unknown or
    /// published.
    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError>;

    /// Returns the number of rows that [`OutboxStore::claim`] could return.
    async fn pending(&self) -> Result<u64, StoreError>;

    /// Removes rows that were published at least `older_than` ago and returns their number.
    /// Unpublished rows stay, however old they are.
    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError>;
}

#[cfg(test)]
mod tests;

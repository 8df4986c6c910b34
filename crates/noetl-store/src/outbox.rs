//! The outbox: committed events on their way to publishers outside.
//!
//! With the outbox on, a store writes one row per event in the event's own transaction, so none is
//! lost and none is published that was not committed. A publisher claims rows, publishes them and
//! says so. A claim is a lease: the rows of a publisher that died are claimed again. So a row may be
//! published twice, and its event's id tells.
//!
//! [`subject`], [`Envelope`] and [`cut`] are what every store writes; none decides it again.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::placeholder::without_tags;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandId, EventId, ExecutionId, Map, Tenant, Timestamp, Value};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::StoreError;

/// How a store keeps its outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxOptions {
    /// Whether events are written to it. Off by default: a table nobody empties only grows.
    pub is_on: bool,
    /// How long a claim lasts. Default: 60 s, long enough for a slow bus, short enough to notice.
    pub lease: Duration,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self { is_on: false, lease: Duration::from_secs(60) }
    }
}

/// The codec of the payloads stores write.
pub const CODEC: &str = "json";

/// Bytes of payload in one claim: they are in memory together, here and with whoever claims.
pub const CLAIM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 2000;

/// Characters of an event type that go into its subject; no accepted type has more.
const TYPE_CHARS_MAX: usize = 200;

/// The subject an event of this type is published on. The type's dots part it into tokens; what a
/// subject must not hold becomes `_`, so that no event type can stop or redirect a publisher.
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

/// The part of an error that is kept.
pub fn cut(error: &str) -> &str {
    match error.char_indices().nth(ERROR_CHARS_MAX) {
        Some((end, _)) => &error[..end],
        None => error,
    }
}

/// An event as it is published: its row, with what follows from its place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    pub tenant: &'a Tenant,
    /// The catalog entry of its execution.
    pub catalog: CatalogId,
    /// The event before it in its log.
    pub previous: Option<EventId>,
    pub row: &'a EventRow,
}

/// The keys a consumer of the stream expects, absent values as null, then our own.
#[derive(Serialize)]
struct Body<'a> {
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
    /// Returns the payload: compact JSON text. The row's own JSON goes in as it is, but for the tags
    /// of placeholders, which only the event log holds.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        fn raw(text: &Option<String>) -> Result<Option<&RawValue>, serde_json::Error> {
            text.as_deref().map(serde_json::from_str).transpose()
        }
        let row = self.row;
        let body = Body {
            event_id: row.event_id,
            execution_id: row.execution_id,
            // Nobody knows that of a row from elsewhere which does not say it.
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
        // What it came with wins over what follows from its place here.
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
    /// Its id: larger means written later. Within an execution it follows the order of the log.
    pub id: i64,
    pub tenant: Tenant,
    pub event: EventId,
    /// Its execution. A row that another program wrote may name none.
    pub execution: Option<ExecutionId>,
    /// Where to publish it. A row that another program wrote may name nothing.
    pub subject: Option<String>,
    /// What to publish, as JSON text: a publisher passes it on, and one that cannot be decoded
    /// must not keep others from being claimed.
    pub payload: String,
    /// How the payload is to be encoded.
    pub codec: String,
    /// How often it was claimed, this time included.
    pub attempts: u32,
    /// What the last failure said.
    pub error: Option<String>,
}

/// Rows on their way out. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Claims up to `limit` rows with [`CLAIM_BYTES_MAX`] of payload, as
    /// [`Outbox::claim_within`] does.
    async fn claim(&self, limit: usize) -> Result<Vec<OutboxRow>, StoreError> {
        self.claim_within(limit, CLAIM_BYTES_MAX).await
    }

    /// Claims up to `limit` rows, smallest id first: those that wait or failed and whose time has
    /// come, and those whose claim is over. Two callers never get the same row while its claim
    /// lasts. Their payloads have up to `bytes` together; one row is claimed however large it is,
    /// or it would never go out.
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError>;

    /// Says that rows are published, which is final, whoever claimed them. How many were not
    /// before; an id that is named twice or unknown does not count.
    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError>;

    /// Says that publishing failed: the row can be claimed again `delay` from now. The first 2000
    /// characters of the error are kept. False when it is unknown or published; then nothing
    /// changes.
    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError>;

    /// How many rows [`Outbox::claim`] could return.
    async fn pending(&self) -> Result<u64, StoreError>;

    /// Removes rows that were published `older_than` ago or earlier. How many. Others stay, however
    /// old they are.
    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError>;
}

#[cfg(test)]
mod tests;

//! Payload of a row on the event stream: every column of the published schema, and this server's
//! own.

use indexmap::IndexMap;
use noetl_model::row::{EventRow, PLAYBOOK_NODE, types};
use noetl_model::{Origin, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::TailRow;

/// Columns published in addition to the row's own; null unless the row has a value.
const FURTHER: [&str; 20] = [
    "stage_id",
    "frame_id",
    "current_index",
    "current_item",
    "context_value",
    "stack_trace",
    "distributed_state",
    "context_key",
    "trace_component",
    "stream_id",
    "aggregate_id",
    "aggregate_type",
    "schema_name",
    "producer",
    "causation_id",
    "correlation_id",
    "envelope_checksum",
    "stream_version",
    "payload_ref",
    "parent_event_id",
];

/// JSON columns. They are replaced by references first, the largest first.
const JSON: [&str; 3] = ["context", "result", "meta"];

/// Number of characters to which an oversized text is truncated.
const TEXT_CHARS_MAX: usize = 2000;

/// Returns the message ID, which deduplicates repeats. IDs of events decided here are globally
/// unique. IDs of reported and imported events are unique only within their execution, so the
/// execution ID is added to prevent collisions.
pub fn message_id(row: &EventRow) -> String {
    match row.origin {
        Origin::Decided => row.event_id.to_string(),
        Origin::Reported | Origin::Imported => format!("{}:{}", row.event_id, row.execution_id),
    }
}

impl TailRow {
    /// Returns the payload: compact JSON text with every column, absent ones as null. JSON columns
    /// are included unchanged.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        let row = &self.row;
        let mut body = EventBody::default();
        body.put("execution_id", row.execution_id)?;
        body.put("catalog_id", self.catalog.filter(|catalog| catalog.get() != 0))?;
        body.put("event_id", row.event_id)?;
        body.put("parent_event_id", ())?;
        body.put("parent_execution_id", row.parent_execution_id)?;
        body.put("created_at", local(row.produced_at().unwrap_or(row.created_at)))?;
        body.put("event_type", row.event_type.as_deref())?;
        body.put("node_id", node_id(row))?;
        body.put("node_name", row.node_name.as_deref())?;
        body.put("node_type", row.node_type.as_deref())?;
        body.put("status", row.status.as_deref())?;
        body.put("duration", row.duration)?;
        body.put_json("context", row.context.as_deref())?;
        body.put_json("result", row.result.as_deref())?;
        body.put_json("meta", row.meta.as_deref())?;
        body.put("prev_event_id", self.previous)?;
        body.put("command_id", row.command_id)?;
        body.put("worker_id", row.worker_id.as_deref())?;
        body.put("error", row.error.as_deref())?;
        body.put("tenant_id", self.tenant.as_str())?;
        body.put("organization_id", "default")?;
        body.put("idempotency_key", row.idempotency_key.map(|key| key.to_string()))?;
        body.put("schema_version", 1)?;
        body.put("event_time", zoned(row.created_at))?;
        body.put("ingest_time", zoned(row.created_at))?;
        for name in FURTHER {
            body.put(name, ())?;
        }
        if let Some(more) = row.more.as_deref() {
            body.lay_over(serde_json::from_str(more)?);
        }
        body.put("seq", (row.seq.0 > 0).then_some(row.seq.0))?;
        body.put("origin", row.origin.as_str())?;
        serde_json::to_string(&body.0)
    }
}

fn node_id(row: &EventRow) -> Option<&str> {
    match row.event_type.as_deref() {
        Some(types::PLAYBOOK_STARTED) if row.origin == Origin::Decided => Some(PLAYBOOK_NODE),
        _ => row.node_name.as_deref(),
    }
}

/// Formats a time like Postgres formats a `timestamp` in JSON: without a zone and without trailing
/// zeros in the fraction.
fn local(at: Timestamp) -> String {
    let text = at.to_string();
    let text = text.strip_suffix('Z').unwrap_or(&text);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// Formats a time like Postgres formats a `timestamptz` in JSON.
fn zoned(at: Timestamp) -> String {
    format!("{}+00:00", local(at))
}

/// Columns in insertion order; replacing one preserves its position.
#[derive(Default)]
struct EventBody(IndexMap<String, Box<RawValue>>);

impl EventBody {
    fn put(&mut self, name: &str, value: impl Serialize) -> Result<(), serde_json::Error> {
        self.0.insert(name.to_owned(), serde_json::value::to_raw_value(&value)?);
        Ok(())
    }

    /// Overrides columns with those that the row brought along, if they are columns of the stream,
    /// are not null, and do not identify the row.
    fn lay_over(&mut self, more: IndexMap<String, Box<RawValue>>) {
        for (name, value) in more {
            let is_own = ["execution_id", "event_id", "tenant_id"].contains(&name.as_str());
            if let Some(column) = self.0.get_mut(&name)
                && !is_own
                && value.get() != "null"
            {
                *column = value;
            }
        }
    }

    fn put_json(&mut self, name: &str, text: Option<&str>) -> Result<(), serde_json::Error> {
        let raw = RawValue::from_string(text.unwrap_or("null").to_owned())?;
        self.0.insert(name.to_owned(), raw);
        Ok(())
    }
}

/// Replacement of a column that is too large to publish.
#[derive(Serialize)]
struct Reference<'a> {
    execution_id: &'a RawValue,
    event_id: &'a RawValue,
    column: &'a str,
    /// Size of the column's JSON text, in bytes.
    bytes: usize,
    sha256: String,
    /// URL path of the event on this server.
    href: String,
}

/// Returns a payload of at most `limit` bytes instead of a larger one. Replaces oversized columns
/// by references, the largest first: `context` and `meta` become `{"reference": …}`; `result` also
/// retains its status, as its schema requires; texts are truncated. Returns `None` if the result is
/// still too large, or if the payload is not an object.
pub fn by_reference(payload: &str, limit: usize) -> Option<String> {
    let columns: IndexMap<String, Box<RawValue>> = serde_json::from_str(payload).ok()?;
    let mut body = EventBody(columns);
    let mut bytes = payload.len();
    let mut by_size: Vec<(bool, usize, String)> = body
        .0
        .iter()
        .map(|(name, value)| (JSON.contains(&name.as_str()), value.get().len(), name.clone()))
        .collect();
    by_size.sort_by_key(|(is_json, size, _)| std::cmp::Reverse((*is_json, *size)));
    for (is_json, size, name) in by_size {
        if bytes <= limit {
            break;
        }
        let smaller = match is_json {
            true => reference(&body, &name)?,
            false => cut(body.0.get(&name)?)?,
        };
        if smaller.get().len() < size {
            bytes -= size - smaller.get().len();
            body.0.insert(name, smaller);
        }
    }
    let smaller = serde_json::to_string(&body.0).ok()?;
    (smaller.len() <= limit).then_some(smaller)
}

fn reference(body: &EventBody, column: &str) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct Marker<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a RawValue>,
        reference: Reference<'a>,
    }
    let text = body.0.get(column)?.get();
    let execution_id = &**body.0.get("execution_id")?;
    // The API reads the log by sequence number: the page after the previous event starts with this
    // one.
    let seq = body.0.get("seq").and_then(|seq| seq.get().parse::<u64>().ok());
    let stretch = seq.map(|seq| format!("?after={}&limit=1", seq.saturating_sub(1)));
    let id = execution_id.get().trim_matches('"');
    let href = format!("/api/executions/{id}/events{}", stretch.unwrap_or_default());
    // Only `result` has a schema that consumers validate.
    let fields: Option<IndexMap<String, &RawValue>> =
        (column == "result").then(|| serde_json::from_str(text).ok()).flatten();
    let reference = Reference {
        execution_id,
        event_id: body.0.get("event_id")?,
        column,
        bytes: text.len(),
        sha256: hex(&Sha256::digest(text.as_bytes())),
        href,
    };
    let status = fields.as_ref().and_then(|fields| fields.get("status").copied());
    serde_json::value::to_raw_value(&Marker { status, reference }).ok()
}

/// Truncates a text. Returns other values unchanged.
fn cut(value: &RawValue) -> Option<Box<RawValue>> {
    let Ok(text) = serde_json::from_str::<String>(value.get()) else {
        return Some(value.to_owned());
    };
    let short: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if short.len() == text.len() {
        return Some(value.to_owned());
    }
    let digest = hex(&Sha256::digest(text.as_bytes()));
    let short = format!("{short}… [{} bytes, sha256 {digest}]", text.len());
    serde_json::value::to_raw_value(&short).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;

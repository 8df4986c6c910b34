//! A row as the event stream has it: every column of the published schema, and ours.

use indexmap::IndexMap;
use noetl_model::row::{EventRow, PLAYBOOK_NODE, types};
use noetl_model::{Origin, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::TailRow;

/// Columns that are published beside the row's own, null unless the row says otherwise.
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

/// Columns that hold JSON, and go out by reference first, largest first.
const JSON: [&str; 3] = ["context", "result", "meta"];

/// Characters that are left of a text that is too long.
const TEXT_CHARS_MAX: usize = 2000;

/// A message's id, by which a repeat is known. The ids of events that are decided here differ from
/// each other. Those that were handed to us need only differ within their execution, and must not
/// pass for another's.
pub fn message_id(row: &EventRow) -> String {
    match row.origin {
        Origin::Decided => row.event_id.to_string(),
        Origin::Reported | Origin::Imported => format!("{}:{}", row.event_id, row.execution_id),
    }
}

impl TailRow {
    /// The payload: compact JSON text with every column, absent ones as null. JSON columns go in as
    /// they are.
    pub fn payload(&self) -> Result<String, serde_json::Error> {
        let row = &self.row;
        let mut body = Body::default();
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

/// A time as the database writes a `timestamp` into JSON: without a zone, and without the zeros its
/// fraction ends with.
fn local(at: Timestamp) -> String {
    let text = at.to_string();
    let text = text.strip_suffix('Z').unwrap_or(&text);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// The same for a `timestamptz`.
fn zoned(at: Timestamp) -> String {
    format!("{}+00:00", local(at))
}

/// Columns in the order they were put; one that is put again keeps its place.
#[derive(Default)]
struct Body(IndexMap<String, Box<RawValue>>);

impl Body {
    fn put(&mut self, name: &str, value: impl Serialize) -> Result<(), serde_json::Error> {
        self.0.insert(name.to_owned(), serde_json::value::to_raw_value(&value)?);
        Ok(())
    }

    /// Lays the columns a row came with over what would stand there: those that are columns of the
    /// stream, say something, and are not what makes it this row.
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

/// What stands for a column that is too large to be published.
#[derive(Serialize)]
struct Reference<'a> {
    execution_id: &'a RawValue,
    event_id: &'a RawValue,
    column: &'a str,
    /// Bytes of the column's JSON text.
    bytes: usize,
    sha256: String,
    /// Where a server of ours has it.
    href: String,
}

/// A payload of at most `limit` bytes in place of one that is larger: columns that are too large are
/// replaced, the largest first, by what names them. `context` and `meta` become `{"reference": …}`;
/// a `result` keeps its status beside that, as its shape asks for; texts are cut. None when even that
/// is too large, or when the payload is not an object.
pub fn by_reference(payload: &str, limit: usize) -> Option<String> {
    let columns: IndexMap<String, Box<RawValue>> = serde_json::from_str(payload).ok()?;
    let mut body = Body(columns);
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

fn reference(body: &Body, column: &str) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    struct Marker<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a RawValue>,
        reference: Reference<'a>,
    }
    let text = body.0.get(column)?.get();
    let execution_id = &**body.0.get("execution_id")?;
    // The log is read by place: the events after the one before it begin with it.
    let seq = body.0.get("seq").and_then(|seq| seq.get().parse::<u64>().ok());
    let stretch = seq.map(|seq| format!("?after={}&limit=1", seq.saturating_sub(1)));
    let id = execution_id.get().trim_matches('"');
    let href = format!("/api/executions/{id}/events{}", stretch.unwrap_or_default());
    // Only a result has a shape that others check.
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

/// A text that is cut. What is no text stays as it is.
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

//! Parses a row of the event stream from JSON. This module lists every column; unknown columns are
//! dropped.

use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::{
    CommandId, DEPTH_MAX, EventId, ExecutionId, Map, Tenant, Timestamp, Value, is_deeper_than,
};
use noetl_remote::is_event_type;
use noetl_store::Import;

/// Reason a row is invalid, and the expected value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRow(String);

/// Columns with text values, imported into `more`.
const TEXTS: [&str; 16] = [
    "node_id",
    "organization_id",
    "stack_trace",
    "current_item",
    "context_value",
    "distributed_state",
    "context_key",
    "stream_id",
    "aggregate_id",
    "aggregate_type",
    "schema_name",
    "producer",
    "causation_id",
    "correlation_id",
    "idempotency_key",
    "envelope_checksum",
];

/// Columns with integer values, imported into `more`.
const NUMBERS: [&str; 8] = [
    "catalog_id",
    "parent_event_id",
    "prev_event_id",
    "stage_id",
    "frame_id",
    "stream_version",
    "schema_version",
    "current_index",
];

/// Columns with time values, imported into `more`.
const TIMES: [&str; 2] = ["event_time", "ingest_time"];

/// Columns with arbitrary JSON values, imported into `more`.
const VALUES: [&str; 2] = ["trace_component", "payload_ref"];

/// Parses one row. An error names the column and the expected value.
pub fn parse_row(columns: Map, now: Timestamp) -> Result<Import, InvalidRow> {
    let mut row = RowColumns(columns);
    let event = row.id("event_id")?.ok_or_else(|| wrong("event_id is required"))?;
    let execution = row.id("execution_id")?.unwrap_or(0);
    let tenant = row.text("tenant_id")?.unwrap_or_else(|| "default".to_owned());
    let at = match row.time("timestamp")? {
        Some(at) => Some(at),
        None => row.time("created_at")?,
    };
    let event_type = row.text("event_type")?.map(|named| named.trim().to_owned());
    if let Some(named) = &event_type {
        check_type(named)?;
    }
    let result = row.take("result");
    check_result(result.as_ref())?;
    let duration = row.duration()?;
    let mut meta = row.take("meta");
    let command = row.reference("command_id", &mut meta)?;
    let mut more = Map::new();
    for name in TEXTS {
        if let Some(text) = row.text(name)? {
            more.insert(name.to_owned(), text.into());
        }
    }
    for name in NUMBERS {
        let number = match name {
            "stage_id" | "frame_id" => row.reference(name, &mut meta)?,
            "catalog_id" => row.number_or_text(name)?.filter(|id| *id != 0),
            _ => row.id(name)?,
        };
        if let Some(number) = number {
            more.insert(name.to_owned(), number.into());
        }
    }
    for name in TIMES {
        if let Some(at) = row.time(name)? {
            more.insert(name.to_owned(), at.to_string().into());
        }
    }
    for name in VALUES {
        if let Some(value) = row.take(name) {
            more.insert(name.to_owned(), value);
        }
    }
    let context = row.take("context");
    check_depth([&context, &result])?;
    check_depth([&meta, &more.get("trace_component").cloned()])?;
    Ok(Import {
        tenant: Tenant::new(&tenant),
        execution: ExecutionId::new(execution),
        event: EventId::new(event),
        at: at.unwrap_or(now),
        row: ImportedEvent {
            event_type,
            node_name: row.text("node_name")?.map(Arc::from),
            node_type: row.text("node_type")?.map(Arc::from),
            status: row.text("status")?,
            command: command.map(CommandId::new),
            parent_execution: row.number_or_text("parent_execution_id")?.map(ExecutionId::new),
            worker: row.text("worker_id")?.map(Arc::from),
            duration,
            context,
            result,
            meta,
            error: row.text("error")?,
            key: None,
            more,
        },
    })
}

/// Rejects an event type that a subject or label could not contain.
pub fn check_type(named: &str) -> Result<(), InvalidRow> {
    if !is_event_type(named) {
        return Err(wrong("event_type must be 1 to 200 letters, digits or . _ - :"));
    }
    Ok(())
}

/// Rejects values that nest too deeply to be read back.
pub fn check_depth(parts: [&Option<Value>; 2]) -> Result<(), InvalidRow> {
    if parts.into_iter().flatten().any(|part| is_deeper_than(part, DEPTH_MAX)) {
        return Err(wrong(format!("the row nests more than {DEPTH_MAX} levels deep")));
    }
    Ok(())
}

/// Rejects a result that is not null or an object with `status` and optionally `reference` and
/// `context`.
fn check_result(result: Option<&Value>) -> Result<(), InvalidRow> {
    let Some(result) = result else { return Ok(()) };
    let is_right = result.as_object().is_some_and(|result| {
        result.get("status").is_some_and(Value::is_string)
            && result.get("reference").is_none_or(Value::is_object)
            && result.get("context").is_none_or(Value::is_object)
            && result.keys().all(|key| matches!(&**key, "status" | "reference" | "context"))
    });
    if is_right {
        return Ok(());
    }
    let message = "result must be null or an object with a text `status` and at most the objects \
                   `reference` and `context`";
    Err(wrong(message))
}

fn wrong(message: impl Into<String>) -> InvalidRow {
    InvalidRow(message.into())
}

/// Columns of a row that have not been parsed.
struct RowColumns(Map);

impl RowColumns {
    /// Removes and returns a column, unless it is null.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.swap_remove(name).filter(|value| !value.is_null())
    }

    /// Parses an integer ID. Rejects text, because the stream never has IDs as text.
    fn id(&mut self, name: &str) -> Result<Option<i64>, InvalidRow> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_i64() {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(format!("{name} must be a 64-bit whole number"))),
        }
    }

    /// Parses an integer that some producers write as text.
    fn number_or_text(&mut self, name: &str) -> Result<Option<i64>, InvalidRow> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_i64(),
        };
        let message = || wrong(format!("{name} must be a 64-bit whole number, or its text"));
        number.map(Some).ok_or_else(message)
    }

    /// Parses an integer that some producers write as arbitrary text. Moves text that is not an
    /// integer to `meta`, where readers also search for it.
    fn reference(
        &mut self,
        name: &str,
        meta: &mut Option<Value>,
    ) -> Result<Option<i64>, InvalidRow> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_i64(),
        };
        if number.is_some() {
            return Ok(number);
        }
        if !value.is_string() {
            return Err(wrong(format!("{name} must be a whole number or text")));
        }
        let meta = meta.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(meta) = meta {
            meta.entry(name).or_insert(value);
        }
        Ok(None)
    }

    /// Parses text. Accepts a number or Boolean as its text.
    fn text(&mut self, name: &str) -> Result<Option<String>, InvalidRow> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() && name != "event_type" => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(value.to_string())),
            Some(_) => Err(wrong(format!("{name} must be text"))),
        }
    }

    fn duration(&mut self) -> Result<Option<f64>, InvalidRow> {
        let Some(value) = self.take("duration") else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| wrong("duration must be a number"))
    }

    /// Parses a time. Assumes UTC without a zone, and accepts a blank for the `T`.
    fn time(&mut self, name: &str) -> Result<Option<Timestamp>, InvalidRow> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let zoned = text.trim().replacen(' ', "T", 1);
        let parsed = zoned.parse::<Timestamp>().or_else(|_| format!("{zoned}Z").parse());
        let parsed = parsed.ok().filter(|at| at.has_common_year());
        let message = || {
            wrong(format!("{name} must be a time as 2026-01-31T12:00:00.5Z, without a zone in UTC"))
        };
        parsed.map(Some).ok_or_else(message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejected(row: Value) -> String {
        let at = Timestamp::from_micros(0);
        parse_row(columns(row), at).expect_err("a row that is wrong").to_string()
    }

    fn taken(row: Value) -> Import {
        parse_row(columns(row), Timestamp::from_micros(5)).expect("a row")
    }

    fn columns(row: Value) -> Map {
        match row {
            Value::Object(columns) => columns,
            other => panic!("{other} is no row"),
        }
    }

    #[test]
    fn a_row_keeps_every_column() {
        let row = json!({
            "event_id": 9, "execution_id": 8, "parent_event_id": 7, "prev_event_id": 6,
            "event_type": " call.done ", "node_id": "n", "node_name": "m", "node_type": "python",
            "status": "COMPLETED", "stack_trace": "s", "error": "e", "trace_component": {"a": [1]},
            "duration": 1, "timestamp": "2026-01-31T12:00:00.5+02:00", "context": [1],
            "result": {"status": "ok", "context": {}}, "meta": {"x": null}, "catalog_id": "55",
            "tenant_id": "acme", "organization_id": "org", "worker_id": "w",
            "parent_execution_id": 3, "command_id": 4, "stage_id": "5", "frame_id": "f-1",
            "current_index": 2, "event_time": "2026-01-31 12:00:00", "nobody": "knows",
        });
        let import = taken(row);
        assert_eq!((import.event.get(), import.execution.get()), (9, 8));
        assert_eq!(import.tenant, Tenant::new("acme"));
        assert_eq!(import.at.to_string(), "2026-01-31T10:00:00.5Z");
        let row = &import.row;
        assert_eq!(row.event_type.as_deref(), Some("call.done"));
        assert_eq!((row.command.map(CommandId::get), row.duration), (Some(4), Some(1.0)));
        assert_eq!(row.meta, Some(json!({"x": null, "frame_id": "f-1"})));
        let more = json!({
            "node_id": "n", "organization_id": "org", "stack_trace": "s", "catalog_id": 55,
            "parent_event_id": 7, "prev_event_id": 6, "stage_id": 5, "current_index": 2,
            "event_time": "2026-01-31T12:00:00Z", "trace_component": {"a": [1]},
        });
        assert_eq!(Value::Object(row.more.clone()), more);
    }

    #[test]
    fn a_bare_row_is_a_row() {
        let import =
            taken(json!({"event_id": 1, "catalog_id": "", "created_at": "", "meta": null}));
        assert_eq!((import.execution.get(), import.at.as_micros()), (0, 5));
        assert_eq!(import.row, ImportedEvent::default());
    }

    #[test]
    fn invalid_columns_are_named() {
        for (row, expected) in [
            (json!({}), "event_id is required"),
            (json!({"event_id": "1"}), "event_id must be a 64-bit whole number"),
            (json!({"event_id": 1.5}), "event_id must be a 64-bit whole number"),
            (json!({"event_id": 1, "execution_id": "2"}), "execution_id must be"),
            (json!({"event_id": 1, "event_type": ""}), "event_type must be 1 to 200"),
            (json!({"event_id": 1, "event_type": "a b"}), "event_type must be 1 to 200"),
            (json!({"event_id": 1, "event_type": "x".repeat(201)}), "event_type must be"),
            (json!({"event_id": 1, "event_type": ["x"]}), "event_type must be text"),
            (json!({"event_id": 1, "timestamp": "yesterday"}), "timestamp must be a time"),
            (json!({"event_id": 1, "created_at": "-000001-01-01T00:00:00Z"}), "created_at must"),
            (json!({"event_id": 1, "duration": "1"}), "duration must be a number"),
            (json!({"event_id": 1, "result": {"x": 1}}), "result must be null or an object"),
            (json!({"event_id": 1, "result": {"status": "a", "data": 1}}), "result must be"),
            (json!({"event_id": 1, "catalog_id": "abc"}), "catalog_id must be"),
        ] {
            let message = rejected(row.clone());
            assert!(message.contains(expected), "{row}: {message}");
        }
    }
}

//! Rows of a log that anybody may have written.

use std::sync::Arc;

use noetl_engine::replay::{Projection, ReplayEvent, ReplayScope, ReplayState};
use noetl_engine::{Decision, Execution, pending_waits};
use noetl_model::row::EventRow;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Map, Origin, Seq, Timestamp, Value};

/// Reads lines of JSON as rows of one log and folds them.
///
/// An event is written as it was read, a state is its snapshot, and no log whatever keeps a state
/// from being folded, explained or replayed.
pub fn event(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let rows: Vec<EventRow> = text.lines().filter_map(row).collect();
    let mut state = Execution::new(ExecutionId::new(1));
    let mut events: Vec<Arc<Event>> = Vec::new();
    for row in &rows {
        let Ok(event) = row.decode() else { continue };
        let written = EventRow::from(&event);
        let again = written.decode();
        assert_eq!(again.as_ref().ok(), Some(&event), "{written:?}: {again:?}");
        state.apply(&event);
        events.push(Arc::new(event));
    }
    let _ = (pending_waits(&state), state.summary(), state.bytes());
    let _ = Decision::from_events(&state, events, &|_| true, Some(&[]));
    let snapshot = state.to_snapshot();
    let restored = Execution::from_snapshot(state.id(), &snapshot).expect("its own snapshot");
    assert_eq!(restored.to_snapshot(), snapshot, "a snapshot is the state");
    replayed(&rows);
}

fn replayed(rows: &[EventRow]) {
    let projection = Projection::All;
    let (tenant_id, organization_id) = ("t".to_owned(), "o".to_owned());
    let mut state =
        ReplayState::new(ReplayScope { tenant_id, organization_id, execution_id: 1, projection });
    for row in rows {
        state.apply(&ReplayEvent::from_row(row));
    }
    state.seal();
    let written = serde_json::to_value(&state).expect("a state has a JSON form");
    let read: ReplayState = serde_json::from_value(written).expect("its own JSON");
    assert_eq!(read, state, "a replayed state is its JSON");
}

/// Parses a row from its columns. Missing columns and those of the wrong type count as null.
fn row(line: &str) -> Option<EventRow> {
    let columns: Map = serde_json::from_str(line).ok()?;
    let number = |name: &str| columns.get(name).and_then(Value::as_i64);
    let text = |name: &str| columns.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(EventRow {
        execution_id: ExecutionId::new(number("execution_id").unwrap_or(1)),
        event_id: EventId::new(number("event_id").unwrap_or(1)),
        seq: Seq(number("seq").and_then(|seq| seq.try_into().ok()).unwrap_or(1)),
        created_at: Timestamp::from_micros(number("created_at").unwrap_or(0)),
        origin: text("origin").and_then(|origin| Origin::from_text(&origin))?,
        event_type: text("event_type").map(Into::into),
        node_name: text("node_name").map(Into::into),
        node_type: text("node_type").map(Into::into),
        status: text("status").map(Into::into),
        command_id: number("command_id").map(CommandId::new),
        parent_execution_id: number("parent_execution_id").map(ExecutionId::new),
        worker_id: text("worker_id").map(Into::into),
        context: text("context"),
        result: text("result"),
        meta: text("meta"),
        error: text("error"),
        duration: columns.get("duration").and_then(Value::as_f64),
        idempotency_key: number("idempotency_key"),
        more: text("more"),
    })
}

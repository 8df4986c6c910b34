//! The replay fold against states that were written by hand, and against itself.

mod golden;
mod properties;
mod seeds;

use std::borrow::Cow;
use std::sync::Arc;

use noetl_engine::replay::{Projection, ReplayEvent, ReplayScope, ReplayState};
use noetl_model::row::EventRow;
use noetl_model::{CommandId, EventId, ExecutionId, Map, Origin, Seq, Timestamp, Value};

fn scope() -> ReplayScope {
    ReplayScope {
        tenant_id: "default".to_owned(),
        organization_id: "default".to_owned(),
        execution_id: 7,
        projection: Projection::All,
    }
}

/// Returns the event of a row with these columns.
fn event(columns: &Value) -> ReplayEvent {
    let text = |key: &str| columns[key].as_str().map(str::to_owned);
    let number = |key: &str| columns[key].as_i64();
    let json = |key: &str| (!columns[key].is_null()).then(|| columns[key].to_string());
    let further = ["stage_id", "frame_id", "aggregate_type", "aggregate_id"];
    let more: Map = further.iter().map(|key| ((*key).to_owned(), columns[*key].clone())).collect();
    ReplayEvent::from_row(&EventRow {
        execution_id: ExecutionId::new(7),
        event_id: EventId::new(number("event_id").expect("an id")),
        seq: Seq(1),
        created_at: Timestamp::from_micros(0),
        origin: Origin::Imported,
        event_type: text("event_type").map(Cow::Owned),
        node_name: text("node_name").map(Arc::from),
        node_type: None,
        status: text("status").map(Cow::Owned),
        command_id: number("command_id").map(CommandId::new),
        parent_execution_id: None,
        worker_id: text("worker_id").map(Arc::from),
        context: None,
        result: json("result"),
        meta: json("meta"),
        error: None,
        duration: None,
        idempotency_key: None,
        more: Some(Value::Object(more).to_string()),
    })
}

/// Folds events in the order of their ids.
fn fold(scope: ReplayScope, events: &[ReplayEvent]) -> ReplayState {
    let mut events: Vec<&ReplayEvent> = events.iter().collect();
    events.sort_by_key(|event| event.event_id);
    let mut state = ReplayState::new(scope);
    events.into_iter().for_each(|event| state.apply(event));
    state.seal();
    state
}

//! The replay fold against states that were written by hand, and against itself.

mod golden;
mod properties;
mod seeds;

use std::borrow::Cow;
use std::sync::Arc;

use noetl_engine::replay::{Projection, ReplayEvent, ReplayState, Scope};
use noetl_model::row::EventRow;
use noetl_model::{CommandId, EventId, ExecutionId, Origin, Seq, Timestamp, Value};

fn scope() -> Scope {
    Scope {
        tenant_id: "default".to_owned(),
        organization_id: "default".to_owned(),
        execution_id: 7,
        projection: Projection::All,
    }
}

/// The event of these columns, by way of a row where rows have them.
fn event(columns: &Value) -> ReplayEvent {
    let text = |key: &str| columns[key].as_str().map(str::to_owned);
    let number = |key: &str| columns[key].as_i64();
    let json = |key: &str| (!columns[key].is_null()).then(|| columns[key].to_string());
    let row = EventRow {
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
    };
    ReplayEvent {
        stage_id: number("stage_id").map(|id| id.to_string()),
        frame_id: number("frame_id").map(|id| id.to_string()),
        aggregate_type: text("aggregate_type"),
        aggregate_id: text("aggregate_id"),
        ..ReplayEvent::of(&row)
    }
}

/// Folds events in the order of their ids.
fn fold(scope: Scope, events: &[ReplayEvent]) -> ReplayState {
    let mut events: Vec<&ReplayEvent> = events.iter().collect();
    events.sort_by_key(|event| event.event_id);
    let mut state = ReplayState::new(scope);
    events.into_iter().for_each(|event| state.apply(event));
    state.seal();
    state
}

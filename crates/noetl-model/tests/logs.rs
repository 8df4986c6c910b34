//! Logs of every version stay readable: `test-data/log-v1.jsonl` holds a row of every type as it was
//! stored first, the files after it what later versions added. A file is never changed; a new shape
//! of a row is a new file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeSet;

use noetl_model::row::{EventRow, types};
use noetl_model::{CommandId, EventId, ExecutionId, Map, Origin, Seq, Timestamp};

const LOG: &str = include_str!("../test-data/log-v1.jsonl");
/// References, imported rows, and ids that were replaced.
const LOG_V2: &str = include_str!("../test-data/log-v2.jsonl");

/// A row from its columns; one that is left out is null.
fn row(line: &str) -> EventRow {
    let columns: Map = serde_json::from_str(line).unwrap();
    let number = |name: &str| columns.get(name).map(|value| value.as_i64().unwrap());
    let text = |name: &str| columns.get(name).map(|value| value.as_str().unwrap().to_owned());
    EventRow {
        execution_id: ExecutionId::new(number("execution_id").unwrap()),
        event_id: EventId::new(number("event_id").unwrap()),
        seq: Seq(number("seq").unwrap().try_into().unwrap()),
        created_at: Timestamp::from_micros(number("created_at").unwrap()),
        origin: Origin::from_text(&text("origin").unwrap()).unwrap(),
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
        duration: columns.get("duration").map(|value| value.as_f64().unwrap()),
        idempotency_key: number("idempotency_key"),
        more: text("more"),
    }
}

#[test]
fn every_row_is_read_and_written_as_it_was() {
    for line in LOG.lines().chain(LOG_V2.lines()) {
        let stored = row(line);
        let event = stored.decode().unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(EventRow::from(&event), stored);
    }
}

#[test]
fn the_log_holds_every_type() {
    let held: BTreeSet<String> =
        LOG.lines().filter_map(|line| row(line).event_type).map(Into::into).collect();
    for wanted in [
        types::PLAYBOOK_STARTED,
        types::STEP_ENTER,
        types::TOKENS_DROPPED,
        types::COMMAND_ISSUED,
        types::COMMAND_CLAIMED,
        types::COMMAND_STARTED,
        types::CALL_DONE,
        types::CALL_ERROR,
        types::COMMAND_COMPLETED,
        types::COMMAND_FAILED,
        types::COMMAND_EXPIRED,
        types::COMMAND_CANCELLED,
        types::CTX_UPDATED,
        types::STEP_EXIT,
        types::PLAYBOOK_COMPLETED,
        types::PLAYBOOK_FAILED,
        types::PLAYBOOK_CANCELLED,
    ] {
        assert!(held.contains(wanted), "{wanted}");
    }
    assert!(LOG.lines().any(|line| row(line).origin == Origin::Reported));
}

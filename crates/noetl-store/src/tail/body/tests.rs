use std::borrow::Cow;
use std::sync::Arc;

use noetl_model::{CatalogId, EventId, ExecutionId, Seq, Tenant, Value};

use super::*;

fn row() -> TailRow {
    TailRow {
        position: 5,
        tenant: Tenant::new("acme"),
        catalog: Some(CatalogId::new(7)),
        previous: Some(EventId::new(11)),
        row: EventRow {
            execution_id: ExecutionId::new(10),
            event_id: EventId::new(12),
            seq: Seq(2),
            created_at: Timestamp::from_micros(1_704_067_200_500_000),
            origin: Origin::Decided,
            event_type: Some(Cow::Borrowed("call.done")),
            node_name: Some(Arc::from("greet")),
            node_type: None,
            status: Some(Cow::Borrowed("COMPLETED")),
            command_id: None,
            parent_execution_id: None,
            worker_id: None,
            context: Some("{\"b\":1.50,\"a\":2}".into()),
            result: Some("{\"status\":\"ok\",\"context\":{}}".into()),
            meta: None,
            error: None,
            duration: None,
            idempotency_key: None,
            more: None,
        },
    }
}

/// The columns of `noetl.event` as published.
const COLUMNS: [&str; 44] = [
    "execution_id",
    "catalog_id",
    "event_id",
    "parent_event_id",
    "parent_execution_id",
    "created_at",
    "event_type",
    "node_id",
    "node_name",
    "node_type",
    "status",
    "duration",
    "context",
    "result",
    "meta",
    "prev_event_id",
    "command_id",
    "stage_id",
    "frame_id",
    "worker_id",
    "current_index",
    "current_item",
    "context_value",
    "stack_trace",
    "error",
    "distributed_state",
    "context_key",
    "trace_component",
    "tenant_id",
    "organization_id",
    "stream_id",
    "aggregate_id",
    "aggregate_type",
    "schema_name",
    "producer",
    "causation_id",
    "correlation_id",
    "idempotency_key",
    "envelope_checksum",
    "stream_version",
    "schema_version",
    "event_time",
    "ingest_time",
    "payload_ref",
];

fn parsed(payload: &str) -> serde_json::Map<String, Value> {
    serde_json::from_str(payload).expect("an object")
}

#[test]
fn a_payload_has_every_column_and_only_our_additions() {
    let payload = row().payload().expect("a payload");
    let body = parsed(&payload);
    for column in COLUMNS {
        assert!(body.contains_key(column), "{column}");
    }
    let ours: Vec<&String> = body.keys().filter(|key| !COLUMNS.contains(&key.as_str())).collect();
    assert_eq!(ours, ["seq", "origin"]);
    assert_eq!(body["created_at"], "2024-01-01T00:00:00.5");
    assert_eq!(body["event_time"], "2024-01-01T00:00:00.5+00:00");
    assert_eq!(body["tenant_id"], "acme");
    assert_eq!((&body["prev_event_id"], &body["catalog_id"]), (&11.into(), &7.into()));
    assert_eq!((&body["node_id"], &body["stage_id"]), (&"greet".into(), &Value::Null));
    assert!(payload.contains("\"context\":{\"b\":1.50,\"a\":2}"), "as it was: {payload}");
    let broken = TailRow { row: EventRow { meta: Some("{".into()), ..row().row }, ..row() };
    assert!(broken.payload().is_err());
}

#[test]
fn the_columns_an_imported_row_came_with_are_there() {
    let more = "{\"stage_id\":4,\"prev_event_id\":null,\"catalog_id\":9,\"event_id\":1,\
                \"node_id\":\"n\",\"organization_id\":\"o\",\"unheard_of\":1}";
    let row = TailRow {
        catalog: Some(CatalogId::new(0)),
        row: EventRow { origin: Origin::Imported, more: Some(more.into()), ..row().row },
        ..row()
    };
    let body = parsed(&row.payload().expect("a payload"));
    let expected: [(&str, Value); 6] = [
        ("stage_id", 4.into()),
        ("prev_event_id", 11.into()),
        ("catalog_id", 9.into()),
        ("event_id", 12.into()),
        ("node_id", "n".into()),
        ("organization_id", "o".into()),
    ];
    for (name, value) in expected {
        assert_eq!(body[name], value, "{name}");
    }
    assert_eq!(body.len(), 46);
}

#[test]
fn times_are_written_as_the_database_does() {
    for (micros, expected) in [
        (1_704_067_200_000_000, "2024-01-01T00:00:00"),
        (1_704_067_200_000_001, "2024-01-01T00:00:00.000001"),
        (1_704_067_210_100_000, "2024-01-01T00:00:10.1"),
    ] {
        assert_eq!(local(Timestamp::from_micros(micros)), expected);
    }
}

#[test]
fn message_ids_of_reported_and_imported_events_name_their_execution() {
    let mut row = row().row;
    assert_eq!(message_id(&row), "12");
    for origin in [Origin::Reported, Origin::Imported] {
        row.origin = origin;
        assert_eq!(message_id(&row), "12:10");
    }
}

#[test]
fn oversized_values_are_replaced_by_references() {
    let large = format!("{{\"status\":\"ok\",\"context\":{{\"text\":\"{}\"}}}}", "x".repeat(5000));
    let digest = hex(&Sha256::digest(large.as_bytes()));
    let with = TailRow { row: EventRow { result: Some(large.clone()), ..row().row }, ..row() };
    let payload = with.payload().expect("a payload");
    let body = parsed(&by_reference(&payload, 3000).expect("a smaller one"));
    assert_eq!(body["result"]["status"], "ok");
    let reference = &body["result"]["reference"];
    assert_eq!(reference["bytes"], large.len());
    assert_eq!(reference["sha256"], digest);
    assert_eq!(reference["href"], "/api/executions/10/events?after=1&limit=1");
    assert_eq!((&reference["execution_id"], &reference["event_id"]), (&10.into(), &12.into()));
    // What fits stays, and the other columns too.
    assert_eq!(body["context"]["a"], 2);
    assert_eq!(body.len(), 46);
    assert_eq!(body["meta"], Value::Null);
}

#[test]
fn long_texts_are_cut_and_the_rest_is_given_up() {
    let error = "ü".repeat(9000);
    let with = TailRow { row: EventRow { error: Some(error.clone()), ..row().row }, ..row() };
    let payload = with.payload().expect("a payload");
    let body = parsed(&by_reference(&payload, 8000).expect("a smaller one"));
    let text = body["error"].as_str().expect("a text");
    assert!(text.starts_with(&"ü".repeat(2000)) && text.contains("[18000 bytes, sha256 "));
    assert_eq!(by_reference(&payload, 100), None, "nothing is left to be replaced");
    assert_eq!(by_reference("[]", 100), None);
    assert_eq!(by_reference(&payload, payload.len()).as_deref(), Some(&*payload));
}

use std::borrow::Cow;
use std::sync::Arc;

use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, ExecutionId, Origin, Seq, Tenant, Timestamp};

use super::{Envelope, cut, subject};

#[test]
fn a_type_becomes_a_subject_no_publisher_trips_over() {
    for (event_type, expected) in [
        ("command.issued", "noetl.events.command.issued"),
        ("playbook_started", "noetl.events.playbook_started"),
        ("a-b:c", "noetl.events.a-b:c"),
        ("", "noetl.events._"),
        (" ", "noetl.events._"),
        ("a b\n", "noetl.events.a_b_"),
        (".a..b.", "noetl.events._.a._.b._"),
        ("a.*.>", "noetl.events.a._._"),
        ("größe", "noetl.events.gr__e"),
        ("$JS.API", "noetl.events._JS.API"),
    ] {
        assert_eq!(subject(Some(event_type)), expected, "{event_type:?}");
    }
    assert_eq!(subject(Some(&"x".repeat(5000))).len(), "noetl.events.".len() + 200);
}

#[test]
fn an_error_is_cut_between_characters() {
    assert_eq!(cut("short"), "short");
    assert_eq!(cut(&"ä".repeat(2000)), "ä".repeat(2000));
    assert_eq!(cut(&"ä".repeat(2001)), "ä".repeat(2000));
}

#[test]
fn a_payload_has_every_key_the_stream_has() {
    let row = EventRow {
        execution_id: ExecutionId::new(10),
        event_id: EventId::new(12),
        seq: Seq(2),
        created_at: Timestamp::from_micros(1_704_067_200_000_001),
        origin: Origin::Decided,
        event_type: Some(Cow::Borrowed("playbook_started")),
        node_name: Some(Arc::from("demo/a")),
        node_type: None,
        status: Some(Cow::Borrowed("STARTED")),
        command_id: None,
        parent_execution_id: Some(ExecutionId::new(3)),
        worker_id: None,
        context: Some("{\"b\":1.50,\"a\":2}".into()),
        result: None,
        meta: None,
        error: None,
        duration: None,
        idempotency_key: None,
        more: None,
    };
    let (tenant, catalog) = (Tenant::default(), CatalogId::new(7));
    let envelope =
        Envelope { tenant: &tenant, catalog, previous: Some(EventId::new(11)), row: &row };
    let expected = "{\"event_id\":12,\"execution_id\":10,\"catalog_id\":7,\
        \"event_type\":\"playbook_started\",\"status\":\"STARTED\",\
        \"created_at\":\"2024-01-01T00:00:00.000001Z\",\"node_id\":\"playbook\",\
        \"node_name\":\"demo/a\",\"node_type\":null,\"parent_event_id\":null,\
        \"prev_event_id\":11,\"parent_execution_id\":3,\"context\":{\"b\":1.50,\"a\":2},\
        \"result\":null,\"meta\":null,\"error\":null,\"worker_id\":null,\"command_id\":null,\
        \"tenant_id\":\"default\",\"seq\":2,\"origin\":\"decided\"}";
    assert_eq!(envelope.payload().expect("a payload"), expected);

    let unreadable = EventRow { meta: Some("{".into()), ..row.clone() };
    assert!(Envelope { row: &unreadable, ..envelope }.payload().is_err());
}

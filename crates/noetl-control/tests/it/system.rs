//! Readers of the event stream on a store and a bus in memory.

use std::sync::Arc;

use noetl_bus::{CommandBus, CommandConsumer, EventStream, MemoryStream, StreamMessage};
use noetl_model::{ExecutionId, Origin, Seq, Tenant, Value};
use noetl_publishing::{SystemConsumers, SystemConsumersHandle};
use noetl_store::{MemoryStore, SnapshotStore};
use noetl_test_app::FaultyStore;
use serde_json::json;

use crate::plane::{Gate, TestPlane, chain};
use crate::publishing::{options, until};

const STREAM: &str = "noetl_events";
const MATERIALIZE: SystemConsumers = SystemConsumers { materialize: true, project: false };
const PROJECT: SystemConsumers = SystemConsumers { materialize: false, project: true };

fn read(
    what: SystemConsumers,
    bus: &Arc<MemoryStream>,
    plane: &TestPlane,
) -> SystemConsumersHandle {
    let bus: Arc<dyn CommandConsumer> = bus.clone();
    let control = &plane.control;
    SystemConsumersHandle::start(
        what,
        &options(),
        &bus,
        &control.publishing.imports,
        &control.views.projections,
        &control.journal.metrics,
    )
}

async fn publish(bus: &MemoryStream, rows: &[Value]) {
    bus.ensure(&options().stream()).await.unwrap();
    let messages = rows.iter().enumerate().map(|(number, row)| StreamMessage {
        subject: "noetl.events.call.done".to_owned(),
        id: format!("{number}:{row}"),
        payload: match row {
            // What is no row at all.
            Value::String(text) => text.clone().into_bytes(),
            row => row.to_string().into_bytes(),
        },
    });
    for stored in bus.publish(messages.collect()).await {
        stored.unwrap();
    }
}

fn row(execution: i64, event: i64) -> Value {
    json!({
        "execution_id": execution, "event_id": event, "event_type": "call.done",
        "node_name": "a", "created_at": "2026-01-31T12:00:00", "result": {"status": "COMPLETED"},
    })
}

/// Returns the number of messages without an ack of a consumer.
async fn backlog(bus: &MemoryStream, reader: &str) -> Option<u64> {
    let state = CommandBus::state(bus, STREAM).await.ok()??;
    state.consumers.iter().find(|known| known.name == reader).map(|known| known.backlog())
}

async fn answered(bus: &MemoryStream, reader: &str) {
    until("every answer", async || backlog(bus, reader).await == Some(0)).await;
}

#[tokio::test]
async fn imported_rows_are_stored_and_invalid_ones_delay_no_others() {
    let (store, bus) = (Arc::new(FaultyStore::over(Arc::new(MemoryStore::new()))), bus());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let wrong = [json!("not json"), json!({"execution_id": 7}), json!([1])];
    publish(&bus, &wrong).await;
    publish(&bus, &[row(7, 71), row(7, 72), row(8, 81), row(7, 71)]).await;
    let reading = read(MATERIALIZE, &bus, &plane);
    answered(&bus, "noetl_materializer").await;
    for (execution, events) in [(7, vec![71, 72]), (8, vec![81])] {
        let id = ExecutionId::new(execution);
        let log = plane.control.journal.executions.events(id, Seq::START, 10).await.unwrap();
        assert!(log.iter().all(|event| event.origin() == Origin::Imported));
        assert_eq!(log.iter().map(|event| event.id.get()).collect::<Vec<_>>(), events);
    }
    let page = plane.control.journal.metrics.text();
    assert!(page.contains("noetl_events_projected_total 3"), "{page}");
    assert!(page.contains("noetl_events_rejected_total{route=\"materializer\"} 3"), "{page}");
    assert_eq!(backlog(&bus, "noetl_projector").await, Some(7), "another's are left to it");
    reading.close().await;
    plane.close().await;
}

#[tokio::test]
async fn rows_rejected_by_the_store_are_redelivered() {
    let (store, bus) = (Arc::new(FaultyStore::over(Arc::new(MemoryStore::new()))), bus());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    store.set_down(true);
    let reading = read(MATERIALIZE, &bus, &plane);
    publish(&bus, &[row(7, 71), row(7, 72)]).await;
    // A second reader of the consumer returns its message without an ack.
    until("a message that came back", async || bus.give("noetl_materializer").is_some()).await;
    store.set_down(false);
    bus.set_connected(false);
    bus.set_connected(true);
    publish(&bus, &[row(7, 73)]).await;
    let id = ExecutionId::new(7);
    until("the last row", async || {
        let log = plane.control.journal.executions.events(id, Seq::START, 10).await.unwrap();
        log.iter().any(|event| event.id.get() == 73)
    })
    .await;
    reading.close().await;
    plane.close().await;
}

#[tokio::test]
async fn snapshots_follow_delivered_events() {
    let (store, bus) = (Arc::new(FaultyStore::over(Arc::new(MemoryStore::new()))), bus());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let id = plane.start(&chain(2)).await;
    plane.finished(id).await;
    let last = plane.log(id).await.last().unwrap().id;
    let reading = read(PROJECT, &bus, &plane);
    publish(&bus, &[row(id.get(), 1), row(id.get(), 2), json!("?"), row(12_345, 1)]).await;
    answered(&bus, "noetl_projector").await;
    let kind = "orchestrator_workflow_state";
    let snapshot = store.snapshot(&Tenant::default(), kind, &id.to_string()).await.unwrap();
    assert_eq!(snapshot.map(|snapshot| snapshot.version), Some(last.get()));
    reading.close().await;
    plane.close().await;
}

fn bus() -> Arc<MemoryStream> {
    Arc::new(MemoryStream::new())
}

//! Logs replay from the database as they do from memory.

use std::sync::Arc;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_model::event::ImportedEvent;
use noetl_model::{EventId, ExecutionId, Seq, Tenant, Timestamp, Value};
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{
    EventLog, Import, MemoryStore, ReadBound, SnapshotStore, Store, StoreError, SystemClock,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_app::migrated_database;
use noetl_test_services::postgres::TestDatabase;
use noetl_views::ReplayRequest;
use serde_json::json;

async fn open(database: &TestDatabase) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL");
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

fn all_of(execution: i64) -> ReplayRequest {
    ReplayRequest {
        execution: ExecutionId::new(execution),
        tenant: Tenant::default(),
        organization: "default".into(),
        until: ReadBound::End,
        projection: Default::default(),
        limit: None,
        resolve_payloads: false,
    }
}

async fn control(store: Arc<dyn Store>) -> ControlPlane {
    let options = ControlOptions { slots: 0, resume: false, ..ControlOptions::default() };
    ControlPlane::open(options, store, Arc::new(SystemClock)).await.expect("a control plane")
}

/// Writes a log long enough for a snapshot, and an imported one in two organizations.
async fn fill(store: &dyn Store) {
    let mut story = Story::new(10);
    write(store, story.start()).await;
    for _ in 0..11 {
        write(store, story.then((0..1_000).map(|_| said("on")).collect())).await;
    }
    let row = |event: i64, event_type: &str, more: Value| Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(11),
        event: EventId::new(event),
        at: Timestamp::from_micros(event),
        row: ImportedEvent {
            event_type: Some(event_type.into()),
            result: Some(json!({"status": "ok", "reference": {"ref": "r", "weight": 1e16}})),
            more: more.as_object().cloned().expect("an object"),
            ..ImportedEvent::default()
        },
    };
    let rows = vec![
        row(900, "frame.dispatched", json!({"frame_id": 5, "stage_id": 4})),
        row(-3, "stage.opened", json!({"aggregate_type": "stage", "aggregate_id": "stage/4"})),
        row(7, "stage.closed", json!({"stage_id": 4, "organization_id": "lab"})),
    ];
    store.import(rows).await.expect("an answer");
}

#[tokio::test]
async fn logs_replay_as_they_do_in_memory() {
    let memory = Arc::new(MemoryStore::new());
    fill(&*memory).await;
    let expected = control(memory).await;
    let database = migrated_database();
    let store = open(&database).await;
    fill(&*store).await;
    let control_plane = control(store.clone()).await;
    let requests = [
        all_of(10),
        // A second replay, from the snapshot of the first.
        all_of(10),
        ReplayRequest { until: ReadBound::Event(EventId::new(10_005_000)), ..all_of(10) },
        ReplayRequest { limit: Some(7), ..all_of(10) },
        all_of(11),
        ReplayRequest { organization: "lab".into(), ..all_of(11) },
        ReplayRequest { until: ReadBound::Time(Timestamp::from_micros(7)), ..all_of(11) },
        ReplayRequest { tenant: Tenant::new("acme"), ..all_of(11) },
    ];
    for request in &requests {
        let one = expected.views.replay.state(request).await.expect("a state");
        let other = control_plane.views.replay.state(request).await.expect("a state");
        assert_eq!(one.state, other.state, "{request:?}");
        assert_eq!(one.is_truncated, other.is_truncated, "{request:?}");
    }
    let snapshot = store.snapshot(&Tenant::default(), "replay_state", "execution/10/all").await;
    assert_eq!(snapshot.expect("a read").expect("a kept state").meta["rows"], 11_003);
    let state = control_plane.views.replay.state(&all_of(11)).await.expect("a state").state;
    assert_eq!(state.event_count, 2);
    assert_eq!(state.stages["4"].opened_event_id, Some(-3));
    assert_eq!(state.frames["5"].stage_id.as_deref(), Some("4"));
    expected.close().await;
    control_plane.close().await;
}

#[tokio::test]
async fn a_row_of_a_newer_version_replays() {
    let database = migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    database.psql(
        "update noetl.event_append set body = jsonb_set(
             jsonb_set(body::jsonb, '{1,0}', '\"loop.done\"'), '{1,4}', '{\"m\": {\"loop_id\": \"l\"}}'
         )",
    );
    let read = store.read(story.id(), Seq::START, 9).await;
    assert!(matches!(read, Err(StoreError::Row(_))), "{read:?}");
    let control = control(store).await;
    let state = control.views.replay.state(&all_of(10)).await.expect("a state").state;
    assert_eq!((state.event_count, state.loops["l"].completed), (3, true));
    control.close().await;
}

/// Covers IDs of both families, rows without a type, numeric stages, and rows without a sequence
/// number or an execution.
#[tokio::test]
async fn an_adopted_log_replays_before_its_first_read() {
    let database = TestDatabase::new();
    database.psql(crate::postgres::OLD_SCHEMA);
    database.psql(
        "update noetl.event set stage_id = 77, frame_id = 78, command_id = 79
         where event_id = 285000000000000300;
         update noetl.event set tenant_id = 'acme' where execution_id = 281000000000000004",
    );
    let store = open(&database).await;
    let unplaced = "select count(*) from noetl.event where seq is null";
    let before = database.psql(unplaced);
    assert_ne!(before, "0");
    let control = control(store).await;
    let replayed = async |request: ReplayRequest| {
        control.views.replay.state(&request).await.expect("a state").state
    };
    let state = replayed(all_of(570_000_000_000_000_003)).await;
    assert_eq!((state.event_count, state.last_event_id), (3, Some(570_000_000_000_000_210)));
    assert_eq!(state.execution.status, "RUNNING");
    assert_eq!(state.stages["77"].status, "RUNNING");
    assert_eq!(state.frames["78"].command_id.as_deref(), Some("79"));
    let state = replayed(all_of(280_000_000_000_000_002)).await;
    assert_eq!((state.event_count, &*state.execution.status), (4, "FAILED"), "the later end wins");
    let subscription = all_of(281_000_000_000_000_004);
    assert_eq!(replayed(subscription.clone()).await.event_count, 0, "it is another tenant's");
    let theirs = ReplayRequest { tenant: Tenant::new("acme"), ..subscription };
    assert_eq!(replayed(theirs).await.event_count, 1);
    let advanced = control.views.replay.advance(ExecutionId::new(280_000_000_000_000_001)).await;
    assert_eq!(advanced.expect("an answer").expect("events").events, 4);
    assert_eq!(database.psql(unplaced), before, "reading places nothing");
    control.close().await;
}

//! Logs replay from the file as they do from memory.

use std::sync::Arc;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_model::event::ImportedEvent;
use noetl_model::{EventId, ExecutionId, Seq, Tenant, Timestamp, Value};
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{
    EventLog, Import, MemoryStore, ReadBound, SnapshotStore, Store, StoreError, SystemClock,
};
use noetl_store_sqlite::{Options, SqliteStore};
use noetl_views::ReplayRequest;
use serde_json::json;
use tempfile::TempDir;

use crate::sqlite::edit::edit_log;

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
    let directory = TempDir::new().expect("a temporary directory");
    let options = Options::file(directory.path().join("noetl.db"));
    let store = Arc::new(SqliteStore::open(options).expect("a store"));
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
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("noetl.db");
    let store = SqliteStore::open(Options::file(&path)).expect("a store");
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    store.close().await;
    let file = rusqlite::Connection::open(&path).expect("the file");
    edit_log(&file, 10, |rows| {
        rows[1].event_type = Some("loop.done".into());
        rows[1].meta = Some(r#"{"loop_id": "l"}"#.to_owned());
    });
    drop(file);
    let store = Arc::new(SqliteStore::open(Options::file(&path)).expect("a store"));
    let read = store.read(story.id(), Seq::START, 9).await;
    assert!(matches!(read, Err(StoreError::Row(_))), "{read:?}");
    let control = control(store).await;
    let state = control.views.replay.state(&all_of(10)).await.expect("a state").state;
    assert_eq!((state.event_count, state.loops["l"].completed), (3, true));
    control.close().await;
}

//! Values that are not in memory: large ones, and those of evicted executions.

use std::sync::Arc;

use noetl_control::Options;
use noetl_journal::StartRequest;
use noetl_model::{Fact, Map, Value};
use noetl_store::{BlobRefs, EventLog, ExecutionStatus, SnapshotStore};
use noetl_test_app::FaultyStore;

use crate::plane::{Gate, TestPlane, count};

/// Runs one step `steps` times and counts.
fn cycle() -> &'static str {
    "  - step: s\n    tool: {kind: noop, input: {n: '{{ ctx.n | default(0) + 1 }}'}}\n    \
     set: {ctx.n: '{{ ctx.n | default(0) + 1 }}'}\n    \
     next: {arcs: [{step: s, when: 'ctx.n < workload.steps'}]}\n"
}

async fn start(plane: &TestPlane, workflow: &str, payload: Value) -> noetl_model::ExecutionId {
    let catalog = Some(plane.register(workflow).await);
    let payload: Map = payload.as_object().cloned().unwrap();
    let request = StartRequest { catalog, payload, ..StartRequest::default() };
    plane.control.journal.executions.start(&plane.tenant, request).await.unwrap().execution
}

#[tokio::test]
async fn a_long_execution_has_a_snapshot_of_all_but_its_latest_events() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let id = start(&plane, cycle(), serde_json::json!({"steps": 400})).await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Completed);
    plane.close().await;
    let snapshot = store.snapshot(&Default::default(), "engine_state", &id.to_string()).await;
    let snapshot = snapshot.unwrap().expect("one was due");
    let version = i64::try_from(row.version.0).unwrap();
    assert!(snapshot.version <= version, "{} of {version}", snapshot.version);
    let restored = noetl_engine::Execution::from_snapshot(id, snapshot.body.as_bytes()).unwrap();
    let mut folded = noetl_engine::Execution::new(id);
    let mut tailed = restored.clone();
    for event in store.read(id, noetl_model::Seq::START, 100_000).await.unwrap() {
        folded.apply(&event);
        if event.seq > restored.version() {
            tailed.apply(&event);
        }
    }
    assert_eq!(tailed, folded);
}

/// With room for one state, every change of execution reads the other back.
#[tokio::test]
async fn evicted_executions_continue_from_their_state() {
    let store = Arc::new(FaultyStore::default());
    let options = Options { slots: 4, cache_bytes: 1, ..Options::default() };
    let plane = TestPlane::with(&store, options, &Gate::new()).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(start(&plane, cycle(), serde_json::json!({"steps": 120})).await);
    }
    for id in ids {
        let row = plane.finished(id).await;
        assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
        assert_eq!(row.steps_completed, 120);
        let log = plane.log(id).await;
        assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandIssued(_))), 120);
    }
    plane.close().await;
}

/// A step that passes on a large value, one that tests it, and one that never looks at it.
const LARGE: &str = "  - step: make\n    tool: {kind: python, code: x, input: {text: '{{ \"x\" * 5000 }}', n: 7}}\n    \
     next: {arcs: [{step: pass}]}\n  \
     - step: pass\n    tool: {kind: python, code: x, input: {again: '{{ make.text }}'}}\n    \
     next: {arcs: [{step: test, when: 'make.n == 7 and pass.again | length == 5000'}]}\n  \
     - step: test\n    tool: {kind: python, code: x, input: {length: '{{ make.text | length }}'}}\n";

#[tokio::test]
async fn an_evicted_value_is_loaded_when_it_is_needed() {
    for cache_bytes in [1, 256 << 20] {
        let store = Arc::new(FaultyStore::default());
        let options = Options { slots: 1, cache_bytes, ..Options::default() };
        let plane = TestPlane::with(&store, options, &Gate::new()).await;
        let id = plane.start(LARGE).await;
        let row = plane.finished(id).await;
        assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
        let log = plane.log(id).await;
        let Some(Fact::PlaybookCompleted { result, .. }) = log.last().map(|e| &e.fact) else {
            panic!("{log:?}")
        };
        assert_eq!(result["length"], 5000, "{result}");
        plane.close().await;
    }
}

#[tokio::test]
async fn a_result_past_the_inline_limit_is_stored_by_reference_and_loaded() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let id = plane.start(&LARGE.replace("5000", "90000")).await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    let log = plane.log(id).await;
    let mut references = 0;
    for event in &log {
        if let Fact::CallDone { data, reference: Some(reference), .. } = &event.fact {
            assert!(reference.bytes > 90_000);
            assert!(data.to_string().len() < 1000, "only small fields stay");
            references += 1;
        }
    }
    assert_eq!(references, 2, "what was made, and what was passed on");
    assert_eq!(store.references(id).await.unwrap().len(), 2);
    plane.close().await;
}

//! Replay of logs to any event: in pages, from snapshots, and per tenant.

mod bounds;

use std::sync::Arc;

use noetl_control::Options;
use noetl_engine::replay::{Projection, ReplayEvent, ReplayScope, ReplayState};
use noetl_model::event::{ImportedEvent, ReportedEvent};
use noetl_model::{
    CatalogId, Event, EventId, ExecutionId, Fact, ResultId, SubscriptionId, Tenant, Timestamp,
    Value,
};
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{
    Append, EventLog, EventStamp, NewResult, NewSubscription, ReadBound, ResultStore,
    ResultSummary, Snapshot, SnapshotStore, SubscriptionStore,
};
use noetl_test_app::FaultyStore;
use noetl_views::{Replay, ReplayRequest, Replayed};
use serde_json::json;

use crate::plane::{Gate, TestPlane};

const KEPT: &str = "replay_state";

fn all_of(execution: ExecutionId) -> ReplayRequest {
    ReplayRequest {
        execution,
        tenant: Tenant::default(),
        organization: "default".into(),
        until: ReadBound::End,
        projection: Projection::All,
        limit: None,
        resolve_payloads: false,
    }
}

/// A control plane that drives nothing, for logs that a test writes.
async fn plane(store: &Arc<FaultyStore>) -> TestPlane {
    let options = Options { slots: 0, resume: false, ..Options::default() };
    TestPlane::with(store, options, &Gate::new()).await
}

async fn replayed(plane: &TestPlane, request: &ReplayRequest) -> Replayed {
    plane.control.views.replay.state(request).await.unwrap()
}

/// A log of so many rows, and its story.
async fn long(store: &FaultyStore, rows: usize) -> Story {
    let mut story = Story::new(10);
    write(store, story.start()).await;
    grow(store, &mut story, rows - 3).await;
    story
}

async fn grow(store: &FaultyStore, story: &mut Story, rows: usize) {
    let mut left = rows;
    while left > 0 {
        let portion = left.min(1_000);
        write(store, story.then((0..portion).map(|_| said("on")).collect())).await;
        left -= portion;
    }
}

/// Folds the whole log in the store without pages or snapshots.
async fn folded(
    store: &FaultyStore,
    id: ExecutionId,
    until: ReadBound,
    limit: usize,
) -> ReplayState {
    let mut state = ReplayState::new(ReplayScope {
        tenant_id: "default".into(),
        organization_id: "default".into(),
        execution_id: id.get(),
        projection: Projection::All,
    });
    for row in store.read_rows(id, None, until, limit).await.unwrap() {
        state.apply(&ReplayEvent::from_row(&row));
    }
    state.seal();
    state
}

async fn stored_snapshot(store: &FaultyStore, id: ExecutionId) -> Option<Snapshot> {
    store.snapshot(&Tenant::default(), KEPT, &format!("execution/{id}/all")).await.unwrap()
}

/// Changes the snapshot so that a replay from it is distinguishable.
async fn mark(store: &FaultyStore, id: ExecutionId) {
    let (tenant, name) = (Tenant::default(), format!("execution/{id}/all"));
    let snapshot = stored_snapshot(store, id).await.expect("a kept state");
    let mut body: Value = serde_json::from_str(&snapshot.body).unwrap();
    body["execution"]["last_node_name"] = json!("marked");
    store.forget(&tenant, KEPT, &name).await.unwrap();
    let marked = Snapshot::new(snapshot.version, body.to_string(), snapshot.meta);
    assert!(store.save(&tenant, KEPT, &name, marked).await.unwrap());
}

fn is_marked(replayed: &Replayed) -> bool {
    replayed.state.execution.last_node_name.as_deref() == Some("marked")
}

#[tokio::test]
async fn a_native_execution_sets_every_field_of_the_replay_state() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 2, &Gate::new()).await;
    let large = "  - step: make\n    tool: {kind: python, code: x, input: {text: '{{ \"x\" * 70000 }}', n: 7}}\n    \
                 next: {arcs: [{step: end}]}\n  - step: end\n    tool: {kind: noop}\n";
    let id = plane.start(large).await;
    plane.finished(id).await;
    let request = ReplayRequest { resolve_payloads: true, ..all_of(id) };
    let Replayed { state, is_truncated, payloads } = replayed(&plane, &request).await;
    let log = plane.log(id).await;
    assert!(!is_truncated);
    assert_eq!(state.event_count, u64::try_from(log.len()).unwrap());
    assert_eq!(state.last_event_id, log.iter().map(|event| event.id.get()).max());
    assert_eq!(state.execution.status, "COMPLETED");
    assert_eq!(state.execution.last_node_name.as_deref(), Some("end"));
    assert_eq!(state.commands.len(), 2);
    for (id, command) in &state.commands {
        assert_eq!(command.status, "COMPLETED");
        assert_eq!(command.issued_event_id.map(|id| id.to_string()), Some(id.clone()));
        assert!(command.claimed_event_id.is_some() && command.terminal_event_id.is_some());
        assert!(command.worker_id.is_some());
    }
    let [reference] = &*state.execution.payload_refs else { panic!("{state:?}") };
    assert_eq!(reference.summary.media_type.as_deref(), Some("application/json"));
    let payloads = payloads.expect("they were asked for");
    let resolution = &payloads.payload_resolution[0];
    assert_eq!(resolution.label.scope, "execution");
    assert_eq!(resolution.label.event_id, Some(reference.event_id));
    assert!(resolution.resolution.resolved, "{resolution:?}");
    assert_eq!(resolution.resolution.locator, reference.summary.sha256);
    assert_eq!(resolution.resolution.value_type, Some("object"));
    assert!(resolution.resolution.size_bytes.unwrap() > 70_000);
    assert!(payloads.payload_resolution_summary.all_resolved);
    plane.close().await;
}

#[tokio::test]
async fn a_report_about_a_command_is_attached_to_the_command() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let command = story.command_at(3);
    let name = noetl_model::command_name(story.id(), "a", command);
    let report = ReportedEvent {
        event_type: "command.heartbeat".into(),
        step: Arc::from("a"),
        status: "ALIVE".into(),
        payload: None,
        meta: Some(json!({"command_id": name})),
        worker: None,
        key: None,
        columns: None,
    };
    write(&*store, story.then(vec![Fact::Reported(Box::new(report))])).await;
    let state = replayed(&plane, &all_of(story.id())).await.state;
    assert_eq!(state.commands.keys().collect::<Vec<_>>(), [&command.to_string()]);
    assert_eq!(state.commands[&command.to_string()].status, "ALIVE");
    plane.close().await;
}

#[tokio::test]
async fn every_cut_equals_the_fold_of_the_events_before_it() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let story = long(&store, 12_345).await;
    let id = story.id();
    let cuts = [1, 4_999, 5_000, 5_001, 10_000, 12_344, 12_345, 20_000];
    for place in cuts {
        let until = ReadBound::Event(story.event_at(place));
        let replay = replayed(&plane, &ReplayRequest { until, ..all_of(id) }).await;
        assert_eq!(replay.state, folded(&store, id, until, usize::MAX).await, "until {place}");
        assert!(!replay.is_truncated);

        let limited = ReplayRequest { limit: Some(place), ..all_of(id) };
        let replay = replayed(&plane, &limited).await;
        let limit = usize::try_from(place).unwrap();
        assert_eq!(replay.state, folded(&store, id, ReadBound::End, limit).await, "limit {place}");
        assert_eq!(replay.is_truncated, place < 12_345, "limit {place}");
    }
    let log = store.read(id, noetl_model::Seq(6_000), 1).await.unwrap();
    let until = ReadBound::Time(log[0].at);
    let replay = replayed(&plane, &ReplayRequest { until, ..all_of(id) }).await;
    assert_eq!(replay.state.event_count, 6_001);
    assert_eq!(replay.state, folded(&store, id, until, usize::MAX).await);
    plane.close().await;
}

#[tokio::test]
async fn a_long_replay_stores_a_snapshot_and_resumes_from_it() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let mut story = long(&store, 9_999).await;
    let id = story.id();
    replayed(&plane, &all_of(id)).await;
    assert_eq!(stored_snapshot(&store, id).await, None, "too few rows to be worth it");
    grow(&store, &mut story, 2_000).await;
    let cut = ReplayRequest { limit: Some(11_000), ..all_of(id) };
    replayed(&plane, &cut).await;
    let until = ReadBound::Event(story.event_at(11_000));
    replayed(&plane, &ReplayRequest { until, ..all_of(id) }).await;
    assert_eq!(stored_snapshot(&store, id).await, None, "they are not the whole log");
    let whole = ReplayRequest { projection: Projection::Loop, ..all_of(id) };
    let first = replayed(&plane, &whole).await;
    let snapshot = stored_snapshot(&store, id).await.expect("a kept state");
    assert_eq!(snapshot.version, story.event_at(11_999).get());
    assert_eq!(snapshot.meta["rows"], 11_999);
    assert_eq!(replayed(&plane, &whole).await.state, first.state, "to the checksum");
    assert_eq!(first.state.projection, Projection::Loop);

    grow(&store, &mut story, 700).await;
    let replay = replayed(&plane, &all_of(id)).await;
    assert_eq!(replay.state, folded(&store, id, ReadBound::End, usize::MAX).await);
    mark(&store, id).await;
    assert!(is_marked(&replayed(&plane, &all_of(id)).await), "it began at the kept state");
    let advanced = plane.control.views.replay.advance(id).await.unwrap().expect("events");
    assert_eq!(advanced.state.execution.last_node_name.as_deref(), Some("marked"));
    assert_eq!((advanced.events, advanced.version), (12_699, story.event_at(12_699)));
    let start_meta = advanced.start_meta.expect("the beginning's");
    assert_eq!(start_meta["execution_pool"], "gpu", "also of a fold that did not read it");
    plane.close().await;
}

#[tokio::test]
async fn a_snapshot_beyond_the_request_is_not_used() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let story = long(&store, 10_500).await;
    let id = story.id();
    replayed(&plane, &all_of(id)).await;
    mark(&store, id).await;
    let at = |place: u64| store.read(id, noetl_model::Seq(place - 1), 1);
    let (last, before) = (at(10_500).await.unwrap()[0].at, at(10_499).await.unwrap()[0].at);
    let until = |until| ReplayRequest { until, ..all_of(id) };
    for (request, uses) in [
        (until(ReadBound::Event(story.event_at(10_500))), true),
        (until(ReadBound::Event(story.event_at(10_499))), false),
        (until(ReadBound::Time(last)), true),
        (until(ReadBound::Time(before)), false),
        (ReplayRequest { limit: Some(10_500), ..all_of(id) }, true),
        (ReplayRequest { limit: Some(10_499), ..all_of(id) }, false),
        (ReplayRequest { organization: "acme".into(), ..all_of(id) }, false),
        (ReplayRequest { tenant: Tenant::new("acme"), ..all_of(id) }, false),
    ] {
        assert_eq!(is_marked(&replayed(&plane, &request).await), uses, "{request:?}");
    }
    plane.close().await;
}

#[tokio::test]
async fn a_late_row_with_a_small_id_invalidates_a_snapshot() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let mut story = long(&store, 10_500).await;
    let id = story.id();
    replayed(&plane, &all_of(id)).await;
    mark(&store, id).await;
    let mut late = story.then(vec![said("late")]);
    let early = Event { id: EventId::new(5), ..Event::clone(&late.events[0]) };
    late.events[0] = Arc::new(early);
    write(&*store, late).await;
    let replay = replayed(&plane, &all_of(id)).await;
    assert_eq!(replay.state.event_count, 10_501);
    assert_eq!(replay.state, folded(&store, id, ReadBound::End, usize::MAX).await);
    let snapshot = stored_snapshot(&store, id).await.expect("a kept state");
    assert_eq!(snapshot.meta["rows"], 10_501, "the old one gave way, at the same version");
    assert_eq!(replayed(&plane, &all_of(id)).await.state, replay.state);
    plane.close().await;
}

#[tokio::test]
async fn a_damaged_or_foreign_snapshot_is_ignored() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let story = long(&store, 10_500).await;
    let id = story.id();
    let right = replayed(&plane, &all_of(id)).await.state;
    let good = stored_snapshot(&store, id).await.expect("a kept state");
    let mut of_another: Value = serde_json::from_str(&good.body).unwrap();
    of_another["execution_id"] = json!(11);
    let mut shorter: Value = serde_json::from_str(&good.body).unwrap();
    shorter["event_count"] = json!(10_499);
    let other_form = json!({"form": "noetl-replay-0", "rows": 10_500, "newest_us": 0});
    for (body, meta) in [
        ("not JSON".to_owned(), good.meta.clone()),
        ("{}".to_owned(), good.meta.clone()),
        (of_another.to_string(), good.meta.clone()),
        (shorter.to_string(), good.meta.clone()),
        (r#"{"marked": true}"#.to_owned(), json!({"applied_count": 3})),
        (good.body.replace("UNKNOWN", "MARKED"), other_form),
        (good.body.replace("UNKNOWN", "MARKED"), json!(null)),
    ] {
        let (tenant, name) = (Tenant::default(), format!("execution/{id}/all"));
        store.forget(&tenant, KEPT, &name).await.unwrap();
        let bad = Snapshot::new(good.version, body, meta);
        assert!(store.save(&tenant, KEPT, &name, bad.clone()).await.unwrap());
        assert_eq!(replayed(&plane, &all_of(id)).await.state, right, "{}", bad.meta);
    }
    plane.close().await;
}

/// A state may outlive its execution when both go at the same moment.
#[tokio::test]
async fn a_snapshot_of_a_purged_execution_is_ignored() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let id = long(&store, 10_500).await.id();
    replayed(&plane, &all_of(id)).await;
    let left = stored_snapshot(&store, id).await.expect("a kept state");
    let gone = ExecutionId::new(77);
    let body = left.body.replace("\"execution_id\":10,", "\"execution_id\":77,");
    let snapshot = Snapshot::new(left.version, body, left.meta);
    let saved = store.save(&Tenant::default(), KEPT, "execution/77/all", snapshot).await;
    assert!(saved.unwrap());
    assert_eq!(replayed(&plane, &all_of(gone)).await.state.event_count, 0);
    assert!(plane.control.views.replay.advance(gone).await.unwrap().is_none());
    plane.close().await;
}

#[tokio::test]
async fn logs_of_another_tenant_and_missing_logs_are_empty() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    write(&*store, Story::new(10).of("acme").start()).await;
    let id = ExecutionId::new(10);
    let theirs = ReplayRequest { tenant: Tenant::new("acme"), ..all_of(id) };
    assert_eq!(replayed(&plane, &theirs).await.state.event_count, 3);
    let elsewhere = ReplayRequest { organization: "lab".into(), ..theirs.clone() };
    for request in [all_of(id), elsewhere, all_of(ExecutionId::new(-1))] {
        let replay = replayed(&plane, &request).await;
        assert_eq!((replay.state.event_count, replay.is_truncated), (0, false));
        assert_eq!(replay.state.execution.status, "UNKNOWN");
        assert!(replay.state.checksum.is_some() && replay.state.projection_checksums.is_some());
    }
    assert!(plane.control.views.replay.advance(ExecutionId::new(-1)).await.unwrap().is_none());
    let advanced = plane.control.views.replay.advance(id).await.unwrap().expect("events");
    assert_eq!((advanced.events, &*advanced.state.tenant_id), (3, "acme"));
    plane.close().await;
}

#[tokio::test]
async fn subscription_events_replay_only_for_their_tenant() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let acme = Tenant::new("acme");
    let new = NewSubscription {
        id: SubscriptionId::new(50),
        path: "subs/a".into(),
        catalog: CatalogId::new(1),
        stamp: EventStamp { event: EventId::new(51), at: Timestamp::from_micros(1) },
    };
    store.register_subscription(&acme, new).await.unwrap();
    let theirs = ReplayRequest { tenant: acme, ..all_of(ExecutionId::new(50)) };
    let state = replayed(&plane, &theirs).await.state;
    assert_eq!(state.last_event_type.as_deref(), Some("subscription.registered"));
    assert_eq!(replayed(&plane, &all_of(ExecutionId::new(50))).await.state.event_count, 0);
    plane.close().await;
}

#[tokio::test]
async fn references_are_resolved_once_and_missing_values_are_reported() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let mut story = Story::new(10);
    let data = json!({"rows": [{"b": 1, "a": 2}, {}]});
    let summary = ResultSummary {
        id: ResultId::new(5),
        execution: story.id(),
        name: "a/b".into(),
        scope: "execution".into(),
        source_step: None,
        bytes: 1,
        sha256: String::new(),
        media_type: "application/json".into(),
        expires_at: None,
    };
    let new = NewResult { summary, data };
    assert!(store.put_result(&Tenant::default(), new).await.unwrap());
    write(&*store, story.start()).await;
    let own = "noetl://execution/10/result/a/b/5";
    let in_objects = "noetl://default/shop/results/10/load/0/1/2";
    let others = "noetl://acme/shop/results/10/load/0/1/2";
    let object_key = "project=shop/execution=10/results/load/0/1/2.json";
    plane
        .control
        .data
        .objects
        .put(None, object_key, "application/json", b"[1, 2, 3]".to_vec())
        .await
        .unwrap();
    let carrying = |reference: Value, meta: Value| {
        let result = Some(json!({"status": "ok", "reference": reference}));
        let event_type = Some("frame.committed".into());
        Fact::Imported(Box::new(ImportedEvent {
            event_type,
            result,
            meta: Some(meta),
            ..ImportedEvent::default()
        }))
    };
    let facts = vec![
        carrying(json!({"ref": own, "row_count": 2}), json!({"frame_id": "f"})),
        carrying(json!(own), json!({"object_type": "o", "object_id": "1"})),
        carrying(json!({"uri": "s3://elsewhere"}), json!({})),
        carrying(json!({"digest": "0".repeat(64), "bytes": 3, "media_type": "x"}), json!({})),
        carrying(json!("noetl://execution/10/result/a/b/6"), json!({})),
        carrying(json!({"nothing": 1}), json!({})),
        carrying(json!({"ref": in_objects}), json!({})),
        carrying(json!({"ref": others}), json!({})),
    ];
    let append: Append = story.then(facts);
    write(&*store, append).await;
    let request = ReplayRequest { resolve_payloads: true, ..all_of(story.id()) };
    let replay = replayed(&plane, &request).await;
    let shown = serde_json::to_value(replay.payloads.expect("they were asked for")).unwrap();
    let rows = shown["payload_resolution"].as_array().unwrap();
    let what: Vec<_> = rows
        .iter()
        .map(|row| {
            let at =
                ["scope", "frame_id", "object_key"].map(|key| row[key].as_str().unwrap_or("-"));
            format!("{} {}", at.join(" "), row["resolution"]["resolved"])
        })
        .collect();
    assert_eq!(
        what,
        [
            "execution - - true",
            "execution - - true",
            "execution - - false",
            "execution - - false",
            "execution - - false",
            "execution - - false",
            "execution - - true",
            "execution - - false",
            "frame f - true",
            "business_object - o/1 true",
        ]
    );
    let text = r#"{"rows":[{"a":2,"b":1},{}]}"#;
    assert_eq!(
        rows[0],
        json!({
            "scope": "execution", "event_id": story.event_at(4).get(),
            "reference_summary": {"row_count": 2, "ref": own},
            "resolution": {
                "ref": own, "resolved": true, "checksum": noetl_store::Digest::of_bytes(text.as_bytes()).to_string(),
                "size_bytes": text.len(), "row_count": 2, "value_type": "object", "error": null,
            },
        })
    );
    assert_eq!(rows[2]["resolution"]["error"], "the payload is stored outside this control plane");
    assert_eq!(rows[4]["resolution"]["error"], "there is no such result");
    assert_eq!(rows[5]["resolution"]["error"], "the reference names no place");
    assert_eq!(rows[5]["resolution"]["ref"], json!(null));
    assert_eq!(rows[6]["resolution"]["row_count"], 3);
    assert_eq!(rows[7]["resolution"]["error"], "there is no such result");
    assert!(!shown.to_string().contains("\"a\":2"), "bodies stay where they are");
    let summary = &shown["payload_resolution_summary"];
    let numbers =
        ["total", "resolved", "unresolved", "unique_refs"].map(|key| summary[key].as_u64());
    assert_eq!(numbers, [10, 5, 5, 6].map(Some));
    assert_eq!(summary["all_resolved"], false);
    let checksum = noetl_engine::replay::Checksum::of_value(&shown["payload_resolution"]).value;
    assert_eq!(summary["checksum"], checksum);
    plane.close().await;
}

#[tokio::test]
async fn an_unavailable_store_is_an_error() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let story = long(&store, 10).await;
    let replay: Replay = plane.control.views.replay.clone();
    store.set_down(true);
    assert!(replay.state(&all_of(story.id())).await.is_err());
    assert!(replay.advance(story.id()).await.is_err());
    store.set_down(false);
    assert!(replay.state(&all_of(story.id())).await.is_ok());
    plane.close().await;
}

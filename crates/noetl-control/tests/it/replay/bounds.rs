//! Costs of a replay, and snapshots that outlive their log.

use noetl_store::tail::PAGE_BYTES;
use noetl_store::{Import, ImportStore, NewRuntimeEvent};

use super::*;

/// An execution that is purged and imported again has another log.
#[tokio::test]
async fn a_snapshot_of_a_longer_log_is_ignored() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let id = long(&store, 10_500).await.id();
    replayed(&plane, &all_of(id)).await;
    let left = stored_snapshot(&store, id).await.expect("a kept state");
    let mut again = Story::new(9);
    write(&*store, again.start()).await;
    let body = left.body.replace("\"execution_id\":10,", "\"execution_id\":9,");
    let snapshot = Snapshot::new(left.version, body, left.meta);
    let saved = store.save(&Tenant::default(), KEPT, "execution/9/all", snapshot).await;
    assert!(saved.unwrap());
    let replay = replayed(&plane, &all_of(again.id())).await;
    assert_eq!(replay.state, folded(&store, again.id(), ReadBound::End, usize::MAX).await);
    assert_eq!(replay.state.event_count, 3);
    // Also when it is as long but for one row.
    grow(&store, &mut again, 10_496).await;
    let replay = replayed(&plane, &all_of(again.id())).await;
    assert_eq!(replay.state.event_count, 10_499);
    plane.close().await;
}

fn imported(event: i64, row: ImportedEvent) -> Import {
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(20),
        event: EventId::new(event),
        at: Timestamp::from_micros(event),
        row,
    }
}

#[tokio::test]
async fn large_rows_are_read_in_small_pages_to_the_end() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let text = json!("x".repeat(PAGE_BYTES / 4));
    for event in 1..=12 {
        let large = ImportedEvent { result: Some(text.clone()), ..ImportedEvent::default() };
        store.import(vec![imported(event, large)]).await.unwrap();
    }
    let small = ImportedEvent { event_type: Some("last".into()), ..ImportedEvent::default() };
    store.import(vec![imported(13, small)]).await.unwrap();
    let request = all_of(ExecutionId::new(20));
    let state = replayed(&plane, &request).await.state;
    assert_eq!((state.event_count, state.last_event_type.as_deref()), (13, Some("last")));
    assert_eq!(store.row_reads(), 4);
    let limited = replayed(&plane, &ReplayRequest { limit: Some(12), ..request }).await;
    assert_eq!((limited.state.event_count, limited.is_truncated), (12, true));
    plane.close().await;
}

#[tokio::test]
async fn rows_of_other_tenants_are_skipped_in_large_pages() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let lab = json!({"organization_id": "lab"});
    let theirs =
        ImportedEvent { more: lab.as_object().cloned().unwrap(), ..ImportedEvent::default() };
    let mut rows: Vec<Import> = (1..=2_000).map(|event| imported(event, theirs.clone())).collect();
    rows.extend((2_001..=2_003).map(|event| imported(event, ImportedEvent::default())));
    store.import(rows).await.unwrap();
    let request = ReplayRequest { limit: Some(1), ..all_of(ExecutionId::new(20)) };
    let replay = replayed(&plane, &request).await;
    assert_eq!((replay.state.event_count, replay.is_truncated), (1, true));
    assert_eq!(replay.state.last_event_id, Some(2_001));
    assert!(store.row_reads() <= 5, "{} reads", store.row_reads());
    plane.close().await;
}

/// Such a snapshot would never be removed.
#[tokio::test]
async fn no_snapshot_of_a_subscription_is_stored() {
    let store = Arc::new(FaultyStore::default());
    let plane = plane(&store).await;
    let (tenant, id) = (Tenant::default(), SubscriptionId::new(50));
    let stamp =
        |event| EventStamp { event: EventId::new(event), at: Timestamp::from_micros(event) };
    let new =
        NewSubscription { id, path: "subs/a".into(), catalog: CatalogId::new(1), stamp: stamp(51) };
    store.register_subscription(&tenant, new).await.unwrap();
    for event in 52..10_100 {
        let reported = ReportedEvent {
            event_type: "subscription.activity".into(),
            step: Arc::from("a"),
            status: "ALIVE".into(),
            payload: None,
            meta: None,
            worker: None,
            key: None,
            columns: None,
        };
        let note = NewRuntimeEvent { stamp: stamp(event), said: reported };
        store.note_subscription(&tenant, id, note).await.unwrap().expect("a note");
    }
    // What is there by that name is neither read, nor replaced, nor dropped.
    let other = Snapshot::new(1, "{}".into(), json!({}));
    let log = ExecutionId::new(50);
    assert!(store.save(&tenant, KEPT, "execution/50/all", other.clone()).await.unwrap());
    assert_eq!(replayed(&plane, &all_of(log)).await.state.event_count, 10_049);
    assert_eq!(stored_snapshot(&store, log).await, Some(other));
    plane.close().await;
}

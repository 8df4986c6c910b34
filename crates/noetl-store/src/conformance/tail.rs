//! Cases about commit order.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::{CatalogId, EventId, ExecutionId, SubscriptionId, Tenant, Timestamp};
use serde_json::json;

use super::retention::purge_everything_finished;
use super::story::{Story, commit, done, said, write};
use crate::tail::{Lane, TailRow};
use crate::{
    Committed, EventStamp, Import, NewSubscription, Store, SubscriptionAction, SubscriptionState,
};

pub async fn the_tail_returns_every_committed_row_once_and_in_order(store: Arc<dyn Store>) {
    assert!(store.lanes().await.expect("lanes").iter().all(|lane| lane.newest == 0));
    let mut stories: Vec<Story> = (10..16).map(Story::new).collect();
    let mut expected = Vec::new();
    for story in &mut stories {
        write(&*store, story.start()).await;
    }
    for round in 0..5 {
        for story in &mut stories {
            write(&*store, story.then(vec![said(&format!("{round}"))])).await;
        }
    }
    for story in &stories {
        expected.extend((1..=8).map(|place| (story.id(), story.event_at(place))));
    }
    let mut found: Vec<(ExecutionId, EventId)> = Vec::new();
    let mut logs: BTreeMap<ExecutionId, Vec<EventId>> = BTreeMap::new();
    for lane in store.lanes().await.expect("lanes") {
        let rows = follow(&*store, lane, 7).await;
        assert!(rows.is_sorted_by(|one, next| one.position < next.position));
        assert_eq!(rows.last().map_or(0, |row| row.position), lane.newest);
        for row in rows {
            found.push((row.row.execution_id, row.row.event_id));
            logs.entry(row.row.execution_id).or_default().push(row.row.event_id);
        }
    }
    assert!(logs.values().all(|log| log.is_sorted()), "{logs:?}");
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

pub async fn a_page_starts_after_a_position_and_ends_at_its_limit(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let lane = used(&*store).await;
    let all = store.tail(lane.number, 0, 100).await.expect("rows");
    assert_eq!(all.len(), 3);
    let page = store.tail(lane.number, all[0].position, 1).await.expect("rows");
    assert_eq!(page, all[1..2]);
    for (after, limit) in [(lane.newest, 100), (i64::MAX, 100), (0, 0)] {
        assert_eq!(store.tail(lane.number, after, limit).await.expect("rows"), []);
    }
    assert_eq!(store.tail(lane.number, i64::MIN, 100).await.expect("rows"), all);
    assert_eq!(store.tail(u16::MAX, 0, 100).await.expect("rows"), [], "an unknown lane");
    assert_eq!(store.tail_adopted(i64::MIN, 100).await.expect("rows"), []);
}

pub async fn a_tail_row_has_the_columns_of_its_execution(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("half way")])).await;
    let lane = used(&*store).await;
    let rows = store.tail(lane.number, 0, 100).await.expect("rows");
    assert_eq!(rows.len(), 4);
    for (place, row) in (1..).zip(&rows) {
        assert_eq!((&row.tenant, row.catalog), (&story.tenant, Some(story.row.catalog)));
        assert_eq!(row.previous, (place > 1).then(|| story.event_at(place - 1)));
        assert_eq!((row.row.seq.0, row.row.event_id), (place, story.event_at(place)));
        let payload: serde_json::Value =
            serde_json::from_str(&row.payload().expect("a payload")).expect("JSON");
        assert_eq!(payload["event_id"], json!(story.event_at(place)));
    }
    let stored = store.read(story.id(), noetl_model::Seq::START, 10).await.expect("a log");
    let decoded: Vec<_> = rows.iter().map(|row| row.row.decode().expect("an event")).collect();
    assert_eq!(decoded, stored);
}

pub async fn the_tail_includes_rows_of_subscriptions_and_imports(store: Arc<dyn Store>) {
    let acme = Tenant::new("acme");
    let stamp = |n| EventStamp { event: EventId::new(n), at: Timestamp::from_micros(n) };
    let id = SubscriptionId::new(5);
    let (path, catalog) = ("sub/a".to_owned(), CatalogId::new(7));
    let new = NewSubscription { id, path, catalog, stamp: stamp(100) };
    store.register_subscription(&acme, new).await.expect("a subscription");
    let (from, action) = (SubscriptionState::Registered, SubscriptionAction::Activate);
    let moved = store.transition(&acme, id, from, action, stamp(101)).await;
    assert!(moved.expect("an answer").is_some());
    let import = Import {
        tenant: acme.clone(),
        execution: ExecutionId::new(77),
        event: EventId::new(3),
        at: Timestamp::from_micros(3),
        row: ImportedEvent { event_type: Some("x".into()), ..ImportedEvent::default() },
    };
    store.import(vec![import]).await.expect("an answer");
    let mut rows = Vec::new();
    for lane in store.lanes().await.expect("lanes") {
        rows.extend(follow(&*store, lane, 10).await);
    }
    rows.sort_by_key(|row| row.row.event_id);
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.row.execution_id.get(), row.row.event_id.get(), row.tenant.as_str()))
        .collect();
    assert_eq!(found, [(77, 3, "acme"), (5, 100, "acme"), (5, 101, "acme")]);
    assert_eq!(rows[2].previous, Some(EventId::new(100)));
    assert_eq!(rows[2].catalog, Some(catalog));
}

pub async fn the_tail_omits_rows_of_a_rejected_append(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let before = used(&*store).await;
    let mut ahead = story.clone();
    let _lost = ahead.then(vec![said("lost")]);
    let refused = commit(&*store, ahead.then(vec![said("ahead")])).await;
    assert!(matches!(refused, Committed::Conflict { .. }));
    assert_eq!(commit(&*store, Story::new(10).start()).await, Committed::Repeated);
    assert_eq!(used(&*store).await, before);
    assert_eq!(follow(&*store, before, 10).await.len(), 3);
}

pub async fn a_page_of_large_rows_is_limited_by_bytes_and_never_empty(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let text = "x".repeat(6 << 20);
    for _ in 0..3 {
        write(&*store, story.then(vec![said(&text)])).await;
    }
    let lane = used(&*store).await;
    let page = store.tail(lane.number, 0, 100).await.expect("rows");
    assert!(page.len() < 6, "{}", page.len());
    assert_eq!(follow(&*store, lane, 100).await.len(), 6);
}

pub async fn positions_continue_after_a_purge(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![done()])).await;
    let before = used(&*store).await;
    purge_everything_finished(&*store).await;
    assert_eq!(used(&*store).await, before, "what was given stays given");
    assert_eq!(follow(&*store, before, 10).await, []);
    write(&*store, Story::new(10).start()).await;
    let rows = store.tail(before.number, before.newest, 10).await.expect("rows");
    assert_eq!(rows.len(), 3);
    assert!(rows[0].position > before.newest);
}

/// Returns the only lane that contains rows.
async fn used(store: &dyn Store) -> Lane {
    let lanes = store.lanes().await.expect("lanes");
    let used: Vec<Lane> = lanes.into_iter().filter(|lane| lane.newest > 0).collect();
    assert_eq!(used.len(), 1, "{used:?}");
    used[0]
}

/// Reads a whole lane in pages of `limit` rows.
async fn follow(store: &dyn Store, lane: Lane, limit: usize) -> Vec<TailRow> {
    let mut rows: Vec<TailRow> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.position);
        let page = store.tail(lane.number, after, limit).await.expect("rows");
        if page.is_empty() {
            return rows;
        }
        assert!(page.len() <= limit);
        rows.extend(page);
    }
}

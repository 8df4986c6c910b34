//! Cases about the outbox, for stores that were opened with it enabled.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::Value;
use serde_json::json;
use tokio::task::JoinSet;

use super::leases::LONG;
use super::story::{Story, commit, said, write};
use crate::{Committed, OutboxRow, Store};

pub async fn every_event_of_a_commit_is_published_in_order(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("x")])).await;
    assert_eq!(store.pending().await.expect("a count"), 4);
    let rows = claim(&*store, 10).await;
    let events: Vec<_> = rows.iter().map(|row| row.event).collect();
    assert_eq!(events, [1, 2, 3, 4].map(|place| story.event_at(place)));
    assert!(rows.is_sorted_by_key(|row| row.id), "{rows:?}");
    for row in &rows {
        assert_eq!((&row.tenant, row.execution), (&story.tenant, Some(story.id())));
        assert_eq!((&*row.codec, row.attempts, &row.error), ("json", 1, &None));
    }
    let subjects: Vec<&str> = rows.iter().filter_map(|row| row.subject.as_deref()).collect();
    let expected = ["playbook_started", "step.enter", "command.issued", "progress"];
    assert_eq!(subjects, expected.map(|name| format!("noetl.events.{name}")));
}

pub async fn a_payload_is_the_event_s_row(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("half way")])).await;
    let payloads = claim(&*store, 10).await;
    let payloads: Vec<Value> =
        payloads.iter().map(|row| serde_json::from_str(&row.payload).expect("JSON")).collect();
    for (place, payload) in (1..).zip(&payloads) {
        assert_eq!(payload["event_id"], json!(story.event_at(place)));
        let previous = (place > 1).then(|| story.event_at(place - 1));
        assert_eq!(payload["prev_event_id"], json!(previous), "{place}");
        assert_eq!(payload["catalog_id"], json!(story.row.catalog));
        assert_eq!(payload["tenant_id"], json!("acme"));
    }
    assert_eq!(payloads[3]["event_type"], json!("progress"));
    assert_eq!(payloads[3]["worker_id"], json!("local"));
    assert_eq!(payloads[3]["node_type"], Value::Null);
}

pub async fn events_of_a_rejected_append_are_not_published(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    assert_eq!(commit(&*store, Story::new(10).start()).await, Committed::Repeated);
    let mut ahead = story.clone();
    let _lost = ahead.then(vec![said("lost")]);
    let refused = commit(&*store, ahead.then(vec![said("ahead")])).await;
    assert!(matches!(refused, Committed::Conflict { .. }));
    assert_eq!(store.pending().await.expect("a count"), 3);
}

pub async fn an_event_id_in_two_logs_is_published_for_both(store: Arc<dyn Store>) {
    let mut one = Story::new(10);
    write(&*store, one.start()).await;
    let mut other = Story::new(11);
    let mut start = other.start();
    let mut event = noetl_model::Event::clone(&start.events[1]);
    event.id = one.event_at(2);
    start.events[1] = Arc::new(event);
    write(&*store, start).await;
    let rows = claim(&*store, 10).await;
    let same = rows.iter().filter(|row| row.event == one.event_at(2));
    let executions: Vec<_> = same.map(|row| row.execution).collect();
    assert_eq!(executions, [Some(one.id()), Some(other.id())]);
}

pub async fn a_claimed_row_is_not_claimed_while_the_claim_lasts(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    assert_eq!(claim(&*store, 0).await, []);
    let first = ids(&claim(&*store, 2).await);
    assert_eq!(store.pending().await.expect("a count"), 1);
    let rest = ids(&claim(&*store, usize::MAX).await);
    assert_eq!((first.len(), rest.len()), (2, 1));
    assert!(first[1] < rest[0]);
    assert_eq!(claim(&*store, 10).await, []);
    assert_eq!(store.pending().await.expect("a count"), 0);
}

pub async fn a_claim_of_large_rows_is_limited_by_bytes_and_never_empty(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let small = claim(&*store, 10).await;
    for row in &small {
        store.mark_failed(row.id, "again", Duration::ZERO).await.expect("an answer");
    }
    // A limit that several databases can share, and a row with more bytes but fewer characters than
    // it.
    let bytes = 100 * small.iter().map(|row| row.payload.len()).sum::<usize>();
    write(&*store, story.then(vec![said(&"\u{1F980}".repeat(bytes / 4 + 1))])).await;
    let within = async |bytes| store.claim_within(1000, bytes).await.expect("a claim");
    assert_eq!(ids(&within(bytes).await), ids(&small));
    let large = within(1).await;
    assert_eq!(large.len(), 1, "the first row is claimed however large it is");
    assert!(large[0].payload.len() > bytes);
    assert_eq!(within(usize::MAX).await, []);
}

pub async fn a_published_row_is_never_claimed_again(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let rows = ids(&claim(&*store, 2).await);
    let (published, failed) = (rows[0], rows[1]);
    assert!(store.mark_failed(failed, "no", Duration::ZERO).await.expect("an answer"));
    // Rows in every other state: claimed, failed, and never claimed.
    let named = [published, published, failed, failed + 1, 999_999];
    for expected in [3, 0] {
        assert_eq!(store.mark_published(&named).await.expect("a count"), expected);
    }
    assert_eq!(store.mark_published(&[]).await.expect("a count"), 0);
    let back = store.mark_failed(published, "late", Duration::ZERO).await;
    assert!(!back.expect("an answer"));
    assert_eq!(claim(&*store, 10).await, []);
    assert_eq!(store.pending().await.expect("a count"), 0);
}

pub async fn a_failed_row_is_ready_after_its_delay(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let rows = ids(&claim(&*store, 3).await);
    let error = "ü".repeat(3000);
    assert!(store.mark_failed(rows[1], &error, Duration::ZERO).await.expect("an answer"));
    assert!(store.mark_failed(rows[0], "no", LONG).await.expect("an answer"));
    assert!(!store.mark_failed(999_999, "no", LONG).await.expect("an answer"), "unknown");
    assert_eq!(store.pending().await.expect("a count"), 1);
    let again = claim(&*store, 10).await;
    assert_eq!(ids(&again), [rows[1]]);
    assert_eq!(again[0].attempts, 2);
    assert_eq!(again[0].error, Some("ü".repeat(2000)), "cut, and between characters");
}

pub async fn only_published_rows_are_purged(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let rows = ids(&claim(&*store, 2).await);
    store.mark_published(&rows[..1]).await.expect("a count");
    for window in [LONG, Duration::MAX] {
        assert_eq!(store.purge_published(window).await.expect("a count"), 0, "{window:?}");
    }
    assert_eq!(store.purge_published(Duration::ZERO).await.expect("a count"), 1);
    assert_eq!(store.purge_published(Duration::ZERO).await.expect("a count"), 0);
    let late = store.mark_failed(rows[0], "late", Duration::ZERO).await;
    assert!(!late.expect("an answer"), "it is gone");
    write(&*store, story.then(vec![said("x")])).await;
    store.mark_published(&rows[1..]).await.expect("a count");
    let left = ids(&claim(&*store, 10).await);
    assert_eq!(left.len(), 2);
    store.mark_published(&left).await.expect("a count");
    assert_eq!(store.purge_published(Duration::ZERO).await.expect("a count"), 3);
    write(&*store, story.then(vec![said("y")])).await;
    let next = ids(&claim(&*store, 10).await);
    assert!(next[0] > left[1], "an id is not used again");
}

pub async fn concurrent_publishers_never_share_a_row(store: Arc<dyn Store>) {
    for id in 10..20 {
        write(&*store, Story::new(id).start()).await;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let store = store.clone();
        tasks.spawn(async move { ids(&claim(&*store, 5).await) });
    }
    let all = tasks.join_all().await.concat();
    assert_eq!(all.len(), 30);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 30);
}

async fn claim(store: &dyn Store, limit: usize) -> Vec<OutboxRow> {
    store.claim(limit).await.expect("a claim")
}

fn ids(rows: &[OutboxRow]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

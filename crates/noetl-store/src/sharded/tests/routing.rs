//! Which store a row is in, and how the answers of several become one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{ExecutionId, ResultId, Seq, Tenant, TimerId, Timestamp, shard_for};
use serde_json::json;

use super::{memory, sharded};
use crate::conformance::due::due;
use crate::conformance::results::result;
use crate::conformance::story::{Story, done, said, write};
use crate::conformance::subscriptions::{new, stamp};
use crate::conformance::transient::variable;
use crate::{
    Append, BlobRefs, Committed, Digest, EventLog, ExecutionFilter, ExecutionStore, NewEntry,
    OutboxStore, Sharded, Snapshot, SnapshotStore, Store, StoreClock, StoreError,
    SubscriptionAction, SubscriptionState, SubscriptionStore, TimerStore,
};

const LONG: Duration = Duration::from_secs(3600);

/// Three shards with a cluster store of their own.
fn house() -> (Arc<dyn Store>, Vec<Arc<dyn Store>>, Sharded) {
    let clock = StoreClock::default();
    let cluster = memory(1, &clock).remove(0);
    let shards = memory(3, &clock);
    let routed = sharded(&cluster, &shards);
    (cluster, shards, routed)
}

fn home(id: i64) -> usize {
    shard_for(ExecutionId::new(id), 3) as usize
}

/// Two executions in different shards.
fn apart() -> (i64, i64) {
    let other = (2..).find(|id| home(*id) != home(1)).expect("a hash that spreads");
    (1, other)
}

/// What a state of an execution is called that has a name.
fn named(id: i64) -> String {
    format!("execution/{id}/all")
}

/// How many kinds of rows a store has of this execution.
async fn rows_of(store: &dyn Store, id: i64) -> usize {
    let (tenant, execution) = (Tenant::default(), ExecutionId::new(id));
    let found = [
        !store.read(execution, Seq::START, 9).await.expect("a read").is_empty(),
        store.execution(&tenant, execution).await.expect("a read").is_some(),
        store.command(Story::new(id).command_at(3)).await.expect("a read").is_some(),
        !store.timers_of(execution).await.expect("a list").is_empty(),
        !store.references(execution).await.expect("a list").is_empty(),
        !store.variables(&tenant, execution).await.expect("a list").is_empty(),
        !store.results(&tenant, execution, ResultId::new(0), 9).await.expect("a list").is_empty(),
        store.snapshot(&tenant, "state", &id.to_string()).await.expect("a read").is_some(),
        store.snapshot(&tenant, "state", &named(id)).await.expect("a read").is_some(),
    ];
    found.into_iter().filter(|found| *found).count()
}

#[tokio::test]
async fn every_row_of_an_execution_is_in_its_shard_and_nowhere_else() {
    let (cluster, shards, routed) = house();
    let tenant = Tenant::default();
    for id in 1..=30 {
        let execution = ExecutionId::new(id);
        let append = Story::new(id).start();
        let (due, blobs) = (vec![due(id, 100)], vec![Digest::of_bytes(b"content")]);
        write(&routed, Append { due, blobs, ..append }).await;
        let kept =
            crate::VariableStore::put_variables(&routed, &tenant, execution, vec![variable("a")]);
        kept.await.expect("kept");
        let kept = crate::ResultStore::put_result(&routed, &tenant, result(id, id, "rows"));
        assert!(kept.await.expect("kept"));
        let snapshot = Snapshot::new(1, "{}".into(), json!({}));
        for aggregate in [id.to_string(), named(id)] {
            let saved = routed.save(&tenant, "state", &aggregate, snapshot.clone()).await;
            assert!(saved.expect("kept"));
        }
    }
    for id in 1..=30 {
        assert_eq!(rows_of(&routed, id).await, 9, "{id}");
        assert_eq!(rows_of(&*cluster, id).await, 0, "{id}");
        for (number, shard) in shards.iter().enumerate() {
            let expected = if number == home(id) { 9 } else { 0 };
            assert_eq!(rows_of(&**shard, id).await, expected, "{id} in {number}");
        }
    }
    let homes: HashSet<usize> = (1..=30).map(home).collect();
    assert_eq!(homes.len(), 3, "all shards have some");
}

#[tokio::test]
async fn shared_data_is_in_the_cluster_store_only() {
    let (cluster, shards, routed) = house();
    let routed: Arc<dyn Store> = Arc::new(routed);
    let tenant = Tenant::default();
    let entry = NewEntry {
        id: noetl_model::CatalogId::new(1),
        path: "a".into(),
        kind: "Playbook".into(),
        content: String::new(),
        layout: None,
        payload: None,
        meta: None,
        at: Timestamp::from_micros(1),
    };
    routed.register(&tenant, entry).await.expect("registered");
    routed.acquire("name", "me", LONG).await.expect("an answer").expect("a lease");
    routed.advance("reader", 5, None).await.expect("an answer");
    routed.put_object("key", "text/plain", b"bytes".to_vec()).await.expect("kept");
    let blob = routed.put_blob(b"content".to_vec(), "text/plain").await.expect("kept");
    let snapshot = Snapshot::new(1, "{}".into(), json!({}));
    assert!(routed.save(&tenant, "state", "not a number", snapshot).await.expect("kept"));
    let found = async |store: &dyn Store| {
        [
            store.entry_at(&tenant, "a", None).await.expect("a read").is_some(),
            store.lease("name").await.expect("a read").is_some(),
            store.cursor("reader").await.expect("a read").is_some(),
            store.object("key").await.expect("a read").is_some(),
            store.blob(&blob).await.is_ok(),
            store.snapshot(&tenant, "state", "not a number").await.expect("a read").is_some(),
        ]
    };
    assert_eq!(found(&*routed).await, [true; 6]);
    assert_eq!(found(&*cluster).await, [true; 6]);
    for shard in &shards {
        assert_eq!(found(&**shard).await, [false; 6]);
    }
}

#[tokio::test]
async fn the_log_of_a_subscription_is_in_the_cluster_store_and_is_found() {
    let (cluster, shards, routed) = house();
    let tenant = Tenant::default();
    for id in 1..=9 {
        let row = routed.register_subscription(&tenant, new(id, &format!("sub/{id}"))).await;
        let row = row.expect("a subscription");
        let log = ExecutionId::new(id);
        assert_eq!(routed.read(log, Seq::START, 9).await.expect("a log").len(), 1);
        let (from, action) = (SubscriptionState::Registered, SubscriptionAction::Activate);
        let moved = routed.transition(&tenant, row.id, from, action, stamp()).await;
        moved.expect("an answer").expect("active");
        let rest = routed.read(log, Seq(1), 9).await.expect("a page");
        assert_eq!(rest.len(), 1, "a later page is looked for there too");
        assert_eq!(routed.find_event(log, rest[0].id).await.expect("a look"), Some(Seq(2)));
        assert_eq!(routed.read(log, Seq(2), 9).await.expect("a page"), []);
        for shard in &shards {
            assert_eq!(shard.read(log, Seq::START, 9).await.expect("a log"), []);
        }
    }
    assert_eq!(routed.newest_id().await.expect("a read"), cluster.newest_id().await.expect("one"));
    // What is to go out of it goes out with the rest, and is marked where it is.
    let mut story = Story::new(100);
    write(&routed, story.start()).await;
    let waiting = routed.pending().await.expect("a count");
    let rows = routed.claim(1000).await.expect("a claim");
    assert_eq!((rows.len() as u64, rows.len() > 18), (waiting, true));
    assert!(routed.mark_failed(rows[0].id, "no", LONG).await.expect("an answer"));
    let last = rows.last().expect("a row");
    assert_eq!(last.execution.map(ExecutionId::get), Some(9), "the cluster store comes last");
    assert!(routed.mark_failed(last.id, "no", LONG).await.expect("an answer"));
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    assert_eq!(routed.mark_published(&ids).await.expect("a count"), rows.len());
    assert_eq!(routed.pending().await.expect("a count"), 0);
}

#[tokio::test]
async fn lists_are_those_of_one_store() {
    let (_, _, routed) = house();
    let single = memory(1, &StoreClock::default()).remove(0);
    let tenant = Tenant::default();
    for id in 1..=20 {
        for store in [&routed as &dyn Store, &*single] {
            let mut story = Story::new(id);
            // Every second start is at the time of the one before it.
            story.row.started_at = Timestamp::from_micros(id / 2);
            write(store, story.start()).await;
            if id % 5 == 0 {
                write(store, story.then(vec![done()])).await;
            }
        }
    }
    for (offset, limit) in [(0, 5), (3, 4), (15, 20), (20, 5), (0, 0), (7, usize::MAX)] {
        let filter = ExecutionFilter { offset, limit, ..ExecutionFilter::default() };
        let expected = single.executions(&tenant, &filter).await.expect("a list");
        let found = routed.executions(&tenant, &filter).await.expect("a list");
        assert_eq!(found, expected, "{offset} {limit}");
    }
    for after in [0, 4, 13, 20] {
        let after = ExecutionId::new(after);
        let expected = single.unfinished(after, 6).await.expect("a list");
        assert_eq!(routed.unfinished(after, 6).await.expect("a list"), expected);
    }
    let newest = single.newest_id().await.expect("a read");
    assert_eq!(routed.newest_id().await.expect("a read"), newest);
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_batch() {
    let (_, _, routed) = house();
    write(&routed, Story::new(4).start()).await;
    let batch = (1..=8).map(|id| Story::new(id).start()).collect();
    let outcomes = routed.commit(batch).await.expect("outcomes");
    for (id, outcome) in (1..).zip(outcomes) {
        let expected = if id == 4 { Committed::Repeated } else { Committed::Appended };
        assert_eq!(outcome, expected, "{id}");
    }
}

/// What one shard refuses is not undone in another, so nobody may hear that nothing was kept.
#[tokio::test]
async fn a_batch_that_one_shard_refuses_and_another_keeps_is_not_known() {
    let (_, _, routed) = house();
    let (one, other) = apart();
    let (mut first, mut second) = (Story::new(one), Story::new(other));
    write(&routed, first.start()).await;
    write(&routed, first.then(vec![done()])).await;
    let again = first.then(vec![done()]);
    let refused = routed.commit(vec![again.clone()]).await.expect_err("it ended already");
    let name = format!("s{}", home(one));
    assert_eq!(refused.shard(), Some(&*name));
    assert!(matches!(refused.failure(), StoreError::Backend { .. }), "{refused:?}");

    let refused = routed.commit(vec![second.start(), again]).await.expect_err("an error");
    assert_eq!(refused.shard(), Some(&*name));
    assert!(matches!(refused.failure(), StoreError::Unknown(_)), "{refused:?}");
    assert!(rows_of(&routed, other).await > 0, "it was kept");
}

#[tokio::test]
async fn an_answered_row_of_another_shard_is_removed_by_commits_and_by_holders() {
    let (_, _, routed) = house();
    let (sender, other) = apart();
    let rows = vec![due(1, 100), due(2, 100), due(3, 100)];
    write(&routed, Append { due: rows, ..Story::new(sender).start() }).await;
    let mut answering = Story::new(other);
    write(&routed, Append { delivered: vec![TimerId::new(1)], ..answering.start() }).await;
    let held = routed.hold(answering.id()).await.expect("held");
    let append = Append { delivered: vec![TimerId::new(2)], ..answering.then(vec![said("x")]) };
    assert_eq!(held.commit(append).await.expect("an answer"), Committed::Appended);
    // One that is not kept answers nothing.
    let repeated = Append { delivered: vec![TimerId::new(3)], ..Story::new(other).start() };
    let outcomes = routed.commit(vec![repeated]).await.expect("an answer");
    assert_eq!(outcomes, [Committed::Repeated]);
    let left = routed.timers_of(ExecutionId::new(sender)).await.expect("a list");
    assert_eq!(left.iter().map(|row| row.id.get()).collect::<Vec<_>>(), [3]);
}

#[tokio::test]
async fn work_is_taken_from_all_shards_and_never_more_than_asked_for() {
    let (_, shards, routed) = house();
    for id in 1..=12 {
        write(&routed, Append { due: vec![due(id, 100)], ..Story::new(id).start() }).await;
    }
    let (mut taken, mut claimed) = (Vec::new(), Vec::new());
    loop {
        let rows = routed.claim_due(5, LONG).await.expect("an answer");
        assert!(rows.len() == 5.min(12 - taken.len()), "as many as there are");
        if rows.is_empty() {
            break;
        }
        taken.extend(rows.iter().map(|row| row.id.get()));
    }
    taken.sort_unstable();
    assert_eq!(taken, Vec::from_iter(1..=12));
    assert_eq!(routed.pending().await.expect("a count"), 36);
    while claimed.len() < 36 {
        let rows = routed.claim(7).await.expect("a claim");
        assert_eq!(rows.len(), 7.min(36 - claimed.len()));
        assert!(rows.is_sorted_by_key(|row| row.id));
        claimed.extend(rows.iter().map(|row| (row.execution, row.event, row.id)));
    }
    // In the order of ids, the events of one execution are in the order of its log.
    claimed.sort_by_key(|(execution, event, _)| (*execution, *event));
    assert!(claimed.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].2 < pair[1].2));
    let ids: Vec<i64> = claimed.iter().map(|(_, _, id)| *id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 36, "no id twice");
    assert_eq!(routed.mark_published(&ids).await.expect("a count"), 36);
    for id in [-1, i64::MIN, i64::MAX, 3 << 48] {
        assert_eq!(routed.mark_published(&[id]).await.expect("a count"), 0, "{id}");
        assert!(!routed.mark_failed(id, "no", LONG).await.expect("an answer"), "{id}");
    }
    assert_eq!(routed.purge_published(Duration::ZERO).await.expect("a count"), 36);
    for shard in shards {
        assert_eq!(shard.purge_published(Duration::ZERO).await.expect("a count"), 0);
    }
}

#[tokio::test]
async fn the_bytes_of_a_claim_are_shared_out() {
    let (_, _, routed) = house();
    for id in 1..=30 {
        write(&routed, Story::new(id).start()).await;
    }
    let bytes = 12_000;
    let (mut claims, mut claimed) = (0, 0);
    while claimed < 90 {
        let rows = routed.claim_within(1000, bytes).await.expect("a claim");
        let sum: usize = rows.iter().map(|row| row.payload.len()).sum();
        assert!(!rows.is_empty() && sum <= bytes, "{} rows of {sum} bytes", rows.len());
        claimed += rows.len();
        claims += 1;
    }
    assert!(claims > 1, "one claim had all");
}

/// A shard that always has something must not keep a small limit to itself.
#[tokio::test]
async fn a_small_limit_rotates_over_the_shards() {
    let (_, _, routed) = house();
    for id in 1..=30 {
        write(&routed, Story::new(id).start()).await;
    }
    let mut homes = HashSet::new();
    for _ in 0..3 {
        let rows = routed.claim(1).await.expect("a claim");
        homes.insert(home(rows[0].execution.expect("an execution").get()));
    }
    assert_eq!(homes.len(), 3);
}

#[tokio::test]
async fn a_shard_alone_is_the_shard() {
    let (_, shards, routed) = house();
    let alone = routed.shards();
    for id in 1..=9 {
        write(&*alone[home(id)], Story::new(id).start()).await;
        assert!(rows_of(&*shards[home(id)], id).await > 0);
        assert!(rows_of(&routed, id).await > 0);
    }
    let free = [Digest::of_bytes(b"free")];
    assert_eq!(routed.unreferenced(&free).await.expect("an answer"), free);
}

#[test]
#[should_panic(expected = "0 shards")]
fn there_is_at_least_one_shard() {
    let cluster = memory(1, &StoreClock::default()).remove(0);
    sharded(&cluster, &[]);
}

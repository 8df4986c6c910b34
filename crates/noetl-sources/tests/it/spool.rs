//! Tests of the spool: messages are stored while no execution can start, and replayed afterwards.

use std::collections::BTreeSet;
use std::path::Path;

use async_nats::jetstream::object_store::ObjectStore;
use futures::TryStreamExt as _;
use noetl_model::Value;
use tokio::io::AsyncReadExt as _;

use crate::nats_harness::{CONSUMER, NatsHarness, message_id, publish, until};

const KEYS: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

fn spool(mode: &str, place: &str, more: &str) -> String {
    format!(
        "{KEYS}  spool:\n    mode: {mode}\n    {place}\n    \
         circuit: {{trip_after: 1, probe_after_ms: 50}}\n{more}"
    )
}

fn on_disk(directory: &Path) -> String {
    format!("backend: local_disk\n    path: {}", directory.display())
}

fn entries(directory: &Path) -> usize {
    let below = |path: &Path| {
        let files = std::fs::read_dir(path).into_iter().flatten();
        files.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let subscriptions = below(&directory.join("noetl-spool"));
    subscriptions.iter().map(|path| below(path).len()).sum()
}

/// Checks that every message started one execution, in the order of the messages.
async fn all_once_in_order(harness: &NatsHarness, id: noetl_model::SubscriptionId, count: usize) {
    harness.wait_for_executions(id, count).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), count);
    assert!(
        (0..count).all(|number| executions_by_message[&message_id(number)].len() == 1),
        "{executions_by_message:?}"
    );
}

/// Returns the IDs of the messages in a bucket.
async fn spooled_ids(bucket: &ObjectStore) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut listed = bucket.list().await.unwrap();
    while let Some(info) = listed.try_next().await.unwrap() {
        let mut text = Vec::new();
        bucket.get(&info.name).await.unwrap().read_to_end(&mut text).await.unwrap();
        let entry: Value = serde_json::from_slice(&text).unwrap();
        ids.insert(entry["id"].as_str().unwrap().to_owned());
    }
    ids
}

async fn wait_for_event(harness: &NatsHarness, id: noetl_model::SubscriptionId, event: &str) {
    until(event, async || harness.types(id).await.iter().any(|event_type| event_type == event))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_during_an_outage_are_spooled_and_started_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", &spool("buffer_and_ack", &on_disk(directory.path()), "")).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(3).await;
    harness.wait_for_executions(id, 3).await;
    harness.app.store.set_down(true);
    publish(&harness.nats.context().await, 3..23).await;
    harness.wait_until_acked(CONSUMER).await;
    assert_eq!(entries(directory.path()), 20, "each is on the disk before its source forgets it");
    harness.app.store.set_down(false);
    all_once_in_order(&harness, id, 23).await;
    let mut executions = harness.executions(id).await;
    executions.sort_unstable();
    let mut orders = Vec::new();
    for execution in executions.into_iter().skip(3) {
        orders.push(harness.workload(execution).await["order"].as_u64().unwrap());
    }
    assert!(orders.is_sorted(), "{orders:?}");
    wait_for_event(&harness, id, "subscription.spool.draining").await;
    wait_for_event(&harness, id, "subscription.spool.recovered").await;
    assert_eq!(entries(directory.path()), 0);
    // From here on it is as if nothing had been.
    publish(&harness.nats.context().await, 23..26).await;
    all_once_in_order(&harness, id, 26).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_spooled_by_a_stopped_runtime_are_started_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", &spool("buffer_and_ack", &on_disk(directory.path()), "")).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(1).await;
    harness.wait_for_executions(id, 1).await;
    harness.app.store.set_down(true);
    publish(&harness.nats.context().await, 1..11).await;
    harness.wait_until_acked(CONSUMER).await;
    runtime.close().await;
    assert_eq!(entries(directory.path()), 10);
    // One entry is damaged: it is dead-lettered, and the others are started.
    let subscription = directory.path().join("noetl-spool").join(id.to_string());
    let mut names: Vec<_> = std::fs::read_dir(subscription).unwrap().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    std::fs::write(names[4].path(), "{").unwrap();
    harness.app.store.set_down(false);
    let runtime = harness.runtime();
    harness.wait_for_executions(id, 10).await;
    wait_for_event(&harness, id, "subscription.message.dead_lettered").await;
    until("the spool to be empty", async || entries(directory.path()) == 0).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 10);
    assert!(!executions_by_message.contains_key(&message_id(5)));
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_spool_leaves_messages_at_the_source() {
    let directory = tempfile::tempdir().unwrap();
    let harness = NatsHarness::with_stream().await;
    let small = "    retention: {max_bytes: 2000}\n";
    let spool = spool("buffer_and_ack", &on_disk(directory.path()), small);
    harness.document("sub/orders", &spool).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(1).await;
    harness.wait_for_executions(id, 1).await;
    harness.app.store.set_down(true);
    publish(&harness.nats.context().await, 1..31).await;
    until("the spool to be full", async || entries(directory.path()) > 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let spooled = entries(directory.path()) as u64;
    assert!(spooled < 30, "{spooled}");
    assert_eq!(harness.unacked(CONSUMER).await, 30 - spooled);
    harness.app.store.set_down(false);
    all_once_in_order(&harness, id, 31).await;
    harness.wait_until_acked(CONSUMER).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_source_does_not_spool_in_hybrid_mode() {
    let directory = tempfile::tempdir().unwrap();
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", &spool("hybrid", &on_disk(directory.path()), "")).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(1).await;
    harness.wait_for_executions(id, 1).await;
    harness.app.store.set_down(true);
    publish(&harness.nats.context().await, 1..6).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!((entries(directory.path()), harness.unacked(CONSUMER).await), (0, 5));
    harness.app.store.set_down(false);
    all_once_in_order(&harness, id, 6).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_in_a_nats_bucket_preserves_messages_of_a_source_without_storage() {
    let harness = NatsHarness::new().await;
    let bucket = spool("hybrid", "backend: nats_object\n    bucket: kept", "");
    harness.register_nats_document("sub/orders", &format!("  topic: orders.new\n{bucket}")).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    let client = async_nats::connect(harness.nats.url()).await.unwrap();
    let say = async |number: usize| {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Msg-Id", message_id(number).as_str());
        let body = format!("{{\"order\": {number}}}");
        client.publish_with_headers("orders.new", headers, body.into()).await.unwrap();
        client.flush().await.unwrap();
    };
    // Messages published before the source connects are lost.
    until("somebody to listen", async || {
        say(0).await;
        !harness.executions(id).await.is_empty()
    })
    .await;
    harness.app.store.set_down(true);
    for number in 1..11 {
        say(number).await;
    }
    let bucket = harness.nats.context().await.get_object_store("kept").await.unwrap();
    // Messages published during the connection may be spooled, too.
    let all: BTreeSet<String> = (1..11).map(message_id).collect();
    until("all to be kept", async || spooled_ids(&bucket).await.is_superset(&all)).await;
    harness.app.store.set_down(false);
    all_once_in_order(&harness, id, 11).await;
    harness.close([runtime]).await;
}

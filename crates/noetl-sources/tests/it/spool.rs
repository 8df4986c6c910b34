//! Messages that are kept while nothing can be started, and started when it can.

use std::collections::BTreeSet;
use std::path::Path;

use async_nats::jetstream::object_store::ObjectStore;
use futures::TryStreamExt as _;
use noetl_model::Value;
use tokio::io::AsyncReadExt as _;

use crate::stage::{CONSUMER, Stage, message_id, publish, until};

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
        let found = std::fs::read_dir(path).into_iter().flatten();
        found.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let subscriptions = below(&directory.join("noetl-spool"));
    subscriptions.iter().map(|path| below(path).len()).sum()
}

/// Every message is one execution, and those that were kept began in their order.
async fn all_once_in_order(stage: &Stage, id: noetl_model::SubscriptionId, count: usize) {
    stage.started(id, count).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), count);
    assert!((0..count).all(|number| found[&message_id(number)].len() == 1), "{found:?}");
}

/// The ids of the messages in a bucket.
async fn kept_in(bucket: &ObjectStore) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut listed = bucket.list().await.unwrap();
    while let Some(info) = listed.try_next().await.unwrap() {
        let mut text = Vec::new();
        bucket.get(&info.name).await.unwrap().read_to_end(&mut text).await.unwrap();
        let entry: Value = serde_json::from_slice(&text).unwrap();
        found.insert(entry["id"].as_str().unwrap().to_owned());
    }
    found
}

async fn hears(stage: &Stage, id: noetl_model::SubscriptionId, event: &str) {
    until(event, async || stage.types(id).await.iter().any(|found| found == event)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_during_an_outage_are_spooled_and_started_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", &spool("buffer_and_ack", &on_disk(directory.path()), "")).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(3).await;
    stage.started(id, 3).await;
    stage.app.store.set_down(true);
    publish(&stage.nats.context().await, 3..23).await;
    stage.acknowledged(CONSUMER).await;
    assert_eq!(entries(directory.path()), 20, "each is on the disk before its source forgets it");
    stage.app.store.set_down(false);
    all_once_in_order(&stage, id, 23).await;
    let mut kept = stage.executions(id).await;
    kept.sort_unstable();
    let mut orders = Vec::new();
    for execution in kept.into_iter().skip(3) {
        orders.push(stage.workload(execution).await["order"].as_u64().unwrap());
    }
    assert!(orders.is_sorted(), "{orders:?}");
    hears(&stage, id, "subscription.spool.draining").await;
    hears(&stage, id, "subscription.spool.recovered").await;
    assert_eq!(entries(directory.path()), 0);
    // From here on it is as if nothing had been.
    publish(&stage.nats.context().await, 23..26).await;
    all_once_in_order(&stage, id, 26).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_spooled_by_a_stopped_runtime_are_started_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", &spool("buffer_and_ack", &on_disk(directory.path()), "")).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(1).await;
    stage.started(id, 1).await;
    stage.app.store.set_down(true);
    publish(&stage.nats.context().await, 1..11).await;
    stage.acknowledged(CONSUMER).await;
    runtime.close().await;
    assert_eq!(entries(directory.path()), 10);
    // One of them is damaged meanwhile: it is put aside, and the others are started.
    let subscription = directory.path().join("noetl-spool").join(id.to_string());
    let mut names: Vec<_> = std::fs::read_dir(subscription).unwrap().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    std::fs::write(names[4].path(), "{").unwrap();
    stage.app.store.set_down(false);
    let runtime = stage.runtime();
    stage.started(id, 10).await;
    hears(&stage, id, "subscription.message.dead_lettered").await;
    until("the spool to be empty", async || entries(directory.path()) == 0).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 10);
    assert!(!found.contains_key(&message_id(5)));
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_spool_leaves_messages_at_the_source() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::with_stream().await;
    let small = "    retention: {max_bytes: 2000}\n";
    let spool = spool("buffer_and_ack", &on_disk(directory.path()), small);
    stage.document("sub/orders", &spool).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(1).await;
    stage.started(id, 1).await;
    stage.app.store.set_down(true);
    publish(&stage.nats.context().await, 1..31).await;
    until("the spool to be full", async || entries(directory.path()) > 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let kept = entries(directory.path()) as u64;
    assert!(kept < 30, "{kept}");
    assert_eq!(stage.waiting(CONSUMER).await, 30 - kept);
    stage.app.store.set_down(false);
    all_once_in_order(&stage, id, 31).await;
    stage.acknowledged(CONSUMER).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_source_does_not_spool_in_hybrid_mode() {
    let directory = tempfile::tempdir().unwrap();
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", &spool("hybrid", &on_disk(directory.path()), "")).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(1).await;
    stage.started(id, 1).await;
    stage.app.store.set_down(true);
    publish(&stage.nats.context().await, 1..6).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!((entries(directory.path()), stage.waiting(CONSUMER).await), (0, 5));
    stage.app.store.set_down(false);
    all_once_in_order(&stage, id, 6).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_in_a_nats_bucket_preserves_messages_of_a_source_without_storage() {
    let stage = Stage::new().await;
    let bucket = spool("hybrid", "backend: nats_object\n    bucket: kept", "");
    stage.whole_document("sub/orders", &format!("  topic: orders.new\n{bucket}")).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    let client = async_nats::connect(stage.nats.url()).await.unwrap();
    let say = async |number: usize| {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Msg-Id", message_id(number).as_str());
        let body = format!("{{\"order\": {number}}}");
        client.publish_with_headers("orders.new", headers, body.into()).await.unwrap();
        client.flush().await.unwrap();
    };
    // Nobody hears what is said before somebody listens.
    until("somebody to listen", async || {
        say(0).await;
        !stage.executions(id).await.is_empty()
    })
    .await;
    stage.app.store.set_down(true);
    for number in 1..11 {
        say(number).await;
    }
    let bucket = stage.nats.context().await.get_object_store("kept").await.unwrap();
    // What was said while somebody began to listen may be there too.
    let all: BTreeSet<String> = (1..11).map(message_id).collect();
    until("all to be kept", async || kept_in(&bucket).await.is_superset(&all)).await;
    stage.app.store.set_down(false);
    all_once_in_order(&stage, id, 11).await;
    stage.close([runtime]).await;
}

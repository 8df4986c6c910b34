//! Sources and stores that go away.

use std::time::Duration;

use noetl_store::SubscriptionState;
use noetl_test_app::TestApp;
use noetl_test_services::nats::TestNats;

use crate::stage::{CONSUMER, Stage, message_id, publish, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

async fn hears(stage: &Stage, id: noetl_model::SubscriptionId, event: &str, count: usize) {
    until(&format!("{count} of {event}"), async || {
        stage.types(id).await.iter().filter(|found| *found == event).count() >= count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_missing_at_startup_is_retried() {
    let mut stage = Stage::with(TestNats::stopped(), TestApp::start(4).await).await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    hears(&stage, id, "subscription.source.unavailable", 1).await;
    assert_eq!(stage.state(id).await, SubscriptionState::Active);
    stage.nats.restart();
    stage.make_stream().await;
    stage.publish(5).await;
    stage.started(id, 5).await;
    hears(&stage, id, "subscription.source.connected", 1).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_outage_loses_and_duplicates_no_messages() {
    let mut stage = Stage::with_stream().await;
    stage.nats.create_consumer("ORDERS", CONSUMER, Duration::from_secs(2)).await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(200).await;
    stage.started(id, 50).await;
    stage.nats.kill();
    hears(&stage, id, "subscription.source.unavailable", 1).await;
    stage.nats.restart();
    publish(&stage.nats.context().await, 200..300).await;
    stage.started(id, 300).await;
    hears(&stage, id, "subscription.source.connected", 2).await;
    stage.acknowledged(CONSUMER).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 300);
    assert!((0..300).all(|number| found[&message_id(number)].len() == 1));
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acked_during_a_store_outage() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(5).await;
    stage.started(id, 5).await;
    stage.acknowledged(CONSUMER).await;
    stage.app.store.set_down(true);
    publish(&stage.nats.context().await, 5..25).await;
    until("messages to be under way", async || {
        let stream = stage.nats.context().await.get_stream("ORDERS").await.unwrap();
        stream.consumer_info(CONSUMER).await.unwrap().num_ack_pending > 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.waiting(CONSUMER).await, 20, "none is acknowledged");
    stage.app.store.set_down(false);
    stage.started(id, 25).await;
    stage.acknowledged(CONSUMER).await;
    let found = stage.by_message(id).await;
    assert!((0..25).all(|number| found[&message_id(number)].len() == 1));
    let dead = stage.types(id).await.iter().any(|found| found.ends_with("dead_lettered"));
    assert!(!dead, "nothing is put aside for what the store could not do");
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_start_executions_once_a_missing_playbook_exists() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", "  dispatch: {playbook: tests/later}\n").await;
    let id = stage.subscribe("sub/orders").await;
    stage.publish(3).await;
    let runtime = stage.runtime();
    hears(&stage, id, "subscription.circuit.opened", 1).await;
    let later = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: l, path: tests/later}\n\
                 workflow:\n  - {step: start, tool: {kind: noop}}\n";
    stage.playbook(later).await;
    stage.started(id, 3).await;
    hears(&stage, id, "subscription.circuit.closed", 1).await;
    stage.acknowledged(CONSUMER).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_stream_is_retried_and_invalid_settings_are_reported() {
    let stage = Stage::new().await;
    stage.document("sub/orders", DEDUP).await;
    stage.whole_document("sub/wrong", "  consumer: only\n").await;
    let (id, wrong) = (stage.subscribe("sub/orders").await, stage.subscribe("sub/wrong").await);
    let runtime = stage.runtime();
    hears(&stage, id, "subscription.source.unavailable", 1).await;
    hears(&stage, wrong, "subscription.source.unavailable", 1).await;
    stage.make_stream().await;
    stage.publish(3).await;
    stage.started(id, 3).await;
    stage.close([runtime]).await;
}

//! Sources and stores that go away.

use std::time::Duration;

use noetl_store::SubscriptionState;
use noetl_test_app::TestApp;
use noetl_test_services::nats::TestNats;

use crate::nats_harness::{CONSUMER, NatsHarness, message_id, publish, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

async fn wait_for_event(
    harness: &NatsHarness,
    id: noetl_model::SubscriptionId,
    event: &str,
    count: usize,
) {
    until(&format!("{count} of {event}"), async || {
        harness.types(id).await.iter().filter(|event_type| *event_type == event).count() >= count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_missing_at_startup_is_retried() {
    let mut harness = NatsHarness::with(TestNats::stopped(), TestApp::start(4).await).await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    wait_for_event(&harness, id, "subscription.source.unavailable", 1).await;
    assert_eq!(harness.state(id).await, SubscriptionState::Active);
    harness.nats.restart();
    harness.make_stream().await;
    harness.publish(5).await;
    harness.wait_for_executions(id, 5).await;
    wait_for_event(&harness, id, "subscription.source.connected", 1).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_outage_loses_and_duplicates_no_messages() {
    let mut harness = NatsHarness::with_stream().await;
    harness.nats.create_consumer("ORDERS", CONSUMER, Duration::from_secs(2)).await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(200).await;
    harness.wait_for_executions(id, 50).await;
    harness.nats.kill();
    wait_for_event(&harness, id, "subscription.source.unavailable", 1).await;
    harness.nats.restart();
    publish(&harness.nats.context().await, 200..300).await;
    harness.wait_for_executions(id, 300).await;
    wait_for_event(&harness, id, "subscription.source.connected", 2).await;
    harness.wait_until_acked(CONSUMER).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 300);
    assert!((0..300).all(|number| executions_by_message[&message_id(number)].len() == 1));
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acked_during_a_store_outage() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(5).await;
    harness.wait_for_executions(id, 5).await;
    harness.wait_until_acked(CONSUMER).await;
    harness.app.store.set_down(true);
    publish(&harness.nats.context().await, 5..25).await;
    until("messages to be under way", async || {
        let stream = harness.nats.context().await.get_stream("ORDERS").await.unwrap();
        stream.consumer_info(CONSUMER).await.unwrap().num_ack_pending > 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(harness.unacked(CONSUMER).await, 20, "none is acknowledged");
    harness.app.store.set_down(false);
    harness.wait_for_executions(id, 25).await;
    harness.wait_until_acked(CONSUMER).await;
    let executions_by_message = harness.by_message(id).await;
    assert!((0..25).all(|number| executions_by_message[&message_id(number)].len() == 1));
    let dead =
        harness.types(id).await.iter().any(|event_type| event_type.ends_with("dead_lettered"));
    assert!(!dead, "nothing is put aside for what the store could not do");
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_start_executions_once_a_missing_playbook_exists() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", "  dispatch: {playbook: tests/later}\n").await;
    let id = harness.subscribe("sub/orders").await;
    harness.publish(3).await;
    let runtime = harness.runtime();
    wait_for_event(&harness, id, "subscription.circuit.opened", 1).await;
    let later = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: l, path: tests/later}\n\
                 workflow:\n  - {step: start, tool: {kind: noop}}\n";
    harness.playbook(later).await;
    harness.wait_for_executions(id, 3).await;
    wait_for_event(&harness, id, "subscription.circuit.closed", 1).await;
    harness.wait_until_acked(CONSUMER).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_stream_is_retried_and_invalid_settings_are_reported() {
    let harness = NatsHarness::new().await;
    harness.document("sub/orders", DEDUP).await;
    harness.register_nats_document("sub/wrong", "  consumer: only\n").await;
    let (id, wrong) = (harness.subscribe("sub/orders").await, harness.subscribe("sub/wrong").await);
    let runtime = harness.runtime();
    wait_for_event(&harness, id, "subscription.source.unavailable", 1).await;
    wait_for_event(&harness, wrong, "subscription.source.unavailable", 1).await;
    harness.make_stream().await;
    harness.publish(3).await;
    harness.wait_for_executions(id, 3).await;
    harness.close([runtime]).await;
}

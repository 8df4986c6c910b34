//! States that are asked for are heard.

use noetl_egress::EgressPolicy;
use noetl_model::Tenant;
use noetl_sources::{SourceRegistry, SubscriptionRuntime};
use noetl_store::{SubscriptionAction, SubscriptionState};

use crate::nats_harness::{CONSUMER, NatsHarness, options, publish, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_subscription_leaves_messages_at_the_source() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    let context = harness.nats.context().await;
    publish(&context, 0..3).await;
    harness.wait_for_executions(id, 3).await;
    harness.act(id, SubscriptionAction::Pause).await;
    // A pause is heard within a second; what is published after that stays.
    until("the consumer to be let go", async || {
        let stream = context.get_stream("ORDERS").await.unwrap();
        stream.consumer_info(CONSUMER).await.unwrap().num_waiting == 0
            && !harness.app.control.journal.metrics.text().contains("noetl_subscription_backlog{")
    })
    .await;
    publish(&context, 3..6).await;
    assert_eq!(harness.unacked(CONSUMER).await, 3);
    assert_eq!(harness.executions(id).await.len(), 3);
    harness.act(id, SubscriptionAction::Resume).await;
    harness.wait_for_executions(id, 6).await;
    harness.wait_until_acked(CONSUMER).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_subscription_is_deactivated_and_can_be_activated_again() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.publish(3).await;
    harness.wait_for_executions(id, 3).await;
    harness.act(id, SubscriptionAction::Drain).await;
    harness.wait_for_state(id, SubscriptionState::Deactivated).await;
    let context = harness.nats.context().await;
    publish(&context, 3..6).await;
    assert_eq!(harness.executions(id).await.len(), 3);
    harness.act(id, SubscriptionAction::Activate).await;
    harness.wait_for_executions(id, 6).await;
    harness.act(id, SubscriptionAction::Deactivate).await;
    until("the lease to be given back", async || {
        let (tenant, ttl) = (Tenant::default(), std::time::Duration::from_secs(1));
        harness.app.control.triggers.subscriptions.hold(&tenant, id, "another", ttl).await.unwrap()
    })
    .await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_registered_later_is_activated() {
    let harness = NatsHarness::with_stream().await;
    let runtime = harness.runtime();
    harness.publish(2).await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    harness.wait_for_executions(id, 2).await;
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_persist_after_a_runtime_of_all_subscriptions_stops() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    harness.wait_for_state(id, SubscriptionState::Active).await;
    runtime.close().await;
    assert_eq!(harness.state(id).await, SubscriptionState::Active);
    harness.publish(2).await;
    let next = harness.runtime();
    harness.wait_for_executions(id, 2).await;
    harness.act(id, SubscriptionAction::Pause).await;
    next.close().await;
    let last = harness.runtime();
    tokio::task::yield_now().await;
    last.close().await;
    assert_eq!(harness.state(id).await, SubscriptionState::Paused);
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_of_one_path_registers_activates_drains_and_deactivates() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", DEDUP).await;
    harness.publish(3).await;
    for (round, plane) in [harness.local(), harness.remote()].into_iter().enumerate() {
        let path = "sub/orders".to_owned();
        let runtime = SubscriptionRuntime::one(
            plane,
            SourceRegistry::standard(EgressPolicy::default()),
            options("one"),
            path,
        );
        until("it to be registered and active", async || {
            let listed =
                harness.app.control.triggers.subscriptions.list(&Tenant::default()).await.unwrap();
            listed.first().is_some_and(|row| row.state == SubscriptionState::Active)
        })
        .await;
        let listed =
            harness.app.control.triggers.subscriptions.list(&Tenant::default()).await.unwrap();
        assert_eq!(listed.len(), 1, "the same is activated again");
        harness.wait_for_executions(listed[0].id, 3).await;
        // The second has nothing to start that would show that it got there.
        until("its source to be there", async || {
            let types = harness.types(listed[0].id).await;
            types.iter().filter(|one| *one == "subscription.source.connected").count() > round
        })
        .await;
        runtime.close().await;
        assert_eq!(harness.state(listed[0].id).await, SubscriptionState::Deactivated);
        let types = harness.types(listed[0].id).await;
        let last: Vec<&str> = types.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, ["subscription.deactivated", "subscription.draining"], "{types:?}");
    }
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_of_the_document_applies_from_the_next_activation() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", "").await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    let context = harness.nats.context().await;
    publish(&context, 0..1).await;
    harness.wait_for_executions(id, 1).await;
    harness
        .document("sub/orders", "  dispatch: {playbook: tests/greet, payload_from: message.body}\n")
        .await;
    harness.act(id, SubscriptionAction::Activate).await;
    until("the new version to be read", async || {
        let types = harness.types(id).await;
        types.iter().filter(|event_type| *event_type == "subscription.source.connected").count()
            == 2
    })
    .await;
    publish(&context, 1..2).await;
    harness.wait_for_executions(id, 2).await;
    let executions_by_message = harness.by_message(id).await;
    let workload =
        harness.workload(executions_by_message[&crate::nats_harness::message_id(1)][0]).await;
    assert_eq!(workload["body"], "{\"order\": 1}");
    harness.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_that_the_runtime_cannot_serve_are_explained_and_unchanged() {
    let harness = NatsHarness::new().await;
    let content = "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: k, path: sub/kafka}\n\
                   spec: {source: kafka, mode: pull, topic: a, brokers: b, dispatch: {playbook: tests/greet}}\n";
    let resource_type = "Subscription".to_owned();
    let request =
        noetl_api::catalog::RegisterRequest { content: content.to_owned(), resource_type };
    harness.app.client.register(&request, false).await.unwrap();
    let id = harness.subscribe("sub/kafka").await;
    let none = SourceRegistry::default();
    let runtime = SubscriptionRuntime::all(harness.local(), none, options("owner"));
    until("the log to say why", async || {
        harness
            .types(id)
            .await
            .iter()
            .any(|event_type| event_type == "subscription.source.unavailable")
    })
    .await;
    assert_eq!(harness.state(id).await, SubscriptionState::Registered);
    harness.close([runtime]).await;
}

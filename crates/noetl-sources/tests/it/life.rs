//! States that are asked for are heard.

use noetl_egress::EgressPolicy;
use noetl_model::Tenant;
use noetl_sources::{SourceRegistry, SubscriptionRuntime};
use noetl_store::{SubscriptionAction, SubscriptionState};

use crate::stage::{CONSUMER, Stage, options, publish, until};

const DEDUP: &str = "  dedup: {enabled: true, window_secs: 3600}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_subscription_leaves_messages_at_the_source() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    let context = stage.nats.context().await;
    publish(&context, 0..3).await;
    stage.started(id, 3).await;
    stage.act(id, SubscriptionAction::Pause).await;
    // A pause is heard within a second; what is published after that stays.
    until("the consumer to be let go", async || {
        let stream = context.get_stream("ORDERS").await.unwrap();
        stream.consumer_info(CONSUMER).await.unwrap().num_waiting == 0
            && !stage.app.control.journal.metrics.text().contains("noetl_subscription_backlog{")
    })
    .await;
    publish(&context, 3..6).await;
    assert_eq!(stage.waiting(CONSUMER).await, 3);
    assert_eq!(stage.executions(id).await.len(), 3);
    stage.act(id, SubscriptionAction::Resume).await;
    stage.started(id, 6).await;
    stage.acknowledged(CONSUMER).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_subscription_is_deactivated_and_can_be_activated_again() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.publish(3).await;
    stage.started(id, 3).await;
    stage.act(id, SubscriptionAction::Drain).await;
    stage.stands(id, SubscriptionState::Deactivated).await;
    let context = stage.nats.context().await;
    publish(&context, 3..6).await;
    assert_eq!(stage.executions(id).await.len(), 3);
    stage.act(id, SubscriptionAction::Activate).await;
    stage.started(id, 6).await;
    stage.act(id, SubscriptionAction::Deactivate).await;
    until("the lease to be given back", async || {
        let (tenant, ttl) = (Tenant::default(), std::time::Duration::from_secs(1));
        stage.app.control.triggers.subscriptions.hold(&tenant, id, "another", ttl).await.unwrap()
    })
    .await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_registered_later_is_activated() {
    let stage = Stage::with_stream().await;
    let runtime = stage.runtime();
    stage.publish(2).await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    stage.started(id, 2).await;
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_persist_after_a_runtime_of_all_subscriptions_stops() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    stage.stands(id, SubscriptionState::Active).await;
    runtime.close().await;
    assert_eq!(stage.state(id).await, SubscriptionState::Active);
    stage.publish(2).await;
    let next = stage.runtime();
    stage.started(id, 2).await;
    stage.act(id, SubscriptionAction::Pause).await;
    next.close().await;
    let last = stage.runtime();
    tokio::task::yield_now().await;
    last.close().await;
    assert_eq!(stage.state(id).await, SubscriptionState::Paused);
    stage.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_of_one_path_registers_activates_drains_and_deactivates() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", DEDUP).await;
    stage.publish(3).await;
    for (round, plane) in [stage.local(), stage.remote()].into_iter().enumerate() {
        let path = "sub/orders".to_owned();
        let runtime = SubscriptionRuntime::one(
            plane,
            SourceRegistry::standard(EgressPolicy::default()),
            options("one"),
            path,
        );
        until("it to be registered and active", async || {
            let listed =
                stage.app.control.triggers.subscriptions.list(&Tenant::default()).await.unwrap();
            listed.first().is_some_and(|row| row.state == SubscriptionState::Active)
        })
        .await;
        let listed =
            stage.app.control.triggers.subscriptions.list(&Tenant::default()).await.unwrap();
        assert_eq!(listed.len(), 1, "the same is activated again");
        stage.started(listed[0].id, 3).await;
        // The second has nothing to start that would show that it got there.
        until("its source to be there", async || {
            let types = stage.types(listed[0].id).await;
            types.iter().filter(|one| *one == "subscription.source.connected").count() > round
        })
        .await;
        runtime.close().await;
        assert_eq!(stage.state(listed[0].id).await, SubscriptionState::Deactivated);
        let types = stage.types(listed[0].id).await;
        let last: Vec<&str> = types.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, ["subscription.deactivated", "subscription.draining"], "{types:?}");
    }
    stage.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_of_the_document_applies_from_the_next_activation() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", "").await;
    let id = stage.subscribe("sub/orders").await;
    let runtime = stage.runtime();
    let context = stage.nats.context().await;
    publish(&context, 0..1).await;
    stage.started(id, 1).await;
    stage
        .document("sub/orders", "  dispatch: {playbook: tests/greet, payload_from: message.body}\n")
        .await;
    stage.act(id, SubscriptionAction::Activate).await;
    until("the new version to be read", async || {
        let types = stage.types(id).await;
        types.iter().filter(|found| *found == "subscription.source.connected").count() == 2
    })
    .await;
    publish(&context, 1..2).await;
    stage.started(id, 2).await;
    let found = stage.by_message(id).await;
    let workload = stage.workload(found[&crate::stage::message_id(1)][0]).await;
    assert_eq!(workload["body"], "{\"order\": 1}");
    stage.close([runtime]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_that_the_runtime_cannot_serve_are_explained_and_unchanged() {
    let stage = Stage::new().await;
    let content = "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: k, path: sub/kafka}\n\
                   spec: {source: kafka, mode: pull, topic: a, brokers: b, dispatch: {playbook: tests/greet}}\n";
    let resource_type = "Subscription".to_owned();
    let request =
        noetl_api::catalog::RegisterRequest { content: content.to_owned(), resource_type };
    stage.app.client.register(&request, false).await.unwrap();
    let id = stage.subscribe("sub/kafka").await;
    let none = SourceRegistry::default();
    let runtime = SubscriptionRuntime::all(stage.local(), none, options("owner"));
    until("the log to say why", async || {
        stage.types(id).await.iter().any(|found| found == "subscription.source.unavailable")
    })
    .await;
    assert_eq!(stage.state(id).await, SubscriptionState::Registered);
    stage.close([runtime]).await;
}

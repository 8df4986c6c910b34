//! Several runtimes, one subscription.

use noetl_egress::EgressPolicy;
use noetl_model::Tenant;
use noetl_sources::{Options, SourceRegistry, SubscriptionRuntime};
use noetl_store::SubscriptionState;

use crate::nats_harness::{CONSUMER, NatsHarness, message_id, options, publish, until};

/// Only the lease prevents two runtimes from dispatching the same message.
const SHORT: &str = "  dedup: {enabled: false}\n";

#[tokio::test(flavor = "multi_thread")]
async fn two_runtimes_start_no_duplicate_executions() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", SHORT).await;
    let id = harness.subscribe("sub/orders").await;
    // Leases of the usual length: on a busy machine, a short one may change hands.
    let first = SubscriptionRuntime::all(
        harness.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        Options::new("first"),
    );
    let second = SubscriptionRuntime::all(
        harness.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        Options::new("second"),
    );
    let context = harness.nats.context().await;
    for part in 0..10 {
        publish(&context, part * 50..(part + 1) * 50).await;
    }
    harness.wait_for_executions(id, 500).await;
    harness.wait_until_acked(CONSUMER).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 500);
    assert!(executions_by_message.values().all(|executions| executions.len() == 1));
    let types = harness.types(id).await;
    let connected =
        types.iter().filter(|event_type| *event_type == "subscription.source.connected").count();
    assert_eq!(connected, 1, "one of them fetches, and the other waits for its turn: {types:?}");
    harness.close([first, second]).await;
}

/// A runtime of its own thread, to be ended as a crash would end it.
struct AbortableRuntime(tokio::runtime::Runtime);

impl AbortableRuntime {
    fn start(harness: &NatsHarness, holder: &str) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (plane, options) = (harness.remote(), options(holder));
        threads.spawn(async move {
            let mut runtime = SubscriptionRuntime::all(
                plane,
                SourceRegistry::standard(EgressPolicy::default()),
                options,
            );
            runtime.ended().await;
        });
        Self(threads)
    }

    fn kill(self) {
        self.0.shutdown_background();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_runtime_takes_over_from_a_dead_one() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", "  dedup: {enabled: true, window_secs: 3600}\n").await;
    let id = harness.subscribe("sub/orders").await;
    let first = AbortableRuntime::start(&harness, "first");
    let context = harness.nats.context().await;
    publish(&context, 0..20).await;
    harness.wait_for_executions(id, 20).await;
    let second = SubscriptionRuntime::all(
        harness.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("second"),
    );
    until("the second to wait", async || {
        let tenant = Tenant::default();
        harness.app.control.triggers.subscriptions.is_awaited(&tenant, id, "first").await.unwrap()
    })
    .await;
    first.kill();
    publish(&context, 20..40).await;
    harness.wait_for_executions(id, 40).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), 40);
    assert!((0..40).all(|number| executions_by_message[&message_id(number)].len() == 1));
    harness.close([second]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_runtime_to_leave_deactivates() {
    let harness = NatsHarness::with_stream().await;
    harness.document("sub/orders", SHORT).await;
    let path = || "sub/orders".to_owned();
    let first = SubscriptionRuntime::one(
        harness.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("first"),
        path(),
    );
    let id = harness.subscribe("sub/orders").await;
    harness.wait_for_state(id, SubscriptionState::Active).await;
    until("the first to act on it", async || {
        harness
            .types(id)
            .await
            .iter()
            .any(|event_type| event_type == "subscription.source.connected")
    })
    .await;
    let second = SubscriptionRuntime::one(
        harness.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("second"),
        path(),
    );
    until("the second to wait", async || {
        let tenant = Tenant::default();
        harness.app.control.triggers.subscriptions.is_awaited(&tenant, id, "first").await.unwrap()
    })
    .await;
    // The first hears of it when it renews its lease.
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    first.close().await;
    assert_eq!(harness.state(id).await, SubscriptionState::Active);
    harness.publish(5).await;
    harness.wait_for_executions(id, 5).await;
    second.close().await;
    assert_eq!(harness.state(id).await, SubscriptionState::Deactivated);
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runtime_dispatches_in_batches_and_reports_its_counters() {
    let harness = NatsHarness::with_stream().await;
    let more = "  dedup: {enabled: true, window_secs: 60}\n  runtime: {batch: 50}\n  \
                dispatch: {playbook: tests/greet, batch_dispatch: true, batch_max: 20}\n";
    harness.document("sub/orders", more).await;
    let id = harness.subscribe("sub/orders").await;
    harness.publish(200).await;
    let context = harness.nats.context().await;
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    context.publish("orders.new", deep.into()).await.unwrap().await.unwrap();
    let runtime = SubscriptionRuntime::all(
        harness.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("elsewhere"),
    );
    harness.wait_for_executions(id, 200).await;
    harness.wait_until_acked(CONSUMER).await;
    assert!(harness.by_message(id).await.values().all(|executions| executions.len() == 1));
    let has = |line: &str| {
        harness.app.control.journal.metrics.text().lines().any(|metric| metric == line)
    };
    until("the backlog to be told", async || {
        has("noetl_subscription_backlog{subscription=\"sub/orders\"} 0")
    })
    .await;
    let counted = |outcome: &str, count: u64| {
        let family = "noetl_subscription_messages_total";
        format!("{family}{{outcome=\"{outcome}\",subscription=\"sub/orders\"}} {count}")
    };
    until("the counts to be told", async || {
        has(&counted("dispatched", 200))
            && has(&counted("received", 201))
            && has(&counted("dead_lettered", 1))
    })
    .await;
    harness.close([runtime]).await;
}

//! Several runtimes, one subscription.

use noetl_egress::EgressPolicy;
use noetl_model::Tenant;
use noetl_sources::{Options, SourceRegistry, SubscriptionRuntime};
use noetl_store::SubscriptionState;

use crate::stage::{CONSUMER, Stage, message_id, options, publish, until};

/// Nothing but the lease keeps two runtimes from dispatching one message each for itself.
const SHORT: &str = "  dedup: {enabled: false}\n";

#[tokio::test(flavor = "multi_thread")]
async fn two_runtimes_start_no_duplicate_executions() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", SHORT).await;
    let id = stage.subscribe("sub/orders").await;
    // Leases of the usual length: on a busy machine, a short one may change hands.
    let first = SubscriptionRuntime::all(
        stage.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        Options::new("first"),
    );
    let second = SubscriptionRuntime::all(
        stage.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        Options::new("second"),
    );
    let context = stage.nats.context().await;
    for part in 0..10 {
        publish(&context, part * 50..(part + 1) * 50).await;
    }
    stage.started(id, 500).await;
    stage.acknowledged(CONSUMER).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 500);
    assert!(found.values().all(|executions| executions.len() == 1));
    let types = stage.types(id).await;
    let connected = types.iter().filter(|found| *found == "subscription.source.connected").count();
    assert_eq!(connected, 1, "one of them fetches, and the other waits for its turn: {types:?}");
    stage.close([first, second]).await;
}

/// A runtime of its own thread, to be ended as a crash would end it.
struct Doomed(tokio::runtime::Runtime);

impl Doomed {
    fn start(stage: &Stage, holder: &str) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (plane, options) = (stage.remote(), options(holder));
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
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", "  dedup: {enabled: true, window_secs: 3600}\n").await;
    let id = stage.subscribe("sub/orders").await;
    let first = Doomed::start(&stage, "first");
    let context = stage.nats.context().await;
    publish(&context, 0..20).await;
    stage.started(id, 20).await;
    let second = SubscriptionRuntime::all(
        stage.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("second"),
    );
    until("the second to wait", async || {
        let tenant = Tenant::default();
        stage.app.control.triggers.subscriptions.is_awaited(&tenant, id, "first").await.unwrap()
    })
    .await;
    first.kill();
    publish(&context, 20..40).await;
    stage.started(id, 40).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), 40);
    assert!((0..40).all(|number| found[&message_id(number)].len() == 1));
    stage.close([second]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_runtime_to_leave_deactivates() {
    let stage = Stage::with_stream().await;
    stage.document("sub/orders", SHORT).await;
    let path = || "sub/orders".to_owned();
    let first = SubscriptionRuntime::one(
        stage.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("first"),
        path(),
    );
    let id = stage.subscribe("sub/orders").await;
    stage.stands(id, SubscriptionState::Active).await;
    until("the first to act on it", async || {
        stage.types(id).await.iter().any(|found| found == "subscription.source.connected")
    })
    .await;
    let second = SubscriptionRuntime::one(
        stage.local(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("second"),
        path(),
    );
    until("the second to wait", async || {
        let tenant = Tenant::default();
        stage.app.control.triggers.subscriptions.is_awaited(&tenant, id, "first").await.unwrap()
    })
    .await;
    // The first hears of it when it renews its lease.
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    first.close().await;
    assert_eq!(stage.state(id).await, SubscriptionState::Active);
    stage.publish(5).await;
    stage.started(id, 5).await;
    second.close().await;
    assert_eq!(stage.state(id).await, SubscriptionState::Deactivated);
    stage.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runtime_dispatches_in_batches_and_reports_its_counters() {
    let stage = Stage::with_stream().await;
    let more = "  dedup: {enabled: true, window_secs: 60}\n  runtime: {batch: 50}\n  \
                dispatch: {playbook: tests/greet, batch_dispatch: true, batch_max: 20}\n";
    stage.document("sub/orders", more).await;
    let id = stage.subscribe("sub/orders").await;
    stage.publish(200).await;
    let context = stage.nats.context().await;
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    context.publish("orders.new", deep.into()).await.unwrap().await.unwrap();
    let runtime = SubscriptionRuntime::all(
        stage.remote(),
        SourceRegistry::standard(EgressPolicy::default()),
        options("elsewhere"),
    );
    stage.started(id, 200).await;
    stage.acknowledged(CONSUMER).await;
    assert!(stage.by_message(id).await.values().all(|executions| executions.len() == 1));
    let has =
        |line: &str| stage.app.control.journal.metrics.text().lines().any(|found| found == line);
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
    stage.close([runtime]).await;
}

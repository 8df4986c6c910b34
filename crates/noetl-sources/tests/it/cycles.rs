//! Many messages, while the runtime is paused, resumed and killed.

use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_sources::{SourceRegistry, SubscriptionRuntime};
use noetl_store::SubscriptionAction;

use crate::nats_harness::{CONSUMER, NatsHarness, message_id, options, publish};

/// Default number of messages; `NOETL_MESSAGES` overrides it.
const MESSAGES: usize = 3000;

#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn messages() -> usize {
    let value = std::env::var("NOETL_MESSAGES").ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(MESSAGES)
}

/// Starts a runtime on separate threads, so that it can be dropped like in a crash.
fn abortable_runtime(harness: &NatsHarness) -> tokio::runtime::Runtime {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // The next has the same name, as after a restart.
    let (plane, options) = (harness.local(), options("owner"));
    threads.spawn(async move {
        let mut runtime = SubscriptionRuntime::all(
            plane,
            SourceRegistry::standard(EgressPolicy::default()),
            options,
        );
        runtime.ended().await;
    });
    threads
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_become_executions_one_to_one_through_pauses_and_kills() {
    let count = messages();
    let harness = NatsHarness::with_stream().await;
    let nats = harness.nats.context().await;
    // Messages in flight at a killed runtime are redelivered soon.
    harness.nats.create_consumer("ORDERS", CONSUMER, Duration::from_secs(2)).await;
    let more = "  dedup: {enabled: true, window_secs: 86400}\n  runtime: {batch: 20}\n  \
                limits: {max_in_flight: 40}\n";
    harness.document("sub/orders", more).await;
    let id = harness.subscribe("sub/orders").await;
    let publisher = tokio::spawn(async move { publish(&nats, 0..count).await });
    let rounds = 10;
    for round in 1..=rounds {
        let runtime = abortable_runtime(&harness);
        harness.wait_for_executions(id, count * (2 * round - 1) / (2 * rounds + 1)).await;
        harness.act(id, SubscriptionAction::Pause).await;
        harness.act(id, SubscriptionAction::Resume).await;
        harness.wait_for_executions(id, count * 2 * round / (2 * rounds + 1)).await;
        runtime.shutdown_background();
    }
    publisher.await.unwrap();
    let last = harness.runtime();
    harness.wait_for_executions(id, count).await;
    harness.wait_until_acked(CONSUMER).await;
    let executions_by_message = harness.by_message(id).await;
    assert_eq!(executions_by_message.len(), count);
    for number in 0..count {
        assert_eq!(executions_by_message[&message_id(number)].len(), 1, "message {number}");
    }
    harness.close([last]).await;
}

//! Many messages, while the runtime is paused, resumed and killed.

use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_sources::{SourceRegistry, SubscriptionRuntime};
use noetl_store::SubscriptionAction;

use crate::stage::{CONSUMER, Stage, message_id, options, publish};

/// How many messages, unless `NOETL_MESSAGES` says otherwise.
const MESSAGES: usize = 3000;

#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn messages() -> usize {
    let told = std::env::var("NOETL_MESSAGES").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(MESSAGES)
}

/// A runtime on threads of its own. It is ended as a crash would end it: wherever it stands.
fn doomed(stage: &Stage) -> tokio::runtime::Runtime {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // The next has the same name, as after a restart.
    let (plane, options) = (stage.local(), options("owner"));
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
    let stage = Stage::with_stream().await;
    let nats = stage.nats.context().await;
    // What a killed runtime held comes again soon.
    stage.nats.create_consumer("ORDERS", CONSUMER, Duration::from_secs(2)).await;
    let more = "  dedup: {enabled: true, window_secs: 86400}\n  runtime: {batch: 20}\n  \
                limits: {max_in_flight: 40}\n";
    stage.document("sub/orders", more).await;
    let id = stage.subscribe("sub/orders").await;
    let publisher = tokio::spawn(async move { publish(&nats, 0..count).await });
    let rounds = 10;
    for round in 1..=rounds {
        let runtime = doomed(&stage);
        stage.started(id, count * (2 * round - 1) / (2 * rounds + 1)).await;
        stage.act(id, SubscriptionAction::Pause).await;
        stage.act(id, SubscriptionAction::Resume).await;
        stage.started(id, count * 2 * round / (2 * rounds + 1)).await;
        runtime.shutdown_background();
    }
    publisher.await.unwrap();
    let last = stage.runtime();
    stage.started(id, count).await;
    stage.acknowledged(CONSUMER).await;
    let found = stage.by_message(id).await;
    assert_eq!(found.len(), count);
    for number in 0..count {
        assert_eq!(found[&message_id(number)].len(), 1, "message {number}");
    }
    stage.close([last]).await;
}

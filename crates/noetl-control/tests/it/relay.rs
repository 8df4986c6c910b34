//! The relay on a store and a bus in memory.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{EventStream, MemoryStream};
use noetl_journal::Metrics;
use noetl_model::Clock;
use noetl_publishing::PublisherHandle;
use noetl_store::conformance::clock::HandClock;
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{MemoryStore, OutboxOptions, OutboxStore, Store, StoreClock, SystemClock};
use tokio::sync::watch;

use crate::publishing::{options, until};

fn store(lease: Duration) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new().with_outbox(OutboxOptions { is_on: true, lease }))
}

fn start(store: &Arc<MemoryStore>, bus: &Arc<MemoryStream>) -> PublisherHandle {
    start_counted(store, bus, &Arc::new(Metrics::new()))
}

fn start_counted(
    store: &Arc<MemoryStore>,
    bus: &Arc<MemoryStream>,
    metrics: &Arc<Metrics>,
) -> PublisherHandle {
    let bus: Arc<dyn EventStream> = bus.clone();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store: Arc<dyn Store> = store.clone();
    let (_, commits) = watch::channel(());
    PublisherHandle::relay(&options(), store, &bus, &commits, &clock, metrics)
}

#[tokio::test]
async fn outbox_rows_are_published_in_order() {
    let (store, bus) = (store(Duration::from_secs(60)), Arc::new(MemoryStream::new()));
    let relay = start(&store, &bus);
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    for round in 0..10 {
        write(&*store, story.then(vec![said(&round.to_string())])).await;
    }
    until("all messages", async || bus.kept().len() == 13).await;
    let messages = bus.kept();
    assert_eq!(messages[0].id, story.event_at(1).to_string());
    assert_eq!(messages[12].id, format!("{}:{}", story.event_at(13), story.id()));
    assert_eq!(messages[12].subject, "noetl.events.progress");
    until("their marks", async || {
        store.purge_published(Duration::ZERO).await.expect("a count") > 0
            || store.pending().await.expect("a count") == 0
    })
    .await;
    assert_eq!(bus.settings(), Some(options().stream()));
    relay.close().await;
}

#[tokio::test]
async fn rows_claimed_by_a_dead_publisher_are_published_after_the_claim_expires() {
    let (store, bus) = (store(Duration::from_millis(100)), Arc::new(MemoryStream::new()));
    write(&*store, Story::new(10).start()).await;
    let claimed = store.claim(100).await.expect("rows");
    assert_eq!(claimed.len(), 3);
    let relay = start(&store, &bus);
    until("all messages", async || bus.kept().len() == 3).await;
    relay.close().await;
}

#[tokio::test]
async fn a_message_without_an_ack_is_published_again_and_deduplicated() {
    let (store, bus) = (store(Duration::from_millis(50)), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    bus.leave_after(1);
    let relay = start(&store, &bus);
    until("the loss", async || !bus.is_connected()).await;
    write(&*store, story.then(vec![said("meanwhile")])).await;
    bus.set_connected(true);
    until("the end", async || {
        store.purge_published(Duration::ZERO).await.expect("a count");
        store.pending().await.expect("a count") == 0
            && store.claim(1).await.expect("rows").is_empty()
            && bus.kept().len() == 4
    })
    .await;
    relay.close().await;
}

#[tokio::test]
async fn a_rejected_row_is_retried_without_delaying_others() {
    let (store, bus) = (store(Duration::from_secs(60)), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    bus.refuse(&story.event_at(2).to_string());
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("after it")])).await;
    let relay = start(&store, &bus);
    until("the others", async || bus.kept().len() == 3).await;
    relay.close().await;
    // The row failed, keeps its error, and is retried after one second at the earliest.
    assert_eq!(store.pending().await.expect("a count"), 0);
    until("its time", async || store.pending().await.expect("a count") == 1).await;
    let waiting = store.claim(10).await.expect("rows");
    assert_eq!(waiting[0].event, story.event_at(2));
    assert!(waiting[0].error.as_deref().is_some_and(|error| error.contains("rejected")));
}

#[tokio::test]
async fn a_repeatedly_rejected_row_is_skipped_and_counted() {
    let hand = Arc::new(HandClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(hand.clone()));
    let lease = Duration::from_secs(1_000_000);
    let store = Arc::new(store.with_outbox(OutboxOptions { is_on: true, lease }));
    let (bus, metrics) = (Arc::new(MemoryStream::new()), Arc::new(Metrics::new()));
    let mut story = Story::new(10);
    bus.refuse(&story.event_at(2).to_string());
    write(&*store, story.start()).await;
    let relay = start_counted(&store, &bus, &metrics);
    let skipped = || metrics.text().contains("noetl_event_stream_skipped_total{");
    until("its end", async || {
        hand.pass(Duration::from_secs(300));
        skipped()
    })
    .await;
    relay.close().await;
    // All rows are finished, so the pending count is zero.
    hand.pass(lease);
    assert_eq!(store.pending().await.expect("a count"), 0);
    assert_eq!(bus.kept().len(), 2);
}

#[tokio::test]
async fn a_row_too_large_in_every_form_is_skipped_at_once() {
    let store = store(Duration::from_secs(60));
    let bus = Arc::new(MemoryStream::new().with_payload_max(10));
    let metrics = Arc::new(Metrics::new());
    write(&*store, Story::new(10).start()).await;
    let relay = start_counted(&store, &bus, &metrics);
    until("their marks", async || {
        store.purge_published(Duration::ZERO).await.expect("a count") == 3
    })
    .await;
    relay.close().await;
    assert!(metrics.text().contains("noetl_event_stream_skipped_total{"));
    assert!(bus.kept().is_empty());
}

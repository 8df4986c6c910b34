//! The tailer on a store and a bus in memory: every way in which either fails at the wrong moment.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{EventStream, MemoryStream, StoredMessage};
use noetl_journal::Metrics;
use noetl_model::event::ReportedEvent;
use noetl_model::{Clock, Fact, Value};
use noetl_publishing::{PublisherHandle, PublisherOptions};
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{CursorStore, LeaseStore, MemoryStore, PublishingStore, Store, SystemClock};
use noetl_test_app::FaultyStore;
use tokio::sync::watch;

const CURSOR: &str = "event_stream_tailer";

/// Waits for what has to come.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let comes = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), comes).await;
    assert!(waited.is_ok(), "{what} never came");
}

pub(crate) fn options() -> PublisherOptions {
    PublisherOptions {
        batch: 4,
        poll: Duration::from_millis(2),
        lease: Duration::from_secs(30),
        ..PublisherOptions::default()
    }
}

fn backfill() -> PublisherOptions {
    PublisherOptions { backfill: true, ..options() }
}

/// A tailer, with what it counts.
struct Tailing {
    publishing: PublisherHandle,
    metrics: Arc<Metrics>,
}

impl Tailing {
    /// Returns the value of a counter, summed over event types.
    fn count(&self, name: &str) -> u64 {
        let page = self.metrics.text();
        let lines = page.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }

    fn published(&self) -> u64 {
        self.count("noetl_event_stream_published_total")
    }

    async fn close(self) {
        self.publishing.close().await;
    }
}

fn start(
    options: &PublisherOptions,
    store: &Arc<impl Store + 'static>,
    bus: &Arc<MemoryStream>,
) -> Tailing {
    let bus: Arc<dyn EventStream> = bus.clone();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let databases: Vec<(String, Arc<dyn PublishingStore>)> =
        vec![("database".to_owned(), store.clone())];
    let (_, commits) = watch::channel(());
    let metrics = Arc::new(Metrics::new());
    let publishing = PublisherHandle::tail(options, databases, &bus, &commits, &clock, &metrics);
    Tailing { publishing, metrics }
}

async fn follows(store: &impl CursorStore) {
    until("the cursor", async || matches!(store.cursor(CURSOR).await, Ok(Some(_)))).await;
}

async fn until_published(bus: &MemoryStream, count: usize) -> Vec<StoredMessage> {
    until("the messages", async || bus.kept().len() >= count).await;
    bus.kept()
}

/// Returns the message IDs of these events. The ID of a reported event includes the execution ID.
fn ids(story: &Story, places: std::ops::RangeInclusive<u64>) -> Vec<String> {
    let id = |place: u64| match place {
        1..=3 => story.event_at(place).to_string(),
        _ => format!("{}:{}", story.event_at(place), story.id()),
    };
    places.map(id).collect()
}

fn ids_of(messages: &[StoredMessage]) -> Vec<&str> {
    messages.iter().map(|message| &*message.id).collect()
}

#[tokio::test]
async fn rows_committed_after_the_start_are_published_once_in_order() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let publishing = start(&options(), &store, &bus);
    follows(&*store).await;
    for round in 0..20 {
        write(&*store, story.then(vec![said(&round.to_string())])).await;
    }
    let messages = until_published(&bus, 20).await;
    assert_eq!(ids_of(&messages), ids(&story, 4..=23), "what was there before is not");
    assert!(messages.iter().all(|message| message.subject == "noetl.events.progress"));
    let body: Value = serde_json::from_slice(&messages[0].payload).expect("JSON");
    assert_eq!(body["result"]["context"]["text"], "0", "{body}");
    assert_eq!(bus.settings(), Some(options().stream()));
    until("the cursor", async || store.cursor(CURSOR).await.expect("a read") == Some(23)).await;
    assert_eq!(publishing.published(), 20);
    assert_eq!(publishing.metrics.stream_lag_seconds.get(), 0.0);
    publishing.close().await;
    assert_eq!(store.lease(CURSOR).await.expect("a read"), None, "the next need not wait");
}

#[tokio::test]
async fn a_backfill_starts_at_the_first_row() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let publishing = start(&backfill(), &store, &bus);
    write(&*store, story.then(vec![said("more")])).await;
    assert_eq!(ids_of(&until_published(&bus, 4).await), ids(&story, 1..=4));
    publishing.close().await;
    // The second time the cursor counts, and not the setting.
    let publishing = start(&backfill(), &store, &bus);
    write(&*store, story.then(vec![said("again")])).await;
    assert_eq!(ids_of(&until_published(&bus, 5).await), ids(&story, 1..=5));
    assert_eq!(publishing.published(), 1);
    publishing.close().await;
}

#[tokio::test]
async fn events_committed_during_a_bus_outage_are_published_afterwards() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    bus.set_connected(false);
    let publishing = start(&options(), &store, &bus);
    follows(&*store).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    until("its age", async || publishing.metrics.stream_lag_seconds.get() > 0.0).await;
    bus.set_connected(true);
    assert_eq!(ids_of(&until_published(&bus, 3).await), ids(&story, 1..=3));
    publishing.close().await;
}

#[tokio::test]
async fn a_restart_during_a_bus_outage_skips_nothing() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    bus.set_connected(false);
    let first = start(&options(), &store, &bus);
    follows(&*store).await;
    first.close().await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    bus.set_connected(true);
    let second = start(&options(), &store, &bus);
    assert_eq!(ids_of(&until_published(&bus, 3).await), ids(&story, 1..=3));
    second.close().await;
}

#[tokio::test]
async fn events_with_lost_acks_are_published_again() {
    for answers in 0..9 {
        let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
        let mut story = Story::new(10);
        write(&*store, story.start()).await;
        for round in 0..6 {
            write(&*store, story.then(vec![said(&round.to_string())])).await;
        }
        bus.leave_after(answers);
        let publishing = start(&backfill(), &store, &bus);
        until("the loss", async || !bus.is_connected()).await;
        assert!(store.cursor(CURSOR).await.expect("a read") < Some(9), "{answers}");
        bus.set_connected(true);
        until("the end", async || store.cursor(CURSOR).await.expect("a read") == Some(9)).await;
        assert_eq!(ids_of(&bus.kept()), ids(&story, 1..=9), "{answers}");
        assert_eq!(publishing.published(), 9, "{answers}");
        publishing.close().await;
    }
}

#[tokio::test]
async fn a_crash_before_the_cursor_update_loses_and_duplicates_no_events() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    // All messages are stored without acks: the cursor doesn't move.
    bus.leave_after(0);
    let dies = start(&backfill(), &store, &bus);
    until("the loss", async || !bus.is_connected()).await;
    assert_eq!(bus.kept().len(), 3);
    dies.close().await;
    assert_eq!(store.cursor(CURSOR).await.expect("a read"), Some(0));
    bus.set_connected(true);
    let next = start(&options(), &store, &bus);
    until("the end", async || store.cursor(CURSOR).await.expect("a read") == Some(3)).await;
    assert_eq!(ids_of(&bus.kept()), ids(&story, 1..=3));
    next.close().await;
}

#[tokio::test]
async fn a_rejected_event_is_skipped_and_counted() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("one"), said("two"), said("three")])).await;
    bus.refuse(&ids(&story, 5..=5)[0]);
    let publishing = start(&backfill(), &store, &bus);
    until("the end", async || store.cursor(CURSOR).await.expect("a read") == Some(6)).await;
    let mut expected = ids(&story, 1..=6);
    expected.remove(4);
    assert_eq!(ids_of(&bus.kept()), expected);
    assert_eq!(publishing.metrics.stream_skipped.with_label_values(&["progress"]).get(), 1);
    publishing.close().await;
}

#[tokio::test]
async fn a_large_row_is_published_by_reference_without_delaying_others() {
    let store = Arc::new(MemoryStore::new());
    let bus = Arc::new(MemoryStream::new().with_payload_max(1 << 20));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said(&"x".repeat(5 << 20))])).await;
    write(&*store, story.then(vec![said("small")])).await;
    let publishing = start(&backfill(), &store, &bus);
    let messages = until_published(&bus, 5).await;
    assert_eq!(ids_of(&messages), ids(&story, 1..=5));
    assert!(messages[3].payload.len() < 900 * 1024);
    let body: Value = serde_json::from_slice(&messages[3].payload).expect("JSON");
    let reference = &body["result"]["reference"];
    assert!(reference["bytes"].as_u64() > Some(5 << 20), "{body}");
    assert_eq!(reference["href"], "/api/executions/10/events?after=3&limit=1");
    assert_eq!(publishing.count("noetl_event_stream_referenced_total"), 1);
    assert_eq!(publishing.count("noetl_event_stream_skipped_total"), 0);
    publishing.close().await;
}

#[tokio::test]
async fn an_event_type_invalid_as_a_subject_is_escaped() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let Fact::Reported(reported) = said("x") else { unreachable!("what a worker said") };
    for event_type in [" a b\n", "", "a.*.>"] {
        let reported = ReportedEvent { event_type: event_type.into(), ..(*reported).clone() };
        write(&*store, story.then(vec![Fact::Reported(Box::new(reported))])).await;
    }
    let publishing = start(&backfill(), &store, &bus);
    let subjects: Vec<String> =
        until_published(&bus, 6).await.into_iter().map(|message| message.subject).skip(3).collect();
    assert_eq!(subjects, ["noetl.events._a_b_", "noetl.events._", "noetl.events.a._._"]);
    publishing.close().await;
}

#[tokio::test]
async fn a_deleted_stream_is_recreated() {
    let (store, bus) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStream::new()));
    let publishing = start(&options(), &store, &bus);
    follows(&*store).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    until_published(&bus, 3).await;
    bus.delete();
    write(&*store, story.then(vec![said("more")])).await;
    assert_eq!(ids_of(&until_published(&bus, 1).await), ids(&story, 4..=4));
    assert_eq!(bus.settings(), Some(options().stream()));
    publishing.close().await;
}

#[tokio::test]
async fn publishing_resumes_after_a_store_outage() {
    let (store, bus) = (Arc::new(FaultyStore::default()), Arc::new(MemoryStream::new()));
    store.set_down(true);
    let publishing = start(&options(), &store, &bus);
    tokio::task::yield_now().await;
    store.set_down(false);
    follows(&*store).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    until_published(&bus, 3).await;
    store.set_down(true);
    tokio::time::sleep(Duration::from_millis(20)).await;
    store.set_down(false);
    write(&*store, story.then(vec![said("more")])).await;
    assert_eq!(ids_of(&until_published(&bus, 4).await), ids(&story, 1..=4));
    publishing.close().await;
}

//! Conformance suite for implementations of [`CommandBus`] and [`CommandConsumer`].
//!
//! `event_stream_suite!(name, async || Subject::new(stream, reader, inspect))` generates a test for
//! every case, each on a bus without a stream.
mod changes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    CommandBus, CommandConsumer, Consumer, ConsumerState, Delivery, PublishAck, PublishError,
    ReadError, StoredMessage, StreamMessage, StreamSettings,
};

pub use self::changes::{
    messages_of_a_filter_are_purged_up_to_a_sequence_number,
    the_subjects_of_a_consumer_can_be_changed,
};

/// Test access to a stream that bypasses the traits under test.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// Returns every message of the stream, oldest first.
    async fn kept(&self) -> Vec<StoredMessage>;

    /// Deletes the stream under test.
    async fn delete(&self);

    /// Delivers a consumer's next message, if there is one, and acks or nacks it as `answer` says.
    async fn give(&self, consumer: &str, answer: Answer) -> Option<StoredMessage>;
}

/// Reaction of a consumer to a delivered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Acks the delivered message.
    Done,
    /// Nacks the delivered message.
    Again,
    None,
}

/// Implementation under test, with access for inspection.
pub struct Subject {
    pub stream: Arc<dyn CommandBus>,
    pub reader: Arc<dyn CommandConsumer>,
    pub inspect: Arc<dyn Inspect>,
}

impl Subject {
    pub fn new(
        stream: Arc<dyn CommandBus>,
        reader: Arc<dyn CommandConsumer>,
        inspect: Arc<dyn Inspect>,
    ) -> Self {
        Self { stream, reader, inspect }
    }
}

/// Returns the stream configuration the cases use.
pub fn settings() -> StreamSettings {
    StreamSettings {
        name: "cases".to_owned(),
        subjects: vec!["cases.>".to_owned()],
        duplicate_window: Duration::from_secs(120),
        age_max: Duration::from_secs(3600),
        consumers: vec![Consumer {
            name: "reader".to_owned(),
            filter: "cases.>".to_owned(),
            ack_wait: Duration::from_secs(30),
        }],
    }
}

/// Returns messages with these IDs, each with its ID as the payload.
pub fn messages<const N: usize>(ids: [&str; N]) -> Vec<StreamMessage> {
    ids.map(|id| message(id, id)).into()
}

fn message(id: &str, payload: &str) -> StreamMessage {
    StreamMessage { subject: "cases.x".to_owned(), id: id.to_owned(), payload: payload.into() }
}

/// Generates a test for every case, in a module of this name.
#[macro_export]
macro_rules! event_stream_suite {
    (@cases $make:expr; $($case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            let subject: $crate::conformance::Subject = ($make)().await;
            $crate::conformance::$case(&subject).await;
        }
    )*};
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            $crate::event_stream_suite! { @cases $make;
                a_batch_is_stored_in_its_order,
                an_empty_batch_publishes_no_messages,
                messages_with_the_same_id_are_stored_once,
                an_existing_stream_is_unchanged,
                publishing_without_a_stream_stores_no_messages,
                a_deleted_stream_is_recreated,
                an_oversized_message_does_not_affect_others,
                a_connected_bus_reports_its_connection,
                pending_messages_of_a_consumer_are_counted,
                a_consumer_reads_only_its_own_subjects,
                consumers_are_added_to_an_existing_stream,
                a_consumer_pulls_available_messages_up_to_its_limit,
                a_waiting_consumer_receives_new_messages,
                nacked_messages_are_redelivered_at_once,
                consumers_of_one_name_share_the_messages,
                messages_of_several_consumers_are_pulled_together,
                pulling_from_a_missing_consumer_fails,
                a_deleted_stream_has_no_state_and_its_successor_is_distinguished,
                the_subjects_of_a_consumer_can_be_changed,
                messages_of_a_filter_are_purged_up_to_a_sequence_number,
            }
        }
    };
}

pub async fn a_batch_is_stored_in_its_order(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    let batch: Vec<StreamMessage> =
        (0..300).map(|number| message(&format!("m{number}"), &"x".repeat(number))).collect();
    let answers = subject.stream.publish(batch.clone()).await;
    assert_eq!(answers, vec![Ok(PublishAck::New); 300]);
    let stored = subject.inspect.kept().await;
    let as_stored = |sent: &StreamMessage| StoredMessage {
        subject: sent.subject.clone(),
        id: sent.id.clone(),
        payload: sent.payload.clone(),
    };
    assert_eq!(stored, batch.iter().map(as_stored).collect::<Vec<_>>());
}

pub async fn an_empty_batch_publishes_no_messages(subject: &Subject) {
    assert_eq!(subject.stream.publish(Vec::new()).await, []);
}

pub async fn messages_with_the_same_id_are_stored_once(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    let answers = subject.stream.publish(messages(["a", "b", "a"])).await;
    assert_eq!(answers, [Ok(PublishAck::New), Ok(PublishAck::New), Ok(PublishAck::Known)]);
    let again = subject.stream.publish(vec![message("b", "other"), message("c", "c")]).await;
    assert_eq!(again, [Ok(PublishAck::Known), Ok(PublishAck::New)]);
    assert_eq!(ids(subject).await, ["a", "b", "c"]);
}

pub async fn an_existing_stream_is_unchanged(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    let other = StreamSettings {
        age_max: Duration::from_secs(7200),
        duplicate_window: Duration::from_secs(60),
        ..settings()
    };
    for settings in [settings(), other] {
        subject.stream.ensure(&settings).await.expect("the same stream");
    }
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::Known)]);
    assert_eq!(ids(subject).await, ["a"]);
}

pub async fn publishing_without_a_stream_stores_no_messages(subject: &Subject) {
    let answers = subject.stream.publish(messages(["a", "b"])).await;
    assert_eq!(answers, vec![Err(PublishError::NoStream); 2]);
    subject.stream.ensure(&settings()).await.expect("a stream");
    let mut batch = messages(["a", "b"]);
    batch[1].subject = "elsewhere.x".to_owned();
    let answers = subject.stream.publish(batch).await;
    assert_eq!(answers, [Ok(PublishAck::New), Err(PublishError::NoStream)]);
}

pub async fn a_deleted_stream_is_recreated(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    subject.inspect.delete().await;
    assert_eq!(subject.stream.publish(messages(["b"])).await, [Err(PublishError::NoStream)]);
    subject.stream.ensure(&settings()).await.expect("another stream");
    assert_eq!(subject.stream.publish(messages(["b"])).await, [Ok(PublishAck::New)]);
    assert_eq!(ids(subject).await, ["b"]);
}

pub async fn an_oversized_message_does_not_affect_others(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    let most = subject.stream.payload_max().expect("a bus that says so");
    let large = message("large", &"x".repeat(most + 1));
    let batch = vec![message("a", "a"), large, message("b", "b")];
    let answers = subject.stream.publish(batch).await;
    let too_large = Err(PublishError::TooLarge { bytes: most + 1 });
    assert_eq!(answers, [Ok(PublishAck::New), too_large, Ok(PublishAck::New)]);
    assert_eq!(ids(subject).await, ["a", "b"]);
}

pub async fn a_connected_bus_reports_its_connection(subject: &Subject) {
    subject.stream.connected().await;
    assert!(subject.stream.is_connected());
}

pub async fn pending_messages_of_a_consumer_are_counted(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(waiting(subject, "reader").await, (0, 0));
    assert_eq!(subject.stream.publish(messages(["a", "b"])).await, vec![Ok(PublishAck::New); 2]);
    assert_eq!(waiting(subject, "reader").await, (2, 0));
    let delivered =
        async |answer| subject.inspect.give("reader", answer).await.map(|message| message.id);
    assert_eq!(delivered(Answer::None).await.as_deref(), Some("a"));
    assert_eq!(waiting(subject, "reader").await, (1, 1));
    assert_eq!(delivered(Answer::Again).await.as_deref(), Some("b"));
    assert_eq!(waiting(subject, "reader").await, (0, 2));
    assert_eq!(delivered(Answer::Done).await.as_deref(), Some("b"));
    assert_eq!(waiting(subject, "reader").await, (0, 1));
}

pub async fn a_consumer_reads_only_its_own_subjects(subject: &Subject) {
    let narrow = Consumer { name: "narrow".to_owned(), ..consumer("cases.y.>") };
    let both = StreamSettings { consumers: vec![narrow, consumer("cases.>")], ..settings() };
    subject.stream.ensure(&both).await.expect("a stream");
    let mut batch = messages(["a", "b"]);
    batch[1].subject = "cases.y.1".to_owned();
    assert_eq!(subject.stream.publish(batch).await, vec![Ok(PublishAck::New); 2]);
    assert_eq!(waiting(subject, "narrow").await, (1, 0));
    assert_eq!(waiting(subject, "reader").await, (2, 0));
    let states = states(subject).await;
    let narrow = states.iter().find(|state| state.name == "narrow").expect("it is there");
    assert!(narrow.reads("cases.y.2") && !narrow.reads("cases.x"), "{narrow:?}");
    let delivered = subject.inspect.give("narrow", Answer::Done).await.map(|message| message.id);
    assert_eq!(delivered.as_deref(), Some("b"));
    assert_eq!(subject.inspect.give("narrow", Answer::Done).await, None);
}

pub async fn consumers_are_added_to_an_existing_stream(subject: &Subject) {
    subject.stream.ensure(&StreamSettings { consumers: Vec::new(), ..settings() }).await.expect("");
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    assert_eq!(states(subject).await, []);
    subject.stream.ensure(&settings()).await.expect("a consumer");
    assert_eq!(waiting(subject, "reader").await, (1, 0), "it begins with the oldest");
    assert_eq!(
        subject.inspect.give("reader", Answer::Done).await.map(|message| message.id).as_deref(),
        Some("a")
    );
    subject.stream.ensure(&settings()).await.expect("the same consumer");
    assert_eq!(waiting(subject, "reader").await, (0, 0), "it stays as it is");
}

pub async fn a_deleted_stream_has_no_state_and_its_successor_is_distinguished(subject: &Subject) {
    let name = settings().name;
    assert_eq!(subject.stream.state(&name).await, Ok(None));
    subject.stream.ensure(&settings()).await.expect("a stream");
    let first = subject.stream.state(&name).await.expect("an answer").expect("a stream");
    assert_eq!(subject.stream.state(&name).await, Ok(Some(first.clone())));
    subject.inspect.delete().await;
    assert_eq!(subject.stream.state(&name).await, Ok(None));
    subject.stream.ensure(&settings()).await.expect("a stream");
    let second = subject.stream.state(&name).await.expect("an answer").expect("a stream");
    assert_ne!(second.made, first.made);
    assert_eq!(second.consumers, first.consumers);
}

pub async fn a_consumer_pulls_available_messages_up_to_its_limit(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(read(subject, 3, AT_ONCE).await, Ok(Vec::new()), "the wait ends");
    assert_eq!(
        subject.stream.publish(messages(["a", "b", "c"])).await,
        vec![Ok(PublishAck::New); 3]
    );
    let first = read(subject, 2, LONG).await.expect("two");
    assert_eq!(payloads(&first), ["a", "b"]);
    assert!(first.iter().all(|delivery| delivery.subject == "cases.x"));
    let rest = read(subject, 2, LONG).await.expect("one");
    assert_eq!(payloads(&rest), ["c"]);
    assert_eq!(waiting(subject, "reader").await, (0, 3));
    subject.reader.done(&receipts(&first)).await;
    subject.reader.done(&receipts(&rest)).await;
    until_waiting(subject, (0, 0)).await;
    assert_eq!(read(subject, 2, AT_ONCE).await, Ok(Vec::new()));
}

pub async fn a_waiting_consumer_receives_new_messages(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    let reading = read(subject, 5, LONG);
    let publishing = async {
        tokio::time::sleep(AT_ONCE).await;
        assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    };
    let (read, ()) = tokio::join!(reading, publishing);
    assert_eq!(payloads(&read.expect("one")), ["a"]);
}

pub async fn nacked_messages_are_redelivered_at_once(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(subject.stream.publish(messages(["a"])).await, [Ok(PublishAck::New)]);
    let deliveries = read(subject, 1, LONG).await.expect("one");
    subject.reader.nack(&receipts(&deliveries)).await;
    let deliveries = read(subject, 1, LONG).await.expect("the same");
    assert_eq!(payloads(&deliveries), ["a"]);
}

pub async fn consumers_of_one_name_share_the_messages(subject: &Subject) {
    subject.stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(subject.stream.publish(messages(["a", "b"])).await, vec![Ok(PublishAck::New); 2]);
    let (one, other) = tokio::join!(read(subject, 1, LONG), read(subject, 1, LONG));
    let mut both = payloads(&one.expect("one"));
    both.extend(payloads(&other.expect("another")));
    both.sort();
    assert_eq!(both, ["a", "b"]);
}

pub async fn messages_of_several_consumers_are_pulled_together(subject: &Subject) {
    let narrow = Consumer { name: "narrow".to_owned(), ..consumer("cases.y.>") };
    let both = StreamSettings { consumers: vec![narrow, consumer("cases.x")], ..settings() };
    subject.stream.ensure(&both).await.expect("a stream");
    let mut batch = messages(["a", "b"]);
    batch[1].subject = "cases.y.1".to_owned();
    assert_eq!(subject.stream.publish(batch).await, vec![Ok(PublishAck::New); 2]);
    let names = ["reader".to_owned(), "narrow".to_owned()];
    let read = subject.reader.next(&settings().name, &names, 8, LONG).await;
    let mut payloads = payloads(&read.expect("both"));
    payloads.sort();
    assert_eq!(payloads, ["a", "b"]);
}

pub async fn pulling_from_a_missing_consumer_fails(subject: &Subject) {
    assert_eq!(read(subject, 1, LONG).await, Err(ReadError::NoReader), "there is no stream");
    let nobody = StreamSettings { consumers: Vec::new(), ..settings() };
    subject.stream.ensure(&nobody).await.expect("a stream");
    assert_eq!(read(subject, 1, LONG).await, Err(ReadError::NoReader));
    assert_eq!(states(subject).await, [], "and nobody was made");
    let none = subject.reader.next(&settings().name, &[], 1, LONG).await;
    assert_eq!(none, Err(ReadError::NoReader));
    subject.stream.ensure(&settings()).await.expect("a reader");
    let reading = read(subject, 1, LONG);
    let deleting = async {
        tokio::time::sleep(AT_ONCE).await;
        subject.inspect.delete().await;
    };
    let (read, ()) = tokio::join!(reading, deleting);
    assert_eq!(read, Err(ReadError::NoReader), "who waits is told");
}

/// Long enough to deliver messages that are already stored.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Upper bound for an event that must occur.
const LONG: Duration = Duration::from_secs(60);

async fn read(subject: &Subject, max: usize, wait: Duration) -> Result<Vec<Delivery>, ReadError> {
    subject.reader.next(&settings().name, &["reader".to_owned()], max, wait).await
}

fn payloads(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| String::from_utf8_lossy(&delivery.payload).into_owned())
        .collect()
}

fn receipts(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| delivery.receipt.clone()).collect()
}

/// Waits until the consumer has this many pending and unacked messages. Acks take effect
/// asynchronously.
async fn until_waiting(subject: &Subject, wanted: (u64, u64)) {
    let comes = async {
        while waiting(subject, "reader").await != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, comes).await.expect("what was said is heard");
}

fn consumer(filter: &str) -> Consumer {
    Consumer { filter: filter.to_owned(), ..settings().consumers.remove(0) }
}

async fn states(subject: &Subject) -> Vec<ConsumerState> {
    let state = subject.stream.state(&settings().name).await.expect("an answer");
    state.expect("the stream is there").consumers
}

/// Returns the number of a consumer's pending messages and of its unacked ones.
async fn waiting(subject: &Subject, consumer: &str) -> (u64, u64) {
    let states = states(subject).await;
    let state = states.into_iter().find(|state| state.name == consumer).expect("it is there");
    (state.pending, state.unacknowledged)
}

async fn ids(subject: &Subject) -> Vec<String> {
    subject.inspect.kept().await.into_iter().map(|message| message.id).collect()
}

//! Sources of Kafka: the suite against a broker in this process, and topics that librdkafka wrote.

mod access;
mod broker;
mod record;
mod stand_in;

use std::time::Duration;

use futures::future::join_all;
use noetl_sources::SourceError;

use self::broker::{Broker, TOPIC};
use crate::suite::{SourceServer, fetched, open, suite};

const WAIT: Duration = Duration::from_millis(200);

impl SourceServer for Broker {
    const SOURCE: &'static str = "kafka";

    const POSITIONS: bool = true;

    async fn new(_alone: bool) -> Option<Self> {
        Some(Self::begin(1, None))
    }

    fn keys(&self) -> String {
        keys(self, "")
    }

    async fn send(&self, bodies: &[&[u8]]) {
        Broker::send(self, 0, bodies);
    }

    fn stop(&mut self) {
        Broker::stop(self);
    }

    fn start(&mut self) {
        Broker::start(self);
    }
}

suite!(topic, Broker);

fn keys(broker: &Broker, more: &str) -> String {
    format!("  brokers: '{}'\n  topic: {TOPIC}\n  group: g\n{more}", broker.address)
}

fn committed(broker: &Broker) -> Vec<(i32, i64)> {
    let state = broker.state();
    let mut offsets: Vec<(i32, i64)> =
        state.committed.iter().map(|((_, partition), at)| (*partition, *at)).collect();
    offsets.sort_unstable();
    offsets
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_is_committed_up_to_its_first_open_message() {
    let broker = Broker::begin(2, None);
    broker.send(0, &[b"0", b"1", b"2"]);
    broker.send(1, &[b"3", b"4"]);
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    assert_eq!(source.backlog().await, Ok(Some(5)));
    let mut deliveries = fetched(&source, 5).await;
    deliveries.sort_by(|a, b| a.message.id.cmp(&b.message.id));
    let ids: Vec<&str> = deliveries.iter().map(|delivery| delivery.message.id.as_str()).collect();
    assert_eq!(ids, ["orders:0:0", "orders:0:1", "orders:0:2", "orders:1:0", "orders:1:1"]);
    deliveries[1].handle.ack().await.unwrap();
    deliveries[2].handle.ack().await.unwrap();
    deliveries[3].handle.ack().await.unwrap();
    assert_eq!(committed(&broker), [(0, 0), (1, 1)], "what follows a gap is not passed");
    assert_eq!(source.backlog().await, Ok(Some(4)));
    deliveries[0].handle.ack().await.unwrap();
    assert_eq!(committed(&broker), [(0, 3), (1, 1)]);
    // A nacked message is redelivered and blocks only its partition.
    deliveries[4].handle.nack(Duration::ZERO).await.unwrap();
    let again = fetched(&source, 1).await;
    assert_eq!(again[0].message.id, "orders:1:1");
    again[0].handle.ack().await.unwrap();
    assert_eq!((committed(&broker), source.backlog().await), (vec![(0, 3), (1, 2)], Ok(Some(0))));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_acks_are_committed_together() {
    let broker = Broker::begin(1, None);
    let bodies: Vec<Vec<u8>> = (0..300).map(|number| number.to_string().into_bytes()).collect();
    broker.send(0, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    let deliveries = fetched(&source, 300).await;
    for result in join_all(deliveries.iter().map(|delivery| delivery.handle.ack())).await {
        result.unwrap();
    }
    assert_eq!(committed(&broker), [(0, 300)]);
    // How many share one depends on who runs when; that most do does not.
    assert!(broker.state().commits < 150, "{} commits", broker.state().commits);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_members_is_rejected() {
    let broker = Broker::begin(1, None);
    broker.state().has_members = true;
    broker.send(0, &[b"1"]);
    let refused = open("kafka", &keys(&broker, "")).await.err().unwrap();
    assert!(
        matches!(&refused, SourceError::Settings(text) if text.contains("'g' has members")),
        "{refused}"
    );
    broker.state().has_members = false;
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    let deliveries = fetched(&source, 1).await;
    // If a member joins later, no offset is committed.
    broker.state().has_members = true;
    assert!(deliveries[0].handle.ack().await.is_err());
    let refused = source.fetch(1, WAIT).await.err();
    assert!(matches!(refused, Some(SourceError::Settings(_))), "{refused:?}");
    assert_eq!(committed(&broker), [(0, 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_read_from_its_new_leader() {
    let broker = Broker::begin(1, None);
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    broker.state().moves = 2;
    broker.send(0, &[b"1"]);
    fetched(&source, 1).await[0].handle.ack().await.unwrap();
    assert_eq!(broker.state().moves, 0);
    assert_eq!(committed(&broker), [(0, 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_deleted_before_they_were_read_are_reported_once_and_skipped() {
    let broker = Broker::begin(1, None);
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    broker.send(0, &[b"0", b"1"]);
    let open_still = fetched(&source, 2).await;
    {
        let mut state = broker.state();
        state.first = 7;
        state.partitions[0] = vec!["7".into()];
    }
    let error = source.fetch(1, WAIT).await.err().unwrap();
    let error = error.to_string();
    assert!(error.contains("orders/0") && error.contains("from 2 on were deleted"), "{error}");
    assert!(error.contains("continues at 7"), "{error}");
    // What is answered for late does not move it back.
    open_still[0].handle.ack().await.unwrap();
    assert_eq!(committed(&broker), [(0, 7)]);
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    assert_eq!(fetched(&source, 1).await[0].message.id, "orders:0:7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_topic_is_read_from_its_beginning() {
    let broker = Broker::begin(1, None);
    broker.state().committed.insert(("g".to_owned(), 0), 40);
    broker.send(0, &[b"new"]);
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    let error = source.fetch(1, WAIT).await.err().unwrap().to_string();
    assert!(error.contains("recreated"), "{error}");
    let source = open("kafka", &keys(&broker, "")).await.unwrap();
    assert_eq!(fetched(&source, 1).await[0].message.id, "orders:0:0");
}

#[tokio::test(flavor = "multi_thread")]
async fn from_new_starts_at_the_time_of_the_first_open() {
    let broker = Broker::begin(1, None);
    broker.send(0, &[b"old"]);
    let source = open("kafka", &keys(&broker, "  from: new\n")).await.unwrap();
    drop(source);
    broker.send(0, &[b"new"]);
    let source = open("kafka", &keys(&broker, "  from: new\n")).await.unwrap();
    assert_eq!(&fetched(&source, 1).await[0].message.body[..], b"new");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_kafka_name_the_cause() {
    let broker = Broker::begin(1, None);
    let gone = "  brokers: '127.0.0.1:1'\n  topic: orders\n".to_owned();
    let topic = format!("  brokers: '{}'\n  topic: none\n", broker.address);
    for (keys, part, is_final) in [
        ("  topic: orders\n".to_owned(), "`brokers`", true),
        (gone, "127.0.0.1:1 is not reached", false),
        (topic, "topic 'none': it is not there", false),
    ] {
        let error = open("kafka", &keys).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{keys}: {error}");
        assert!(error.to_string().contains(part), "{keys}: {error}");
    }
}

//! Servers that are absent, killed and paused.

use noetl_bus::conformance::settings;
use noetl_bus::{EventStream, PublishAck, PublishError, StreamMessage};
use noetl_bus_nats::{Address, NatsStream};
use noetl_test_services::nats::TestNats;

use crate::{LONG, connect};

fn numbered(numbers: std::ops::Range<u32>) -> Vec<StreamMessage> {
    let message = |number: u32| StreamMessage {
        subject: "cases.x".to_owned(),
        id: number.to_string(),
        payload: vec![b'x'; 500],
    };
    numbers.map(message).collect()
}

async fn gone(stream: &NatsStream) {
    let gone = async {
        while stream.is_connected() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("the loss is noticed");
}

/// Publishes until all messages are stored, in order: resumes at the first message without an ack.
async fn publish_all(stream: &NatsStream, all: &[StreamMessage], batch: usize) {
    let mut done = 0;
    while done < all.len() {
        tokio::time::timeout(LONG, stream.connected()).await.expect("a connection");
        let end = (done + batch).min(all.len());
        let answers = stream.publish(all[done..end].to_vec()).await;
        done += answers.iter().take_while(|answer| answer.is_ok()).count();
    }
}

#[tokio::test]
async fn a_server_that_starts_later_is_connected() {
    let mut nats = TestNats::stopped();
    let stream = NatsStream::open(Address::parse(nats.url()).expect("a URL"));
    assert!(!stream.is_connected());
    assert_eq!(stream.payload_max(), None);
    let answers = stream.publish(numbered(0..2)).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(PublishError::Away(_)))));
    nats.restart();
    tokio::time::timeout(LONG, stream.connected()).await.expect("a connection");
    stream.ensure(&settings()).await.expect("a stream");
    assert_eq!(stream.publish(numbered(0..2)).await, [Ok(PublishAck::New), Ok(PublishAck::New)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_no_messages_and_mismatches_no_acks() {
    let mut nats = TestNats::start();
    let stream = connect(nats.url()).await;
    stream.ensure(&settings()).await.expect("a stream");
    let all = numbered(0..20_000);
    let publishing = publish_all(&stream, &all, 700);
    let killing = async {
        for _ in 0..3 {
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            tokio::task::block_in_place(|| {
                nats.kill();
                nats.restart();
            });
        }
    };
    tokio::join!(publishing, killing);
    let messages = nats.messages(&settings().name).await;
    let ids: Vec<&str> = messages.iter().map(|message| &*message.id).collect();
    let expected: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    assert_eq!(ids, expected, "every message once and in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_server_is_unavailable_until_it_resumes() {
    let nats = TestNats::start();
    let stream = connect(nats.url()).await;
    stream.ensure(&settings()).await.expect("a stream");
    nats.pause();
    let answers = stream.publish(numbered(0..100)).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(PublishError::Away(_)))));
    gone(&stream).await;
    nats.resume();
    publish_all(&stream, &numbered(0..200), 50).await;
    let messages = nats.messages(&settings().name).await;
    let ids: Vec<String> = messages.into_iter().map(|message| message.id).collect();
    assert_eq!(ids, (0..200).map(|number: u32| number.to_string()).collect::<Vec<_>>());
}

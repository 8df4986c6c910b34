//! The event stream on a real server.

mod conformance;
mod deployed;
mod faults;
mod settings;

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::PullConsumer;
use async_trait::async_trait;
use futures::StreamExt;
use noetl_bus::conformance::{Answer, Inspect, settings};
use noetl_bus::{EventStream, StoredMessage};
use noetl_bus_nats::{Address, NatsStream};
use noetl_test_services::nats::{StreamMessage, TestNats};

/// Timeout that is reached only if a message never arrives.
const LONG: Duration = Duration::from_secs(60);

async fn connect(url: &str) -> NatsStream {
    let stream = NatsStream::open(Address::parse(url).expect("a URL"));
    tokio::time::timeout(LONG, stream.connected()).await.expect("a connection");
    stream
}

/// The server as the cases look at it.
struct Server(TestNats);

#[async_trait]
impl Inspect for Server {
    async fn kept(&self) -> Vec<StoredMessage> {
        let messages = self.0.messages(&settings().name).await.into_iter();
        messages
            .map(|StreamMessage { subject, id, payload }| StoredMessage { subject, id, payload })
            .collect()
    }

    async fn delete(&self) {
        self.0.delete_stream(&settings().name).await;
    }

    async fn give(&self, consumer: &str, answer: Answer) -> Option<StoredMessage> {
        let stream = self.0.context().await.get_stream(settings().name).await.expect("a stream");
        let consumer: PullConsumer = stream.get_consumer(consumer).await.expect("a consumer");
        let mut batch = consumer.fetch().max_messages(1).messages().await.expect("messages");
        let message = batch.next().await?.expect("a message");
        match answer {
            Answer::Done => message.double_ack().await.expect("it is answered"),
            Answer::Again => {
                message.ack_with(AckKind::Nak(None)).await.expect("it is answered");
                // The next request uses another connection, so this message must reach the server
                // first.
                message.context.client().flush().await.expect("it is sent");
            }
            Answer::None => {}
        }
        let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id"));
        Some(StoredMessage {
            subject: message.subject.to_string(),
            id: id.expect("an id").to_string(),
            payload: message.payload.to_vec(),
        })
    }
}

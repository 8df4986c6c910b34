//! The event stream on a real server.

mod conformance;
mod faults;
mod settings;

use std::time::Duration;

use async_nats::jetstream;
use async_trait::async_trait;
use noetl_bus::conformance::Inspect;
use noetl_bus::{EventStream, Kept};
use noetl_bus_nats::{Address, NatsStream};

/// Nothing takes this long unless it never comes.
const LONG: Duration = Duration::from_secs(60);

async fn connect(url: &str) -> NatsStream {
    let stream = NatsStream::open(Address::parse(url).expect("a URL"));
    tokio::time::timeout(LONG, stream.connected()).await.expect("a connection");
    stream
}

/// Looks at the stream of the cases with a client of its own.
struct Client {
    context: jetstream::Context,
    stream: String,
}

impl Client {
    async fn new(url: &str, stream: &str) -> Self {
        let client = async_nats::connect(url).await.expect("a connection");
        Self { context: jetstream::new(client), stream: stream.to_owned() }
    }
}

#[async_trait]
impl Inspect for Client {
    async fn kept(&self) -> Vec<Kept> {
        let stream = self.context.get_stream(&self.stream).await.expect("the stream");
        let state = stream.get_info().await.expect("its state").state;
        let mut kept = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            let message = stream.get_raw_message(sequence).await.expect("a message");
            let id = message.headers.get("Nats-Msg-Id").expect("an id").to_string();
            let payload = message.payload.to_vec();
            kept.push(Kept { subject: message.subject.to_string(), id, payload });
        }
        kept
    }

    async fn delete(&self) {
        self.context.delete_stream(&self.stream).await.expect("a stream to delete");
    }
}

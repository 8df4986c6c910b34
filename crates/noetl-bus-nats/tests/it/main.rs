//! The event stream on a real server.

mod conformance;
mod faults;
mod settings;

use std::time::Duration;

use async_trait::async_trait;
use noetl_bus::conformance::{Inspect, settings};
use noetl_bus::{EventStream, Kept};
use noetl_bus_nats::{Address, NatsStream};
use noetl_testkit::nats::TestNats;

/// Nothing takes this long unless it never comes.
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
    async fn kept(&self) -> Vec<Kept> {
        self.0.kept(&settings().name).await
    }

    async fn delete(&self) {
        self.0.delete(&settings().name).await;
    }
}

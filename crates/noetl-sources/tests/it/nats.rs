//! Sources of NATS in the suite that all sources pass.

use std::time::Duration;

use noetl_test_services::nats::TestNats;

use crate::suite::{SourceServer, suite};

struct Server {
    nats: TestNats,
    /// Larger messages than usual are let in by it.
    _config: tempfile::NamedTempFile,
}

impl Server {
    fn begin() -> Self {
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), "max_payload: 16MB\n").unwrap();
        let path = config.path().to_str().unwrap().to_owned();
        Self { nats: TestNats::start_with(&["--config", &path]), _config: config }
    }

    async fn publish(&self, bodies: &[&[u8]]) {
        let client = async_nats::connect(self.nats.url()).await.unwrap();
        for body in bodies {
            client.publish("orders.new", body.to_vec().into()).await.unwrap();
        }
        client.flush().await.unwrap();
    }
}

struct Stream(Server);

impl SourceServer for Stream {
    const SOURCE: &'static str = "nats";

    async fn new(_alone: bool) -> Option<Self> {
        let server = Server::begin();
        server.nats.create_stream("ORDERS", "orders.>").await;
        server.nats.create_consumer("ORDERS", "c", Duration::from_secs(1)).await;
        Some(Self(server))
    }

    fn keys(&self) -> String {
        format!("  url: {}\n  stream: ORDERS\n  consumer: c\n", self.0.nats.url())
    }

    async fn send(&self, bodies: &[&[u8]]) {
        let context = self.0.nats.context().await;
        for body in bodies {
            context.publish("orders.new", body.to_vec().into()).await.unwrap().await.unwrap();
        }
    }

    fn stop(&mut self) {
        self.0.nats.stop();
    }

    fn start(&mut self) {
        self.0.nats.restart();
    }
}

struct Subject(Server);

impl SourceServer for Subject {
    const SOURCE: &'static str = "nats";
    const IS_DURABLE: bool = false;

    async fn new(_alone: bool) -> Option<Self> {
        Some(Self(Server::begin()))
    }

    fn keys(&self) -> String {
        format!("  url: {}\n  topic: orders.>\n", self.0.nats.url())
    }

    async fn send(&self, bodies: &[&[u8]]) {
        self.0.publish(bodies).await;
    }

    fn stop(&mut self) {
        self.0.nats.stop();
    }

    fn start(&mut self) {
        self.0.nats.restart();
    }
}

suite!(stream, Stream);
suite!(subject, Subject);

//! Tests of the Redis source.

use std::time::Duration;

use noetl_sources::SourceError;
use noetl_test_services::service::TestService;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

use crate::suite::{SourceServer, fetched, open, suite};

const WAIT: Duration = Duration::from_millis(200);

/// Longest wait for a reply of the server. No test expects it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stream(TestService);

impl Stream {
    async fn client(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.0.url()).unwrap();
        // The crate waits half a second by default. The server syncs every write, which takes longer
        // on a busy disk.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
    }

    async fn add(&self, fields: &[(&str, &[u8])]) -> String {
        let mut command = redis::cmd("XADD");
        command.arg("orders").arg("*");
        for (name, value) in fields {
            command.arg(name).arg(value);
        }
        command.query_async(&mut self.client().await).await.unwrap()
    }

    async fn ask(&self, words: &[&str]) -> redis::Value {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.client().await).await.unwrap()
    }
}

impl SourceServer for Stream {
    const SOURCE: &'static str = "redis";

    async fn new(_alone: bool) -> Option<Self> {
        Some(Self(TestService::redis()?))
    }

    fn keys(&self) -> String {
        let url = self.0.url();
        format!("  url: {url}\n  stream: orders\n  group: g\n  body: body\n  claim_secs: 1\n")
    }

    async fn send(&self, bodies: &[&[u8]]) {
        for body in bodies {
            self.add(&[("body", body)]).await;
        }
    }

    fn stop(&mut self) {
        self.0.stop();
    }

    fn start(&mut self) {
        self.0.restart();
    }
}

suite!(stream, Stream);

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_a_dead_consumer_are_claimed_and_those_in_flight_are_not() {
    let Some(server) = Stream::new(false).await else { return };
    let keys = server.keys();
    let dead = open("redis", &format!("{keys}  consumer: dead\n")).await.unwrap();
    server.send(&[b"1", b"2"]).await;
    let left = fetched(&dead, 2).await;
    let ids: Vec<String> = left.iter().map(|delivery| delivery.message.id.clone()).collect();
    let alive = open("redis", &format!("{keys}  consumer: alive\n")).await.unwrap();
    // No other consumer claims an entry while its processing is extended.
    for _ in 0..8 {
        left[0].handle.extend().await.unwrap();
        left[1].handle.extend().await.unwrap();
        assert_eq!(alive.fetch(10, WAIT).await.unwrap().len(), 0);
    }
    let claimed = fetched(&alive, 2).await;
    let mut deliveries: Vec<String> =
        claimed.iter().map(|delivery| delivery.message.id.clone()).collect();
    deliveries.sort();
    assert_eq!(deliveries, ids);
    for delivery in &claimed {
        delivery.handle.ack().await.unwrap();
    }
    assert_eq!(alive.backlog().await, Ok(Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_group_is_recreated() {
    let Some(server) = Stream::new(false).await else { return };
    let source = open("redis", &server.keys()).await.unwrap();
    server.send(&[b"1"]).await;
    let deliveries = fetched(&source, 1).await;
    server.ask(&["FLUSHALL"]).await;
    server.send(&[b"2", b"3"]).await;
    let again = fetched(&source, 2).await;
    assert_eq!(&again[0].message.body[..], b"2");
    // A word about what is gone is no mistake.
    deliveries[0].handle.ack().await.unwrap();
    again[0].handle.ack().await.unwrap();
    again[1].handle.ack().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_deleted_in_flight_does_not_block_others() {
    let Some(server) = Stream::new(false).await else { return };
    let source = open("redis", &server.keys()).await.unwrap();
    let id = server.add(&[("body", b"1")]).await;
    drop((fetched(&source, 1).await, source));
    server.ask(&["XDEL", "orders", &id]).await;
    server.send(&[b"2"]).await;
    let source = open("redis", &server.keys()).await.unwrap();
    let deliveries = fetched(&source, 1).await;
    assert_eq!(&deliveries[0].message.body[..], b"2");
    deliveries[0].handle.ack().await.unwrap();
    let redis::Value::Array(pending) = server.ask(&["XPENDING", "orders", "g"]).await else {
        panic!()
    };
    assert_eq!(pending[0], redis::Value::Int(0), "what is gone waits for nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_become_the_body_or_headers() {
    let Some(server) = Stream::new(false).await else { return };
    server.add(&[("x-a", b"1"), ("body", &[0xff, 0xfe]), ("raw", &[0xff])]).await;
    let source = open("redis", &server.keys()).await.unwrap();
    let deliveries = fetched(&source, 1).await;
    let message = &deliveries[0].message;
    assert_eq!(&message.body[..], [0xff, 0xfe]);
    let headers = [("x-a".to_owned(), "1".to_owned()), ("raw".to_owned(), "/w==".to_owned())];
    assert_eq!(message.headers, headers);
    assert_eq!(message.id, format!("orders:{}", message.metadata["entry"].as_str().unwrap()));
    let whole = format!("  url: {}\n  stream: orders\n  group: other\n", server.0.url());
    let source = open("redis", &whole).await.unwrap();
    let deliveries = fetched(&source, 1).await;
    let body: serde_json::Value = serde_json::from_slice(&deliveries[0].message.body).unwrap();
    assert_eq!((&body["x-a"], &body["body"]), (&"1".into(), &"//4=".into()));
    let new = format!("  url: {}\n  stream: orders\n  group: third\n  from: new\n", server.0.url());
    let source = open("redis", &new).await.unwrap();
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "from what is new");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_redis_name_the_cause() {
    let Some(server) = Stream::new(false).await else { return };
    server.ask(&["SET", "plain", "1"]).await;
    server.ask(&["CONFIG", "SET", "requirepass", "hunter2"]).await;
    let url = server.0.url();
    for (keys, part, is_final) in [
        (format!("  url: {url}\n  stream: orders\n"), "", true),
        (format!("  url: {url}\n  stream: orders\n  password: wrong\n"), "", true),
        (format!("  url: {url}\n  stream: plain\n  password: hunter2\n"), "", true),
        ("  url: http://x\n  stream: orders\n".to_owned(), "redis[s]://", true),
        ("  url: redis://127.0.0.1:1\n  stream: orders\n".to_owned(), "not reached", false),
    ] {
        let error = open("redis", &keys).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{keys}: {error}");
        assert!(error.to_string().contains(part), "{keys}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    open("redis", &format!("  url: {url}\n  stream: orders\n  password: hunter2\n")).await.unwrap();
}

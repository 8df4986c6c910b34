//! A real NATS server of a test's own, to be killed, started again and paused, and what it keeps.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{self, Context};
use futures::StreamExt;
use noetl_bus::Kept;

/// A server with JetStream on a port of its own. Removed with this.
#[derive(Debug)]
pub struct TestNats {
    directory: PathBuf,
    options: Vec<String>,
    url: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestNats {
    /// Starts a server. Blocks while it does.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further options of `nats-server`.
    pub fn start_with(options: &[&str]) -> Self {
        let mut nats = Self::prepare(options);
        nats.start_again();
        nats
    }

    /// A server that is not there yet, with the port it will have.
    pub fn absent() -> Self {
        let nats = Self::start();
        nats.stop();
        nats
    }

    fn prepare(options: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-nats-own-{}-{number}", std::process::id());
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Self { directory: std::env::temp_dir().join(name), options, url: String::new() }
    }

    /// Starts it again on the same port and with what it kept.
    pub fn start_again(&mut self) {
        let mut arguments = vec!["start".to_owned(), self.place()];
        arguments.extend(self.options.iter().cloned());
        let url = script(&arguments);
        assert!(self.url.is_empty() || self.url == url, "the port {} is taken", self.url);
        self.url = url;
    }

    /// Stops it in order.
    pub fn stop(&self) {
        script(&["stop".to_owned(), self.place()]);
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    /// Lets it stand still, with its connections open.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Every message of a stream, oldest first; none when there is no such stream.
    pub async fn kept(&self, stream: &str) -> Vec<Kept> {
        let Ok(stream) = self.context().await.get_stream(stream).await else { return Vec::new() };
        let count = stream.get_info().await.expect("its state").state.messages;
        let config = pull::Config { ack_policy: AckPolicy::None, ..pull::Config::default() };
        let reader = stream.create_consumer(config).await.expect("a consumer");
        let mut kept = Vec::new();
        while (kept.len() as u64) < count {
            let mut batch = reader.fetch().max_messages(500).messages().await.expect("messages");
            while let Some(message) = batch.next().await {
                let message = message.expect("a message");
                let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id"));
                kept.push(Kept {
                    subject: message.subject.to_string(),
                    id: id.expect("an id").to_string(),
                    payload: message.payload.to_vec(),
                });
            }
        }
        kept
    }

    /// Makes a stream of what is published on a subject.
    pub async fn make_stream(&self, name: &str, subject: &str) {
        let (name, subjects) = (name.to_owned(), vec![subject.to_owned()]);
        let config = jetstream::stream::Config { name, subjects, ..Default::default() };
        self.context().await.create_stream(config).await.expect("a stream");
    }

    /// Makes a durable consumer that waits so long for a word about each message.
    pub async fn make_consumer(&self, stream: &str, name: &str, ack_wait: Duration) {
        let stream = self.context().await.get_stream(stream).await.expect("a stream");
        let config = pull::Config {
            durable_name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.expect("a consumer");
    }

    /// How much waits at a consumer: what was not handed out, and what was and is not acknowledged.
    pub async fn waiting(&self, stream: &str, consumer: &str) -> u64 {
        let stream = self.context().await.get_stream(stream).await.expect("a stream");
        let info = stream.consumer_info(consumer).await.expect("a consumer");
        info.num_pending + info.num_ack_pending as u64
    }

    /// Deletes a stream with everything in it.
    pub async fn delete(&self, stream: &str) {
        self.context().await.delete_stream(stream).await.expect("a stream to delete");
    }

    /// A client of its own.
    pub async fn context(&self) -> Context {
        jetstream::new(async_nats::connect(&self.url).await.expect("a connection"))
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn signal(&self, name: &str) {
        script(&["signal".to_owned(), self.place(), name.to_owned()]);
    }

    fn place(&self) -> String {
        self.directory.display().to_string()
    }
}

impl Drop for TestNats {
    fn drop(&mut self) {
        script(&["remove".to_owned(), self.place()]);
    }
}

fn script(arguments: &[String]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services/nats.sh");
    let output = Command::new(path).args(arguments).output().expect("the script runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nats.sh {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

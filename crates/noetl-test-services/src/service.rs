//! Redis, Mosquitto, and Kafka servers, one per test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::missing;
use crate::script::run;

/// A server on its own port. Dropping the value removes the server.
#[derive(Debug)]
pub struct TestService {
    script: &'static str,
    directory: PathBuf,
    url: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestService {
    /// Starts a Redis server. Returns `None` and records the skip if Redis is not installed.
    #[track_caller]
    pub fn redis() -> Option<Self> {
        Self::start("redis-server", "redis.sh")
    }

    /// Starts a Mosquitto broker. Returns `None` and records the skip if it is not installed.
    #[track_caller]
    pub fn mosquitto() -> Option<Self> {
        Self::start("mosquitto", "mosquitto.sh")
    }

    /// Starts librdkafka's mock cluster of Kafka brokers, which loses its data on
    /// [`stop`](Self::stop). Returns `None` and records the skip if kcat is not installed.
    #[track_caller]
    pub fn kafka() -> Option<Self> {
        Self::start("kcat", "kafka.sh")
    }

    #[track_caller]
    #[expect(clippy::print_stderr, reason = "the test's output shows why the installation failed")]
    fn start(part: &str, script: &'static str) -> Option<Self> {
        if let Err(error) = run(script, &["install"]) {
            eprintln!("{error}");
            missing(part, &format!("scripts/services/{script} install"));
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-{script}-own-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut service = Self { script, directory, url: String::new() };
        service.restart();
        Some(service)
    }

    /// Starts the server on the same port and with its stored data. Blocks until it is ready.
    pub fn restart(&mut self) {
        let url = run(self.script, &["start", &self.path()]).expect("the server starts");
        assert!(self.url.is_empty() || self.url == url, "port of {} is in use", self.url);
        self.url = url;
    }

    pub fn stop(&self) {
        run(self.script, &["stop", &self.path()]).expect("the server stops");
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn path(&self) -> String {
        self.directory.display().to_string()
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let _ = run(self.script, &["remove", &self.path()]);
    }
}

//! Servers of a test's own that a script of `scripts/services` starts and stops.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server on a port of its own. Removed with this.
#[derive(Debug)]
pub struct TestService {
    script: &'static str,
    directory: PathBuf,
    options: Vec<String>,
    url: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestService {
    /// Starts a Redis server; none, with a printed reason, when there is none to be had here.
    pub fn redis() -> Option<Self> {
        Self::new("redis.sh")
    }

    /// Starts a Mosquitto broker; none, with a printed reason, when there is none to be had here.
    pub fn mosquitto() -> Option<Self> {
        Self::new("mosquitto.sh")
    }

    /// Starts the cluster of Kafka brokers that librdkafka makes up; none, with a printed reason, when
    /// there is none to be had here. It keeps nothing when it is stopped.
    pub fn kafka() -> Option<Self> {
        Self::new("kafka.sh")
    }

    #[expect(clippy::print_stdout, reason = "the test it skips says so")]
    fn new(script: &'static str) -> Option<Self> {
        if let Err(error) = run(script, &["install".to_owned()]) {
            println!("skipped: {error}");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-{script}-own-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut service = Self { script, directory, options: Vec::new(), url: String::new() };
        service.start_again();
        Some(service)
    }

    /// Starts it again on the same port and with what it kept. Blocks while it does.
    pub fn start_again(&mut self) {
        let mut arguments = vec!["start".to_owned(), self.place()];
        arguments.extend(self.options.iter().cloned());
        let url = run(self.script, &arguments).expect("it starts");
        assert!(self.url.is_empty() || self.url == url, "the port {} is taken", self.url);
        self.url = url;
    }

    /// Stops it in order.
    pub fn stop(&self) {
        run(self.script, &["stop".to_owned(), self.place()]).expect("it stops");
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn place(&self) -> String {
        self.directory.display().to_string()
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let _ = run(self.script, &["remove".to_owned(), self.place()]);
    }
}

fn run(script: &str, arguments: &[String]) -> Result<String, String> {
    let path = format!("{}/../../scripts/services/{script}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(path).args(arguments).output().expect("the script runs");
    let error = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{script} {arguments:?}: {error}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! A real NATS server of a test's own, to be killed, started again and paused.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

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

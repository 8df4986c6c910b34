//! NATS servers with JetStream, one per test, to kill, pause, and restart.

#[cfg(feature = "nats")]
mod client;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::script::require;

#[cfg(feature = "nats")]
pub use client::StreamMessage;

const SCRIPT: &str = "nats.sh";

/// A server with JetStream on its own port. Dropping the value removes the server.
#[derive(Debug)]
pub struct TestNats {
    directory: PathBuf,
    options: Vec<String>,
    url: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestNats {
    /// Starts a server. Blocks until it is ready.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further options of `nats-server`. Blocks until it is ready.
    pub fn start_with(options: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-nats-own-{}-{number}", std::process::id());
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let directory = std::env::temp_dir().join(name);
        let mut nats = Self { directory, options, url: String::new() };
        nats.restart();
        nats
    }

    /// Reserves a port for a server that is not running. [`restart`](Self::restart) starts it.
    pub fn stopped() -> Self {
        let nats = Self::start();
        nats.stop();
        nats
    }

    /// Starts the server on the same port and with its stored data. Blocks until it is ready.
    pub fn restart(&mut self) {
        let path = self.path();
        let mut arguments = vec!["start", &path];
        arguments.extend(self.options.iter().map(String::as_str));
        let url = require(SCRIPT, &arguments);
        assert!(self.url.is_empty() || self.url == url, "port of {} is in use", self.url);
        self.url = url;
    }

    pub fn stop(&self) {
        require(SCRIPT, &["stop", &self.path()]);
    }

    /// Kills the server, as a crash does.
    pub fn kill(&self) {
        self.signal("KILL");
    }

    /// Pauses the server with its connections open.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    pub fn resume(&self) {
        self.signal("CONT");
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn signal(&self, name: &str) {
        require(SCRIPT, &["signal", &self.path(), name]);
    }

    fn path(&self) -> String {
        self.directory.display().to_string()
    }
}

impl Drop for TestNats {
    fn drop(&mut self) {
        require(SCRIPT, &["remove", &self.path()]);
    }
}

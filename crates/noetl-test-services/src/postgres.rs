//! Postgres for tests: databases on one shared server, and servers of one test to stop and crash.

mod template;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::missing;
use crate::script::{require, run};

pub use template::Template;

const SCRIPT: &str = "postgres.sh";

/// URL of a shared server that already runs, so that not every test has to look for it.
const SHARED: &str = "NOETL_TEST_POSTGRES";

/// A database on the server that all tests share. Dropping the value drops the database.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestDatabase {
    /// Creates an empty database. Starts the shared server if needed, which blocks.
    pub fn new() -> Self {
        Self::create(shared(), "")
    }

    /// Creates a copy of a template, which is much faster than to run its migrations. Starts the
    /// shared server and creates the template if needed, which blocks.
    pub fn from_template(template: Template) -> Self {
        let server = shared();
        let name = template.ensure(&server);
        Self::create(server, &format!("template {name} strategy file_copy"))
    }

    fn create(server: String, options: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        psql(&server, &format!("create database {name} {options}"));
        Self { server, name }
    }

    pub fn url(&self) -> String {
        database_url(&self.server, &self.name)
    }

    /// Returns the database's URL through pgbouncer, which pools by transaction. Returns `None` and
    /// records the skip if pgbouncer is not installed.
    #[track_caller]
    #[expect(clippy::print_stderr, reason = "the test's output shows why pgbouncer failed")]
    pub fn pooled_url(&self) -> Option<String> {
        match run("pgbouncer.sh", &["shared", &self.url()]) {
            Ok(url) => Some(url),
            Err(error) => {
                eprintln!("{error}");
                missing("pgbouncer", "scripts/services/pgbouncer.sh install");
                None
            }
        }
    }

    /// Runs SQL and returns the output of `psql`: one line per row, columns separated by `|`.
    pub fn psql(&self, sql: &str) -> String {
        psql(&self.url(), sql)
    }

    /// Returns the whole database as `pg_dump` writes it.
    pub fn dump(&self) -> Vec<u8> {
        let output = Command::new("pg_dump").arg(self.url()).output();
        let output = output.expect("pg_dump is installed with the server");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Default for TestDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let sql = format!("drop database if exists {} with (force)", self.name);
        // A database that could not be dropped goes with the server.
        let _ = psql_command(&self.server, &sql).output();
    }
}

/// A server of one test, to stop and crash. Dropping the value removes the server.
#[derive(Debug)]
pub struct TestServer {
    directory: PathBuf,
    settings: Vec<String>,
    url: String,
}

impl TestServer {
    /// Starts a server with these settings, each `name=value`. Blocks until it is ready.
    pub fn start(settings: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-postgres-own-{}-{number}", std::process::id());
        Self::start_in(std::env::temp_dir().join(name), settings)
    }

    /// Starts a server whose data is in `directory`. Blocks until it is ready.
    pub fn start_in(directory: PathBuf, settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
        let mut server = Self { directory, settings, url: String::new() };
        server.restart();
        server
    }

    /// Starts the server on the same port after [`TestServer::stop`].
    pub fn restart(&mut self) {
        let path = self.path();
        let mut arguments = vec!["start", &path];
        arguments.extend(self.settings.iter().map(String::as_str));
        self.url = require(SCRIPT, &arguments);
    }

    /// Stops the server: `fast` closes every connection first, `immediate` equals a crash.
    pub fn stop(&self, mode: &str) {
        require(SCRIPT, &["stop", &self.path(), mode]);
    }

    /// Returns the URL of the database `postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL and returns the output of `psql`.
    pub fn psql(&self, sql: &str) -> String {
        psql(&self.url, sql)
    }

    fn path(&self) -> String {
        self.directory.display().to_string()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        require(SCRIPT, &["remove", &self.path()]);
    }
}

/// Returns the URL of the server that tests share, and starts it if needed.
fn shared() -> String {
    match std::env::var_os(SHARED) {
        Some(url) => url.to_string_lossy().into_owned(),
        None => require(SCRIPT, &["shared"]),
    }
}

fn database_url(server: &str, database: &str) -> String {
    let base = server.rsplit_once('/').map_or(server, |(base, _)| base);
    format!("{base}/{database}")
}

fn psql_command(url: &str, sql: &str) -> Command {
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url]);
    command
}

fn psql(url: &str, sql: &str) -> String {
    let output = psql_command(url, sql).output().expect("psql is installed with the server");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

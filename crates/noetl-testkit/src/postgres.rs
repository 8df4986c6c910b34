//! A real Postgres for tests: one that all tests share, and ones of a test's own to be killed.

mod template;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A database of its own on the server that all tests share. Dropped with this.
#[derive(Debug)]
pub struct TestDatabase {
    server: String,
    name: String,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl TestDatabase {
    /// Makes an empty database. Starts the shared server when it is not running, which blocks.
    pub fn new() -> Self {
        Self::made(shared(), "")
    }

    /// Makes a database that holds the tables already, for tests that are not about making them. They
    /// are made once and copied, which is much quicker.
    pub fn migrated() -> Self {
        let server = shared();
        let template = template::of(&server);
        Self::made(server, &format!("template {template} strategy file_copy"))
    }

    fn made(server: String, how: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        psql(&server, &format!("create database {name} {how}"));
        Self { server, name }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        at(&self.server, &self.name)
    }

    /// Its URL through a proxy that pools by transaction; `None`, with a printed reason, when there
    /// is none on this machine.
    #[expect(clippy::print_stdout, reason = "the test it skips says so")]
    pub fn pooled_url(&self) -> Option<String> {
        let output = Command::new(PGBOUNCER).args(["shared", &self.url()]).output();
        let output = output.expect("the script runs");
        if !output.status.success() {
            println!("skipped: no pgbouncer: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs SQL in it and returns what `psql` prints: rows in lines, columns parted by `|`.
    pub fn psql(&self, sql: &str) -> String {
        psql(&self.url(), sql)
    }

    /// All of it, as `pg_dump` writes it down.
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
        // What is left goes with the server.
        let _ = psql_command(&self.server, &sql).output();
    }
}

/// A server of a test's own, to be stopped and killed. Removed with this.
#[derive(Debug)]
pub struct TestServer {
    directory: PathBuf,
    settings: Vec<String>,
    url: String,
}

impl TestServer {
    /// Starts a server with these settings, each `name=value`. Blocks while it does.
    pub fn start(settings: &[&str]) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("noetl-postgres-own-{}-{number}", std::process::id());
        Self::start_in(std::env::temp_dir().join(name), settings)
    }

    /// Starts a server whose data is below `directory`.
    pub fn start_in(directory: PathBuf, settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
        let mut server = Self { directory, settings, url: String::new() };
        server.start_again();
        server
    }

    /// Starts it again on the same port after [`TestServer::stop`].
    pub fn start_again(&mut self) {
        let directory = self.directory.display().to_string();
        let mut arguments = vec!["start", &directory];
        arguments.extend(self.settings.iter().map(String::as_str));
        self.url = script(&arguments);
    }

    /// Stops it: `fast` ends every connection in order, `immediate` is as good as a crash.
    pub fn stop(&self, mode: &str) {
        script(&["stop", &self.directory.display().to_string(), mode]);
    }

    /// The URL of its database `postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it and returns what `psql` prints.
    pub fn psql(&self, sql: &str) -> String {
        psql(&self.url, sql)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        script(&["remove", &self.directory.display().to_string()]);
    }
}

/// The URL of the server that tests share. Whoever runs many tests starts it and says where it is,
/// so that not every test has to find out.
fn shared() -> String {
    match std::env::var_os(SHARED) {
        Some(url) => url.to_string_lossy().into_owned(),
        None => script(&["shared"]),
    }
}

fn at(server: &str, database: &str) -> String {
    let base = server.rsplit_once('/').map_or(server, |(base, _)| base);
    format!("{base}/{database}")
}

const SHARED: &str = "NOETL_TEST_POSTGRES";

const PGBOUNCER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services/pgbouncer.sh");

fn script(arguments: &[&str]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/services/postgres.sh");
    let output = Command::new(path).args(arguments).output().expect("the script runs");
    let (said, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "postgres.sh {arguments:?}: {error}");
    said.trim().to_owned()
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

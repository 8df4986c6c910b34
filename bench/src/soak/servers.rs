//! The processes that are killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use noetl_api::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::Failure;

/// Seconds after which a dead process is missed.
const LEASE_SECS: &str = "10";

/// How often a server is started that finds its database away.
const STARTS_MAX: usize = 60;

/// A Postgres server, by the script that starts and stops it.
pub(crate) struct Database {
    service: PathBuf,
    directory: PathBuf,
    url: String,
}

impl Database {
    pub(crate) async fn start(service: &Path, directory: &Path) -> Result<Self, Failure> {
        let (service, directory) = (service.to_owned(), directory.to_owned());
        let mut database = Self { service, directory, url: String::new() };
        database.url = database.run("start", None).await?;
        Ok(database)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn stop(&self, mode: &str) -> Result<(), Failure> {
        self.run("stop", Some(mode)).await.map(|_| ())
    }

    pub(crate) async fn start_again(&self) -> Result<(), Failure> {
        self.run("start", None).await.map(|_| ())
    }

    async fn run(&self, verb: &str, mode: Option<&str>) -> Result<String, Failure> {
        let mut command = Command::new(&self.service);
        command.arg(verb).arg(&self.directory).args(mode).stderr(Stdio::inherit());
        let output = command.output().await?;
        if !output.status.success() {
            return Err(format!("the database could not {verb}").into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// A server with a worker.
pub(crate) struct Server {
    program: PathBuf,
    database: String,
    running: Mutex<Option<(Child, Client)>>,
}

impl Server {
    pub(crate) async fn start(program: &Path, database: &str) -> Result<Self, Failure> {
        let (program, database) = (program.to_owned(), database.to_owned());
        let server = Self { program, database, running: Mutex::new(None) };
        server.start_again().await?;
        Ok(server)
    }

    /// A client of it; `None` while it is down.
    pub(crate) async fn client(&self) -> Option<Client> {
        self.running.lock().await.as_ref().map(|(_, client)| client.clone())
    }

    /// Ends it with SIGKILL.
    pub(crate) async fn kill(&self) {
        if let Some((mut child, _)) = self.running.lock().await.take() {
            // One that has ended by itself needs no kill.
            let _ = child.kill().await;
        }
    }

    /// Starts it again, until it listens.
    pub(crate) async fn start_again(&self) -> Result<(), Failure> {
        for _ in 0..STARTS_MAX {
            if let Some(running) = self.try_start().await? {
                *self.running.lock().await = Some(running);
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Err("a server did not start".into())
    }

    async fn try_start(&self) -> Result<Option<(Child, Client)>, Failure> {
        let mut child = Command::new(&self.program)
            .args(["dev", "--port", "0", "--slots", "8", "--database-url", &self.database])
            .env("NOETL_LEASE_SECS", LEASE_SECS)
            .env("POSTGRES_ACQUIRE_TIMEOUT", "5")
            .env("RUST_LOG", "error")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let Some(said) = child.stderr.take() else { return Ok(None) };
        let mut lines = BufReader::new(said).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(base) = line.strip_prefix("noetl listens on ") {
                let client = Client::new(base)?;
                // The rest is read so that the pipe never fills.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Some((child, client)));
            }
        }
        Ok(None)
    }
}

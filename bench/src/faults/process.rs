//! Processes of the program, to be killed, paused and started again as they were.

use std::process::Stdio;
use std::time::Duration;

use noetl_api::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::Failure;

/// How often a process is started that finds what it needs away.
const STARTS_MAX: usize = 60;

/// How one is started.
#[derive(Clone)]
pub(crate) struct Recipe {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    pub(crate) settings: Vec<(String, String)>,
    /// What its line begins with when it is ready.
    pub(crate) sign: &'static str,
}

/// A process that may be running.
pub(crate) struct Process {
    recipe: Recipe,
    running: Mutex<Option<Child>>,
}

impl Process {
    pub(crate) async fn start(recipe: Recipe) -> Result<Self, Failure> {
        let process = Self { recipe, running: Mutex::new(None) };
        process.start_again().await?;
        Ok(process)
    }

    /// Starts it again, until it is ready.
    pub(crate) async fn start_again(&self) -> Result<(), Failure> {
        self.start_with(&[]).await
    }

    /// The same with these further settings, this once.
    pub(crate) async fn start_with(&self, settings: &[(&str, &str)]) -> Result<(), Failure> {
        for _ in 0..STARTS_MAX {
            if let Some(child) = self.try_start(settings).await? {
                *self.running.lock().await = Some(child);
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Err(format!("{} did not start", self.recipe.words.join(" ")).into())
    }

    pub(crate) async fn is_running(&self) -> bool {
        self.running.lock().await.is_some()
    }

    /// Ends it with SIGKILL.
    pub(crate) async fn kill(&self) {
        if let Some(mut child) = self.running.lock().await.take() {
            // One that has ended by itself needs no kill.
            let _ = child.kill().await;
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(&self) -> Result<(), Failure> {
        let child = self.running.lock().await.take();
        if let Some(mut child) = child {
            signal(child.id(), "TERM").await?;
            child.wait().await?;
        }
        Ok(())
    }

    /// Lets it stand still, or go on.
    pub(crate) async fn signal(&self, name: &str) -> Result<(), Failure> {
        let id = self.running.lock().await.as_ref().and_then(Child::id);
        signal(id, name).await
    }

    async fn try_start(&self, settings: &[(&str, &str)]) -> Result<Option<Child>, Failure> {
        let mut child = Command::new(&self.recipe.words[0])
            .args(&self.recipe.words[1..])
            .envs(self.recipe.settings.iter().map(|(name, value)| (name, value)))
            .envs(settings.iter().copied())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let Some(said) = child.stderr.take() else { return Ok(None) };
        let mut lines = BufReader::new(said).lines();
        while let Some(line) = lines.next_line().await? {
            if line.starts_with(self.recipe.sign) {
                // The rest is read so that the pipe never fills.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Some(child));
            }
        }
        Ok(None)
    }
}

/// Sends a signal to a process, if it is there.
pub(crate) async fn signal(id: Option<u32>, name: &str) -> Result<(), Failure> {
    let Some(id) = id else { return Ok(()) };
    Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().await?;
    Ok(())
}

/// A server, as those who call it see it.
pub(crate) struct Server {
    pub(crate) process: Process,
    client: Client,
}

impl Server {
    pub(crate) fn new(process: Process, client: Client) -> Self {
        Self { process, client }
    }

    /// A client of it; `None` while it is down.
    pub(crate) async fn client(&self) -> Option<Client> {
        self.process.is_running().await.then(|| self.client.clone())
    }
}

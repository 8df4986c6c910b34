//! The database and the bus, by the scripts that start and stop them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::Failure;
use crate::process::signal;

/// A service with a directory of its own, removed with this.
pub(crate) struct Service {
    script: PathBuf,
    directory: PathBuf,
    pub(crate) port: u16,
    pub(crate) url: String,
}

impl Service {
    pub(crate) async fn start(script: &Path, directory: PathBuf) -> Result<Self, Failure> {
        let mut service =
            Self { script: script.to_owned(), directory, port: 0, url: String::new() };
        service.url = service.run(&["start"], &[]).await?;
        let after_host = service.url.rsplit(':').next().unwrap_or_default();
        let port: String = after_host.chars().take_while(char::is_ascii_digit).collect();
        service.port = port.parse().map_err(|_| format!("no port in {}", service.url))?;
        Ok(service)
    }

    /// Runs the script with what stands before the directory and what follows it.
    pub(crate) async fn run(&self, before: &[&str], after: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new(&self.script);
        command.args(before).arg(&self.directory).args(after).stderr(Stdio::inherit());
        let output = command.output().await?;
        if !output.status.success() {
            return Err(format!("{} {} failed", self.script.display(), before.join(" ")).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The same URL by way of another port.
    pub(crate) fn by(&self, port: u16) -> String {
        self.url.replacen(&format!(":{}", self.port), &format!(":{port}"), 1)
    }

    /// Sends a signal to all processes of a database.
    pub(crate) async fn signal_database(&self, name: &str) -> Result<(), Failure> {
        let file = ["data/postmaster.pid", "postmaster.pid"].map(|file| self.directory.join(file));
        let text = file.iter().find_map(|file| std::fs::read_to_string(file).ok());
        let first = text.as_deref().and_then(|text| text.lines().next()?.trim().parse().ok());
        let parent: u32 = first.ok_or("the database says no process of its own")?;
        for id in children(parent)?.into_iter().chain([parent]) {
            signal(Some(id), name).await?;
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // What is left of it is in a temporary directory.
        let _ =
            std::process::Command::new(&self.script).arg("remove").arg(&self.directory).status();
    }
}

/// The processes that one has started.
fn children(parent: u32) -> Result<Vec<u32>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        // The name in parentheses may hold spaces; the parent is the second field after it.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        if fields.split_whitespace().nth(1) == Some(&parent.to_string()) {
            found.push(id);
        }
    }
    Ok(found)
}

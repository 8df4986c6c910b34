//! The database and the bus, by the scripts that start and stop them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::hosts::Place;
use crate::process::signal;
use crate::{Failure, Ground};

/// A service with a directory of its own, removed with this.
pub(crate) struct Service {
    script: PathBuf,
    directory: PathBuf,
    place: Place,
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
}

impl Service {
    /// Starts the one that a script of this name is about.
    pub(crate) async fn start(ground: &Ground, name: &str, place: Place) -> Result<Self, Failure> {
        let script = ground.services.join(format!("{name}.sh"));
        let directory = ground.directory.join(name);
        let address = SocketAddr::new(place.address, 0);
        let mut service = Self { script, directory, place, address, url: String::new() };
        service.url = service.run(&["start"], &[]).await?;
        let host = service.url.split("://").nth(1).and_then(|it| it.split('/').next());
        let host = host.and_then(|it| it.rsplit('@').next()).unwrap_or_default();
        service.address = host.parse().map_err(|_| format!("no address in {}", service.url))?;
        Ok(service)
    }

    /// Runs the script with what stands before the directory and what follows it.
    pub(crate) async fn run(&self, before: &[&str], after: &[&str]) -> Result<String, Failure> {
        let words = self.place.words(&self.script.to_string_lossy(), before);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(&self.directory).args(after).stderr(Stdio::inherit());
        command.env("NOETL_SERVICES_ADDRESS", self.place.address.to_string());
        let output = command.output().await?;
        if !output.status.success() {
            return Err(format!("{} {} failed", self.script.display(), before.join(" ")).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The same URL by way of another address.
    pub(crate) fn by(&self, address: SocketAddr) -> String {
        self.url.replacen(&self.address.to_string(), &address.to_string(), 1)
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
        // What is left of it, as a disk of its own, is for whoever made the directory.
        let mut command = std::process::Command::new(&self.script);
        let _ = command.arg("remove").arg(&self.directory).stderr(Stdio::null()).status();
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

//! A private Postgres for the measurements: on the same disk, with its durability as shipped.

use std::path::PathBuf;
use std::process::Command;

/// A server, removed with this.
pub(crate) struct Server {
    directory: PathBuf,
    url: String,
    databases: u32,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let name = format!("noetl-postgres-bench-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let url = script(&["start", &directory.display().to_string(), "max_wal_size=4GB"])?;
        Ok(Self { directory, url, databases: 0 })
    }

    /// The URL of a new database.
    pub(crate) fn database(&mut self) -> Result<String, Box<dyn std::error::Error>> {
        self.databases += 1;
        let name = format!("bench_{}", self.databases);
        let make = Command::new("psql")
            .args(["-X", "-q", "-c", &format!("create database {name}"), &self.url])
            .status()?;
        if !make.success() {
            return Err("psql could not make a database".into());
        }
        let base = self.url.rsplit_once('/').map_or(self.url.as_str(), |(base, _)| base);
        Ok(format!("{base}/{name}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is left of it is in a temporary directory.
        let _ = script(&["remove", &self.directory.display().to_string()]);
    }
}

fn script(arguments: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/services/postgres.sh");
    let output = Command::new(path).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! A private NATS for the measurements.

use std::path::PathBuf;
use std::process::Command;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A server, removed with this.
pub(crate) struct Server {
    directory: PathBuf,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Outcome<Self> {
        let name = format!("noetl-nats-bench-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let url = script(&["start", &directory.display().to_string()])?;
        Ok(Self { directory, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is left of it is in a temporary directory.
        let _ = script(&["remove", &self.directory.display().to_string()]);
    }
}

fn script(arguments: &[&str]) -> Outcome<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/services/nats.sh");
    let output = Command::new(path).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! Checks this machine for `noetl run` and `noetl dev`: Python, data directory, key, and isolation.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use noetl_config::tree::Steps;
use noetl_tools::Level;
use tokio::process::Command;

use super::{Check, CheckState};
use crate::{keys, runtime, settings};

/// Time limit for `python --version`.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn checks(data: &Path) -> Vec<Check> {
    vec![python().await, directory(data), key(data), isolation(data).await]
}

/// Checks the isolation level of steps on this machine. The hint lists the attacks that the level
/// does not prevent.
async fn isolation(data: &Path) -> Check {
    let settled = async {
        let steps: Steps = settings::section()?;
        let mut options = runtime::tools(&steps)?;
        options.own.add(data);
        crate::isolation::settle(&mut options, &steps).await?;
        Ok(options.isolation.level)
    };
    match settled.await {
        Ok(level) => {
            let state = if level == Level::None { CheckState::Warning } else { CheckState::Ok };
            let message = format!("steps are isolated at level {level}");
            Check::new("steps", state, message)
                .hint(format!("not stopped: {}", level.does_not_stop()))
        }
        Err(failure) => Check::failed("steps", &failure),
    }
}

async fn python() -> Check {
    let program = match settings::section::<Steps>() {
        Ok(steps) => steps.python,
        Err(failure) => return Check::failed("python", &failure),
    };
    let name = program.display();
    let hint = "Python steps need it: install Python 3, or name one in NOETL_PYTHON";
    let bad = |message: String| Check::new("python", CheckState::Bad, message).hint(hint);
    let mut command = Command::new(&program);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Check::new("python", CheckState::Ok, format!("{name} is {version}"))
        }
        Ok(Ok(output)) => bad(format!("{name} --version ended with {}", output.status)),
        Ok(Err(error)) => bad(format!("{name} could not be started: {error}")),
        Err(_) => bad(format!("{name} --version did not end")),
    }
}

/// Checks whether a database can be created in the directory. Leaves no files behind.
fn directory(data: &Path) -> Check {
    let name = data.display();
    let hint = "choose another with --data or NOETL_DATA, or give yourself the right to write";
    let parents =
        data.ancestors().map(|path| if path == Path::new("") { Path::new(".") } else { path });
    let existing = parents.into_iter().find(|path| path.exists());
    let probed = existing.map(probe);
    match probed {
        Some(Ok(())) if data.exists() => {
            Check::new("data", CheckState::Ok, format!("{name} can be written"))
        }
        Some(Ok(())) => Check::new("data", CheckState::Ok, format!("{name} can be made")),
        Some(Err(error)) => {
            Check::new("data", CheckState::Bad, format!("{name} cannot be written: {error}"))
                .hint(hint)
        }
        None => Check::new("data", CheckState::Bad, format!("{name} cannot be made")).hint(hint),
    }
}

fn probe(directory: &Path) -> io::Result<()> {
    let file = directory.join(format!(".noetl-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(file)
}

fn key(data: &Path) -> Check {
    match keys::from_settings() {
        Err(failure) => Check::failed("key", &failure),
        Ok(Some(_)) => Check::new("key", CheckState::Ok, "the settings contain one"),
        Ok(None) if keys::is_in(data) => {
            Check::new("key", CheckState::Ok, format!("{} has one", data.display()))
        }
        Ok(None) => {
            let message = "there is none yet; `noetl dev` makes one, `noetl server` needs one";
            Check::new("key", CheckState::Ok, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usable_directory_passes_the_check_and_stays_empty() {
        let home = tempfile::TempDir::new().expect("a directory");
        assert_eq!(directory(home.path()).state, CheckState::Ok);
        assert_eq!(directory(&home.path().join("a/b")).state, CheckState::Ok);
        assert_eq!(fs::read_dir(home.path()).expect("a list").count(), 0);
        let file = home.path().join("file");
        fs::write(&file, "").expect("a file");
        assert_eq!(directory(&file).state, CheckState::Bad);
        assert_eq!(directory(&file.join("below")).state, CheckState::Bad);
    }
}

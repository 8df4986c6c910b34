//! Lock file that admits one owning process per database.
//!
//! The lock belongs to the operating system, so it ends with the process in any case. The lock file
//! contains the owner's process ID while the database is open, and is empty after a clean close. A
//! process ID in an unlocked file therefore means that the last owner crashed.
//!
//! A child of the owner shares the lock from its fork until it executes its program. After `kill
//! -9` of the owner, such a child may have the lock a little longer, so the next owner waits for
//! it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::OpenError;

/// Maximum time for which a child of a dead owner may have the lock.
const CHILD_MAX: Duration = Duration::from_secs(10);

/// Pause between two attempts to acquire the lock of a dead owner.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
}

/// State in which the last owner left the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviousExit {
    /// Closed, or never opened before.
    Clean,
    /// Not closed: the owner's process crashed.
    Open,
}

impl LockFile {
    /// Acquires the lock of the database at `database`, or returns an error that names its owner.
    pub(crate) fn take(database: &Path) -> Result<(Self, PreviousExit), OpenError> {
        let path = path_of(database);
        let failed = |action| {
            let path = path.clone();
            move |source| OpenError::Io { action, path, source }
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed("open the lock file"))?;
        let begun = Instant::now();
        let text = loop {
            match file.try_lock() {
                Ok(()) => break text(&mut file).map_err(failed("read the lock file"))?,
                Err(TryLockError::WouldBlock) => {
                    let pid = text(&mut file).ok().and_then(|text| text.trim().parse().ok());
                    if !pid.is_some_and(is_dead) || begun.elapsed() > CHILD_MAX {
                        return Err(OpenError::InUse { path: database.to_owned(), pid });
                    }
                    pause();
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
            }
        };
        let left = if text.is_empty() { PreviousExit::Clean } else { PreviousExit::Open };
        let mut lock = Self { file };
        let owner = format!("{}\n", std::process::id());
        lock.write(&owner).map_err(failed("write the lock file"))?;
        Ok((lock, left))
    }

    /// Releases the lock after the database was closed.
    pub(crate) fn release(mut self) {
        if let Err(error) = self.write("") {
            // The next owner checks the file once more than necessary; no data is lost.
            tracing::warn!(%error, "failed to clear lock file");
        }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }
}

#[expect(clippy::disallowed_methods, reason = "opening a database blocks its thread anyway")]
fn pause() {
    std::thread::sleep(PAUSE);
}

fn text(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns `true` if a process is known to have ended. Only Linux provides this; on other systems
/// there is no wait for a dead owner.
fn is_dead(pid: u32) -> bool {
    if !Path::new("/proc/self/stat").exists() {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The program name is in parentheses and may contain any character.
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(".lock");
    path.into()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_dead_owner_is_awaited_until_its_last_child_lets_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("noetl.db");
        let mut owner = std::process::Command::new("true").spawn().expect("a process");
        owner.wait().expect("its end");
        let held = File::create(path_of(&database)).expect("a lock file");
        (&held).write_all(format!("{}\n", owner.id()).as_bytes()).expect("a text");
        held.lock().expect("the lock");
        let child = std::thread::spawn(move || {
            (0..3).for_each(|_| pause());
            drop(held);
        });
        let (_lock, left) = LockFile::take(&database).expect("the lock");
        assert_eq!(left, PreviousExit::Open);
        child.join().expect("the child");
        let refused = LockFile::take(&database).expect_err("this process has it");
        let me = Some(std::process::id());
        assert!(matches!(refused, OpenError::InUse { pid, .. } if pid == me), "{refused:?}");
    }
}

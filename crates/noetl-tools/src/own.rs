//! Checks the paths in a step's settings.
//!
//! The program's own files (database, keys, tokens, configuration) are rejected by device and
//! inode, so that no spelling, link, or descriptor path reaches them. If root directories are
//! configured, everything outside of them is rejected as well.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use noetl_model::{Failure, FailureKind};
use serde::{Deserialize, Serialize};

/// Suffixes of the files that SQLite opens next to a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Maximum symbolic links followed in one path. Linux has the same limit.
const LINKS_MAX: usize = 40;

/// Files and directories of the program itself. Steps must never access them, at any isolation
/// level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles(Vec<PathBuf>);

impl OwnFiles {
    /// Adds a file, or a directory with everything below it.
    pub fn add(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        self.0.push(std::path::absolute(&path).unwrap_or(path));
    }

    /// Adds a SQLite database and the files next to it.
    pub fn add_database(&mut self, path: &Path) {
        self.add(path);
        for suffix in COMPANIONS {
            self.add(path_with_suffix(path, suffix));
        }
    }

    /// Returns the existing files by canonical path, each with its identity.
    pub(crate) fn existing(&self) -> Vec<(PathBuf, FileId)> {
        let paths = self.0.iter().filter_map(|path| {
            let path = path.canonicalize().ok()?;
            let id = FileId::new(&fs::metadata(&path).ok()?);
            Some((path, id))
        });
        paths.collect()
    }
}

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    pub(crate) fn new(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A directory that steps may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedDirectory {
    /// Absolute path of the directory.
    pub path: PathBuf,
    /// Whether steps may write below the directory.
    pub writable: bool,
}

/// Decides whether a step may use a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FileGuard {
    own: Vec<FileId>,
    roots: Option<Vec<AllowedDirectory>>,
}

impl FileGuard {
    /// Reads the current identities of the program's files.
    pub(crate) fn new(own: &OwnFiles, roots: Option<&[AllowedDirectory]>) -> Self {
        let mut ids = Vec::new();
        for (path, id) in own.existing() {
            ids.push(id);
            // A hard link outside of the directory refers to the same file.
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                ids.extend(entry.metadata().ok().map(|metadata| FileId::new(&metadata)));
            }
        }
        Self { own: ids, roots: roots.map(<[AllowedDirectory]>::to_vec) }
    }

    /// Returns `true` if an open file is one of the program's.
    pub(crate) fn is_own(&self, metadata: &fs::Metadata) -> bool {
        self.own.contains(&FileId::new(metadata))
    }

    /// Rejects a path that leads to a file of the program, or out of the root directories.
    pub(crate) fn check(&self, path: &Path, writes: bool) -> Result<(), Failure> {
        let resolved = resolve(path).map_err(|error| {
            let message = format!("'{}' cannot be looked up: {error}", path.display());
            Failure::new(FailureKind::Config, message)
        })?;
        // Checks the parent directories too: everything below a directory of the program is its
        // own.
        for place in resolved.ancestors() {
            if fs::metadata(place).is_ok_and(|metadata| self.is_own(&metadata)) {
                return Err(own_file(path));
            }
        }
        let Some(roots) = &self.roots else { return Ok(()) };
        let is_within = roots.iter().any(|root| {
            let base = root.path.canonicalize();
            base.is_ok_and(|base| resolved.starts_with(base)) && (root.writable || !writes)
        });
        if is_within {
            return Ok(());
        }
        let (to, path) = (if writes { " to write to" } else { "" }, path.display());
        let message = format!(
            "'{path}' is not in a directory that steps of this tenant may use{to} \
             (setting NOETL_STEP_PATHS)"
        );
        Err(Failure::new(FailureKind::Config, message))
    }

    /// Like [`check`](Self::check), for a SQLite database and the files next to it.
    pub(crate) fn check_database(&self, path: &Path, writes: bool) -> Result<(), Failure> {
        self.check(path, writes)?;
        COMPANIONS.iter().try_for_each(|suffix| self.check(&path_with_suffix(path, suffix), writes))
    }
}

/// Creates the failure of a step that names a file of the program.
pub(crate) fn own_file(path: &Path) -> Failure {
    let message =
        format!("'{}' is a file of noetl itself, which steps may not use", path.display());
    Failure::new(FailureKind::Config, message)
}

fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Resolves all symbolic links of a path, even if the file doesn't exist.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    if let Ok(canonical) = path.canonicalize() {
        return Ok(canonical);
    }
    let absolute = std::path::absolute(path)?;
    let mut pending: VecDeque<PathBuf> =
        absolute.components().map(|part| PathBuf::from(part.as_os_str())).collect();
    let mut resolved = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = pending.pop_front() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(resolved.pop()),
            Some(Component::Normal(name)) => {
                let next = resolved.join(name);
                match fs::read_link(&next) {
                    Ok(target) => {
                        links += 1;
                        if links > LINKS_MAX {
                            return Err(io::Error::other("too many symbolic links"));
                        }
                        for part in target.components().rev() {
                            pending.push_front(part.as_os_str().into());
                        }
                    }
                    Err(_) => resolved = next,
                }
            }
            Some(Component::RootDir) => resolved = PathBuf::from("/"),
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Home {
        _dir: tempfile::TempDir,
        path: PathBuf,
        own: OwnFiles,
    }

    fn home() -> Home {
        let dir = tempfile::TempDir::new().expect("a directory");
        let path = dir.path().canonicalize().expect("a path");
        fs::create_dir(path.join("data")).expect("a directory");
        fs::write(path.join("data/noetl.db"), "rows").expect("a file");
        fs::write(path.join("key"), "secret").expect("a file");
        let mut own = OwnFiles::default();
        own.add(path.join("data"));
        own.add(path.join("key"));
        Home { _dir: dir, path, own }
    }

    #[test]
    fn a_file_of_the_program_is_rejected_under_every_name() {
        let Home { path, own, _dir } = home();
        fs::hard_link(path.join("key"), path.join("hard")).expect("a link");
        fs::hard_link(path.join("data/noetl.db"), path.join("hard.db")).expect("a link");
        symlink(path.join("key"), path.join("soft")).expect("a link");
        symlink("data/../soft", path.join("twice")).expect("a link");
        symlink(path.join("data/new"), path.join("dangling")).expect("a link");
        let open = fs::File::open(path.join("key")).expect("a file");
        let descriptor = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        let guard = FileGuard::new(&own, None);
        let spelled =
            ["key", "./key", "data/../key", "hard", "hard.db", "soft", "twice", "dangling"];
        let below = ["data", "data/noetl.db", "data/noetl.db-wal", "data/not/there"];
        let paths = spelled.iter().chain(&below).map(|name| path.join(name));
        for path in paths.chain([descriptor]) {
            let failure = guard.check(&path, false).expect_err(&path.display().to_string());
            assert!(failure.message.contains("a file of noetl itself"), "{failure}");
        }
        guard.check(&path.join("other"), true).expect("not its own");
    }

    #[test]
    fn a_database_is_rejected_if_its_journal_is_a_file_of_the_program() {
        let Home { path, own, _dir } = home();
        symlink(path.join("key"), path.join("mine.db-journal")).expect("a link");
        let guard = FileGuard::new(&own, None);
        assert!(guard.check_database(&path.join("mine.db"), true).is_err());
        guard.check_database(&path.join("yours.db"), true).expect("not its own");
    }

    #[test]
    fn a_path_outside_of_the_roots_is_rejected() {
        let Home { path, own, _dir } = home();
        for name in ["in", "read"] {
            fs::create_dir(path.join(name)).expect("a directory");
        }
        symlink(path.join("out"), path.join("in/soft")).expect("a link");
        let root = |name: &str, writable| AllowedDirectory { path: path.join(name), writable };
        let guard = FileGuard::new(&own, Some(&[root("in", true), root("read", false)]));
        guard.check(&path.join("in/a"), true).expect("within");
        guard.check(&path.join("read/a"), false).expect("within");
        for (name, writes) in
            [("out", false), ("in/../out", false), ("in/soft", false), ("read/a", true)]
        {
            assert!(guard.check(&path.join(name), writes).is_err(), "{name}");
        }
    }
}

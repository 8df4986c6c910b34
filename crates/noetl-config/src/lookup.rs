//! Finds and reads the configuration files.
//!
//! A named file is the only one. Otherwise the file of the machine, that of the user, and
//! `noetl.toml` in the working directory apply, later ones over earlier ones. Directories are
//! entered without knowing their content, so the last one is not trusted: it must not contain
//! guarded settings, and it can't hide those of the other files, because it replaces no file.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::file::FileLayer;
use crate::mask;
use crate::problem::{Position, Problem};
use crate::secret::MASK;
use crate::tree::Options;

/// Name of the file in the working directory and in the user's configuration directory.
pub const FILE_NAME: &str = "noetl.toml";

/// File that applies to every user of the machine.
pub const SYSTEM_FILE: &str = "/etc/noetl/noetl.toml";

/// Maximum size of a file, in bytes. Thousands of shards fit.
const SIZE_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// File that the user named. It must exist, and is trusted.
    Named(PathBuf),
    /// Files that apply if they exist.
    Usual {
        system: PathBuf,
        /// File in the user's configuration directory, if there is one.
        user: Option<PathBuf>,
        /// File in the working directory.
        working: PathBuf,
    },
}

/// Content of the configuration files.
#[derive(Debug, Default)]
pub struct Files {
    /// Files that were read, lowest precedence first.
    pub layers: Vec<FileLayer>,
    pub problems: Vec<Problem>,
    /// Files of the machine or the user that this process must not read. A process that runs steps
    /// or accepts requests must not start without them, because they may restrict it.
    pub unreadable: Vec<Problem>,
    /// Conditions that don't prevent the start.
    pub warnings: Vec<String>,
}

impl Lookup {
    /// Returns the usual locations for a home directory and the value of `XDG_CONFIG_HOME`, which
    /// counts only if it is absolute.
    pub fn usual(home: Option<&Path>, config_home: Option<&Path>) -> Self {
        let user = match config_home.filter(|directory| directory.is_absolute()) {
            Some(directory) => Some(directory.to_owned()),
            None => home.filter(|home| home.is_absolute()).map(|home| home.join(".config")),
        };
        Self::Usual {
            system: PathBuf::from(SYSTEM_FILE),
            user: user.map(|directory| directory.join("noetl").join(FILE_NAME)),
            working: PathBuf::from(FILE_NAME),
        }
    }

    /// Reads the files. `uid` is the effective user ID of this process.
    pub fn read(&self, uid: u32) -> Files {
        let mut files = Files::default();
        match self {
            Self::Named(path) => match read_named(path) {
                Ok(content) => files.add(path, &content, true),
                Err(problem) => files.problems.push(problem),
            },
            Self::Usual { system, user, working } => {
                // The working directory may be that of one of the other files.
                let is_same = |other: &Path| {
                    let identity = |path: &Path| {
                        std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
                    };
                    identity(working).is_some() && identity(working) == identity(other)
                };
                let others = [Some(system.as_path()), user.as_deref()];
                let is_other = others.into_iter().flatten().any(is_same);
                let working = (!is_other).then_some((working, false));
                let trusted =
                    [Some(system), user.as_ref()].into_iter().flatten().map(|path| (path, true));
                for (path, is_trusted) in trusted.chain(working) {
                    match read_usual(path, uid) {
                        Ok(Some(content)) => files.add(path, &content, is_trusted),
                        Ok(None) => {}
                        // Clients on the machine of a server need not be able to read its secrets,
                        // so the caller decides.
                        Err(UsualError::Io(error))
                            if error.kind() == io::ErrorKind::PermissionDenied && is_trusted =>
                        {
                            files.unreadable.push(unread(path, &error));
                        }
                        Err(error) => files.problems.push(error.problem(path)),
                    }
                }
            }
        }
        files
    }
}

impl Files {
    fn add(&mut self, path: &Path, content: &Content, is_trusted: bool) {
        let (layer, problems) = FileLayer::read(path, &content.bytes, is_trusted);
        if content.is_readable_by_others && has_secret(&layer) {
            let path = path.display();
            self.warnings.push(format!("every user can read the secrets in {path}: chmod o-r"));
        }
        self.problems.extend(problems);
        self.layers.push(layer);
    }
}

struct Content {
    bytes: Vec<u8>,
    is_readable_by_others: bool,
}

/// Reason that a file in a usual location doesn't apply.
enum UsualError {
    Io(io::Error),
    Untrusted(&'static str),
}

impl UsualError {
    fn problem(self, path: &Path) -> Problem {
        match self {
            Self::Io(error) => unread(path, &error),
            Self::Untrusted(why) => {
                let hint = "name it with --config or NOETL_CONFIG if you trust it";
                Problem::in_file(Position::of_file(path), why).hint(Some(hint.to_owned()))
            }
        }
    }
}

/// Device that contains nothing, as the only file.
const NULL: &str = "/dev/null";

/// Reads a file that the user named. Only a regular file has the same content when it is read
/// again, as a worker does that starts over without its token in the environment.
fn read_named(path: &Path) -> Result<Content, Problem> {
    // Opening a named pipe would wait for its writer.
    let meta = std::fs::metadata(path).map_err(|error| unread(path, &error))?;
    check_named(path, &meta)?;
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (meta, file) = opened.map_err(|error| unread(path, &error))?;
    check_named(path, &meta)?;
    read(file, meta.mode()).map_err(|error| unread(path, &error))
}

fn check_named(path: &Path, meta: &Metadata) -> Result<(), Problem> {
    let (message, hint) = if meta.is_dir() {
        let file = path.join(FILE_NAME);
        ("this is a directory", format!("name a file, such as {}", file.display()))
    } else if meta.is_file() || is_null(meta) {
        return Ok(());
    } else {
        let hint = "write the settings to a file that only you can read, or set variables; a pipe \
                    can be read only once";
        ("this is not a regular file", hint.to_owned())
    };
    Err(Problem::in_file(Position::of_file(path), message).hint(Some(hint)))
}

fn is_null(meta: &Metadata) -> bool {
    let null = std::fs::metadata(NULL);
    meta.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == meta.rdev())
}

/// Reads a file in a usual location, or returns `None` if there is none.
fn read_usual(path: &Path, uid: u32) -> Result<Option<Content>, UsualError> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(UsualError::Io(error)),
    };
    // A pipe would block the start until another process writes to it.
    if !meta.is_file() {
        return Err(UsualError::Untrusted("this is not a file"));
    }
    let file = File::open(path).map_err(UsualError::Io)?;
    let meta = file.metadata().map_err(UsualError::Io)?;
    if meta.uid() != uid && meta.uid() != 0 {
        return Err(UsualError::Untrusted("the file belongs to another user"));
    }
    if meta.mode() & 0o002 != 0 {
        return Err(UsualError::Untrusted("every user can write to the file"));
    }
    read(file, meta.mode()).map(Some).map_err(UsualError::Io)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(file: File, mode: u32) -> io::Result<Content> {
    let mut bytes = Vec::new();
    file.take(SIZE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_MAX {
        let message = format!("the file is larger than {} MiB", SIZE_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(Content { bytes, is_readable_by_others: mode & 0o004 != 0 })
}

fn has_secret(layer: &FileLayer) -> bool {
    Options::settings().any(|setting| {
        let given = layer.values.get(setting.key).map(|(given, _)| given);
        let value = given.and_then(|given| setting.kind.parse(given).ok().flatten());
        value.is_some_and(|value| mask::shown(setting, &value).contains(MASK))
    })
}

fn unread(path: &Path, error: &io::Error) -> Problem {
    Problem::in_file(Position::of_file(path), format!("could not read the file: {error}"))
}

//! Opens a database, and stops what is done with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use noetl_model::{Failure, FailureKind, Map, Value};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::execute::failed;
use crate::config::{self, type_name, wrong};

/// How many of the database's operations pass between two looks at whether to stop: well below a
/// millisecond, and cheap.
const OPERATIONS: i32 = 10_000;

/// How long one try for a locked database waits before it looks at whether to stop.
const BUSY_TRY: Duration = Duration::from_millis(100);

/// How long a locked database is waited for in all. Another writer holds it for the length of its
/// transaction.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// Where a database is, and how it is to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// `None` is a fresh one in memory.
    path: Option<PathBuf>,
    read_only: bool,
}

impl Location {
    pub(crate) fn read(settings: &Map) -> Result<Self, Failure> {
        let path = match config::first(settings, &["db_path", "database", "path"]) {
            None => None,
            Some((_, Value::String(path))) if path == ":memory:" || path.is_empty() => None,
            Some((key, Value::String(path))) if path.contains('\0') => {
                return Err(wrong(format!("`{key}` holds a NUL character")));
            }
            Some((_, Value::String(path))) => Some(PathBuf::from(path)),
            Some((key, other)) => {
                return Err(wrong(format!("`{key}` must be a path, not {}", type_name(other))));
            }
        };
        let read_only = match settings.get("read_only") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(read_only)) => *read_only,
            Some(other) => {
                let found = type_name(other);
                return Err(wrong(format!("`read_only` must be true or false, not {found}")));
            }
        };
        Ok(Self { path, read_only })
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.path.is_none()
    }
}

/// Opens the database such that `stop` ends whatever it does.
pub(crate) fn open(location: &Location, stop: &Stop) -> Result<Connection, Failure> {
    let access = match location.read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    // Without the flag for URIs: a path is a path, whatever it looks like.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match &location.path {
        None => Connection::open_in_memory(),
        Some(path) => Connection::open_with_flags(path, flags),
    };
    let mut connection = opened.map_err(|error| {
        let failure = failed(&error, None);
        match &location.path {
            Some(path) => Failure {
                kind: FailureKind::Config,
                message: format!("{} cannot be opened: {error}", path.display()),
                ..failure
            },
            None => failure,
        }
    })?;
    let stop = stop.clone();
    let set_up = connection
        .busy_timeout(BUSY_TRY)
        .and_then(|()| connection.progress_handler(OPERATIONS, Some(move || stop.is_raised())));
    set_up.map_err(|error| failed(&error, None))?;
    Ok(connection)
}

/// Does `work`, again and again while another process has the database locked.
///
/// Only for work that changes nothing when it fails: the opening of a transaction, or a statement
/// that is one of its own.
pub(crate) fn patiently<T>(
    stop: &Stop,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let patience = Patience::new(stop);
    loop {
        match work() {
            Err(error) if patience.is_left(&error) => {}
            outcome => return outcome,
        }
    }
}

/// How long a locked database is still waited for.
pub(crate) struct Patience<'a> {
    stop: &'a Stop,
    started: Instant,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(stop: &'a Stop) -> Self {
        Self { stop, started: Instant::now() }
    }

    /// Whether an error is worth another try. The try before has waited already.
    pub(crate) fn is_left(&self, error: &rusqlite::Error) -> bool {
        error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
            && self.started.elapsed() < BUSY_PATIENCE
            && !self.stop.is_raised()
    }
}

/// A sign to stop, seen by the thread that works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Raises the sign when it is dropped.
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }
}

/// See [`Stop::guard`].
#[derive(Debug)]
pub(crate) struct Guard(Stop);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.raise();
    }
}

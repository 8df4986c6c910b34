//! Opens a database, and stops what is done with it.

use std::time::{Duration, Instant};

use noetl_model::{Failure, FailureKind};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::execute::failed;
use crate::sql::{File, Stop};

/// How many of the database's operations pass between two looks at whether to stop: well below a
/// millisecond, and cheap.
const OPERATIONS: i32 = 10_000;

/// How long one try for a locked database waits before it looks at whether to stop.
const BUSY_TRY: Duration = Duration::from_millis(100);

/// How long a locked database is waited for in all. Another writer holds it for the length of its
/// transaction.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database such that `stop` ends whatever it does.
pub(crate) fn open(file: &File, stop: &Stop) -> Result<Connection, Failure> {
    let access = match file.read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    // Without the flag for URIs: a path is a path, whatever it looks like.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match &file.path {
        None => Connection::open_in_memory(),
        Some(path) => Connection::open_with_flags(path, flags),
    };
    let mut connection = opened.map_err(|error| {
        let failure = failed(&error, None);
        match &file.path {
            Some(path) => Failure {
                kind: FailureKind::Config,
                message: format!("{path} cannot be opened: {error}"),
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

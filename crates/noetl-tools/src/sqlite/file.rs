//! Opens a database, and interrupts its statements on request.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use noetl_model::{Failure, FailureKind};
use percent_encoding::percent_decode_str;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::execute::failed;
use crate::own::FileGuard;
use crate::sql::{DatabaseFile, StopFlag};

/// Virtual machine operations between two checks of the stop flag: well below a millisecond, and
/// cheap.
const OPERATIONS: i32 = 10_000;

/// Wait per attempt on a locked database, before the next check of the stop flag.
const BUSY_TRY: Duration = Duration::from_millis(100);

/// Maximum total wait for a locked database. Another writer holds the lock for the duration of its
/// transaction.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database. `stop` interrupts a running statement. A statement that opens a file which
/// `guard` rejects fails.
pub(crate) fn open(
    file: &DatabaseFile,
    guard: &FileGuard,
    stop: &StopFlag,
) -> Result<Connection, Failure> {
    if let Some(path) = &file.path {
        guard.check_database(Path::new(path), !file.read_only)?;
    }
    let access = match file.read_only {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    // Without the URI flag, so that a path is never interpreted as a URI.
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
    // Checked again, because a link may have changed in between.
    check_attached(&connection, guard)?;
    let (stop, attach) = (stop.clone(), guard.clone());
    let set_up = connection
        .busy_timeout(BUSY_TRY)
        .and_then(|()| connection.progress_handler(OPERATIONS, Some(move || stop.is_raised())))
        .and_then(|()| {
            connection.authorizer(Some(move |context: AuthContext<'_>| authorize(context, &attach)))
        });
    set_up.map_err(|error| failed(&error, None))?;
    Ok(connection)
}

/// Denies statements that name a rejected file; `vacuum into` attaches its file, too. A file name
/// in a parameter is not known here: [`check_attached`] checks it.
fn authorize(context: AuthContext<'_>, guard: &FileGuard) -> Authorization {
    let AuthAction::Attach { filename } = context.action else { return Authorization::Allow };
    let is_refused = |path: &Path| guard.check_database(path, true).is_err();
    let uri = filename.strip_prefix("file:").map(uri_path);
    let is_file = !filename.is_empty() && filename != ":memory:";
    match is_file && (is_refused(Path::new(filename)) || uri.is_some_and(|path| is_refused(&path)))
    {
        true => Authorization::Deny,
        false => Authorization::Allow,
    }
}

/// Returns the path of a `file:` URI, given without its scheme. Removes authority and parameters,
/// and decodes escapes.
fn uri_path(rest: &str) -> PathBuf {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("", |at| &rest[at..]),
        None => rest,
    };
    PathBuf::from(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

/// Rejects open databases whose files the guard rejects, regardless of how they were named.
pub(crate) fn check_attached(connection: &Connection, guard: &FileGuard) -> Result<(), Failure> {
    let mut names: Vec<Option<String>> = Vec::new();
    let listed = connection.pragma_query(None, "database_list", |row| {
        names.push(row.get(2)?);
        Ok(())
    });
    listed.map_err(|error| failed(&error, None))?;
    let files = names.into_iter().flatten().filter(|name| !name.is_empty());
    for name in files {
        guard.check_database(Path::new(&name), false)?;
    }
    Ok(())
}

/// Runs `work`, and retries while another process has the database locked.
///
/// Only for work without an effect when it fails: the start of a transaction, or a statement that
/// is a transaction of its own.
pub(crate) fn patiently<T>(
    stop: &StopFlag,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let patience = BusyTimeout::new(stop);
    loop {
        match work() {
            Err(error) if patience.is_left(&error) => {}
            outcome => return outcome,
        }
    }
}

/// Time budget for a locked database.
pub(crate) struct BusyTimeout<'a> {
    stop: &'a StopFlag,
    started: Instant,
}

impl<'a> BusyTimeout<'a> {
    pub(crate) fn new(stop: &'a StopFlag) -> Self {
        Self { stop, started: Instant::now() }
    }

    /// Returns `true` if the operation can be retried after this error. The failed attempt has
    /// already waited.
    pub(crate) fn is_left(&self, error: &rusqlite::Error) -> bool {
        error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
            && self.started.elapsed() < BUSY_PATIENCE
            && !self.stop.is_raised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_uri_is_the_file_that_sqlite_opens() {
        for (rest, expected) in [
            ("/a%20b.db?mode=ro#x", "/a b.db"),
            ("//localhost/a%2fb.db", "/a/b.db"),
            ("//localhost", ""),
            // Only a percent sign with two hexadecimal digits is an escape.
            ("a%+5%zz%4", "a%+5%zz%4"),
        ] {
            assert_eq!(uri_path(rest), Path::new(expected), "{rest}");
        }
    }
}

//! Opens a database, and stops what is done with it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use noetl_model::{Failure, FailureKind};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::execute::failed;
use crate::own::FileGuard;
use crate::sql::{File, Stop};

/// How many of the database's operations pass between two looks at whether to stop: well below a
/// millisecond, and cheap.
const OPERATIONS: i32 = 10_000;

/// How long one try for a locked database waits before it looks at whether to stop.
const BUSY_TRY: Duration = Duration::from_millis(100);

/// How long a locked database is waited for in all. Another writer holds it for the length of its
/// transaction.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// Opens the database. `stop` interrupts a running statement, and a statement that opens a file
/// which `guard` rejects fails.
pub(crate) fn open(file: &File, guard: &FileGuard, stop: &Stop) -> Result<Connection, Failure> {
    if let Some(path) = &file.path {
        guard.check_database(Path::new(path), !file.read_only)?;
    }
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
    // Again, since a link may have been changed in between.
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

/// Denies statements that name a file which is refused; `vacuum into` attaches its file, too. A name
/// that is a parameter is not known yet: [`check_attached`] sees it.
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

/// Returns the path of a `file:` URI that is given without its scheme. Removes authority and
/// parameters, and decodes escapes.
fn uri_path(rest: &str) -> PathBuf {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("", |at| &rest[at..]),
        None => rest,
    };
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let Some((first, after)) = left.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                left = &after[2..];
            }
            None => {
                bytes.push(*first);
                left = after;
            }
        }
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// Refuses databases that are open by now and may not be: by their files, whatever led to them.
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

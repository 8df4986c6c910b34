//! A control plane with its worker, as `run` and `dev` use it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use noetl_control::{Control, OpenError, Options, SubmitError};
use noetl_model::MachineId;
use noetl_store::SystemClock;
use noetl_store_sqlite::{self as sqlite, SqliteStore};
use noetl_tools::Registry;
use noetl_worker::Worker;
use tokio::task::JoinHandle;

use crate::failure::{Failure, Kind};
use crate::signals;

/// A control plane with its worker.
pub(crate) struct Runtime {
    pub(crate) control: Arc<Control>,
    store: Arc<SqliteStore>,
    worker: JoinHandle<()>,
}

/// What `run` and `dev` differ in.
pub(crate) struct Setup {
    /// Where the log is kept; in memory when `None`.
    pub(crate) database: Option<PathBuf>,
    /// How many steps run at a time.
    pub(crate) slots: usize,
    /// Whether unfinished executions of an earlier process go on.
    pub(crate) resume: bool,
    /// How long running steps may take to end when the process is told to stop.
    pub(crate) grace: Duration,
}

impl Runtime {
    pub(crate) async fn open(setup: Setup) -> Result<Self, Failure> {
        signals::survive_file_size_limit();
        let options = match setup.database {
            Some(path) => sqlite::Options::file(path),
            None => sqlite::Options::memory(),
        };
        let options = sqlite::Options { synchronous: synchronous()?, ..options };
        let store = SqliteStore::open(options).map_err(|error| unopened(&error))?;
        let store = Arc::new(store);
        let options = Options {
            slots: setup.slots,
            machine: machine()?,
            env: Arc::new(template_environment()),
            resume: setup.resume,
            ..Options::default()
        };
        let control = Control::open(options, store.clone(), Arc::new(SystemClock)).await;
        let control = Arc::new(control.map_err(|error| not_started(&error))?);
        let worker = Worker::new(control.local.clone(), Registry::standard(tools()));
        let worker = tokio::spawn(worker.run(setup.grace));
        Ok(Self { control, store, worker })
    }

    /// Stops taking commands, lets running ones end, and closes the database.
    pub(crate) async fn close(self) {
        self.control.drain();
        // A worker that panicked has nothing left to report.
        let _ = self.worker.await;
        self.control.close().await;
        drop(self.control);
        // The last holder closes the file; a request that still reads it does so when it ends.
        if let Some(store) = Arc::into_inner(self.store) {
            store.close().await;
        }
    }
}

fn unopened(error: &sqlite::OpenError) -> Failure {
    let failure = Failure::from_error(Kind::Config, error);
    match error {
        sqlite::OpenError::InUse { .. } => {
            failure.hint("stop the other process, or choose another file")
        }
        sqlite::OpenError::NotADatabase { .. } | sqlite::OpenError::NotOurs { .. } => {
            failure.hint("name a file that noetl made, or one that does not exist yet")
        }
        sqlite::OpenError::Newer { .. } => failure.hint("use the newer noetl for this file"),
        sqlite::OpenError::Corrupt { .. } => {
            failure.hint("restore the file from a backup; it was not changed")
        }
        sqlite::OpenError::Io { .. } | sqlite::OpenError::Database { .. } => failure,
    }
}

fn not_started(error: &OpenError) -> Failure {
    let kind = match error {
        OpenError::Store(_) | OpenError::Resume(SubmitError::Store(_)) => Kind::Config,
        OpenError::Resume(_) => Kind::Internal,
    };
    Failure::from_error(kind, error)
}

fn synchronous() -> Result<sqlite::Synchronous, Failure> {
    match setting("NOETL_SQLITE_SYNCHRONOUS").as_deref() {
        None | Some("full") => Ok(sqlite::Synchronous::Full),
        Some("normal") => Ok(sqlite::Synchronous::Normal),
        Some(other) => {
            let message = format!("NOETL_SQLITE_SYNCHRONOUS is 'full' or 'normal', not '{other}'");
            Err(Failure::new(Kind::Config, message))
        }
    }
}

fn machine() -> Result<MachineId, Failure> {
    let text = setting("NOETL_SERVER_MACHINE_ID").unwrap_or_else(|| "0".to_owned());
    text.parse().ok().and_then(MachineId::new).ok_or_else(|| {
        let most = MachineId::MAX;
        let message = format!("NOETL_SERVER_MACHINE_ID is a number from 0 to {most}, not '{text}'");
        Failure::new(Kind::Config, message)
    })
}

/// What templates see as `env`: the variables named in `NOETL_TEMPLATE_ENV`, and no others.
fn template_environment() -> BTreeMap<String, String> {
    let names = setting("NOETL_TEMPLATE_ENV").unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.filter_map(|name| setting(name).map(|value| (name.to_owned(), value))).collect()
}

fn tools() -> noetl_tools::Options {
    let defaults = noetl_tools::Options::default();
    match setting("NOETL_PYTHON") {
        Some(python) => noetl_tools::Options { python: PathBuf::from(python), ..defaults },
        None => defaults,
    }
}

/// One variable of the environment; an empty one counts as unset.
#[expect(clippy::disallowed_methods, reason = "the one place that reads settings")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

//! Databases that run in this process: their location, and how their work is stopped.
//!
//! The work runs on one of the runtime's blocking threads. A timeout, a cancellation, and a dropped
//! call raise a flag that the database polls. The call ends only once its thread has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noetl_model::{Failure, FailureKind, Map, Value};
use tokio::task::JoinHandle;

use super::{Dialect, Script, StatementResults};
use crate::ToolCall;
use crate::config::{self, expiry, type_name, wrong};
use crate::options::OutputLimits;

/// Location of a database, and its access mode.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFile {
    /// Path of the file. `None` for a new database in memory.
    pub(crate) path: Option<String>,
    pub(crate) read_only: bool,
}

impl DatabaseFile {
    pub(crate) fn read(settings: &Map) -> Result<Self, Failure> {
        let path = match config::first(settings, &["db_path", "database", "path"]) {
            None => None,
            Some((_, Value::String(path))) if path == ":memory:" || path.is_empty() => None,
            Some((key, Value::String(path))) if path.contains('\0') => {
                return Err(wrong(format!("`{key}` holds a NUL character")));
            }
            Some((_, Value::String(path))) => Some(path.clone()),
            Some((key, other)) => {
                return Err(wrong(format!("`{key}` must be a path, not {}", type_name(other))));
            }
        };
        let read_only = match settings.get("read_only") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(read_only)) => *read_only,
            Some(other) => {
                let actual = type_name(other);
                return Err(wrong(format!("`read_only` must be true or false, not {actual}")));
            }
        };
        Ok(Self { path, read_only })
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.path.is_none()
    }
}

/// Runs a step's statements with `execute`, within the timeout of the call.
pub(crate) async fn run(
    call: ToolCall,
    kind: &'static str,
    dialect: Dialect,
    limits: &OutputLimits,
    execute: impl FnOnce(&Script<'_>, &StopFlag, StatementResults) -> Result<Value, Failure>
    + Send
    + 'static,
) -> Result<Value, Failure> {
    let limit = call.time_limit()?;
    // Also parsed here, so that an invalid script uses no thread.
    Script::read(&call, kind, dialect)?;
    let stop = StopFlag::default();
    // Raises the flag when this call is dropped.
    let _guard = stop.guard();
    let answer = StatementResults::new(limits);
    let work = {
        let (call, stop) = (call.clone(), stop.clone());
        tokio::task::spawn_blocking(move || {
            let script = Script::read(&call, kind, dialect)?;
            execute(&script, &stop, answer)
        })
    };
    stop.supervise(work, &call, limit).await
}

/// Stop flag for the working thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that raises the flag when it is dropped.
    pub(crate) fn guard(&self) -> StopGuard {
        StopGuard(self.clone())
    }

    /// Waits for the work. On timeout or cancellation, raises the flag and waits until the work has
    /// stopped.
    pub(crate) async fn supervise<T>(
        &self,
        mut work: JoinHandle<Result<T, Failure>>,
        call: &ToolCall,
        limit: Option<Duration>,
    ) -> Result<T, Failure> {
        let failure = tokio::select! {
            done = &mut work => {
                return done.unwrap_or_else(|error| {
                    let message = format!("the database's thread ended early: {error}");
                    Err(Failure::new(FailureKind::Unknown, message))
                });
            }
            () = call.cancel.cancelled() => call.cancelled(),
            () = expiry(limit) => call.timed_out(limit.unwrap_or_default()),
        };
        self.raise();
        let _ = work.await;
        Err(failure)
    }
}

#[derive(Debug)]
pub(crate) struct StopGuard(StopFlag);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.raise();
    }
}

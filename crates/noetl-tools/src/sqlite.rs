//! Runs SQL on an SQLite file, or in memory.
//!
//! Each call opens the database for itself and closes it at its end; without a file the database
//! starts empty and is gone afterwards. The work is done on one of the runtime's blocking threads.
//! Timeout, cancel and a dropped call stop the running statement within a few thousand of its
//! operations, and an unfinished transaction is rolled back. A database that another process
//! writes to is waited for.

mod execute;
mod file;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Value};

use crate::config::expiry;
use crate::sql::{Answer, Dialect, Script};
use crate::{Call, Options, Tool};

pub(crate) use execute::{bind, cells, failed};
pub(crate) use file::{Location, Stop, open, patiently};

/// The `sqlite` tool.
#[derive(Debug, Clone)]
pub struct Sqlite {
    options: Arc<Options>,
}

impl Sqlite {
    /// An SQLite tool with these settings.
    pub fn new(options: Arc<Options>) -> Self {
        Self { options }
    }
}

#[async_trait]
impl Tool for Sqlite {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn run(&self, call: Call) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let location = Location::read(&call.config)?;
        // Read here too, so that a mistake costs no thread.
        Script::read(&call, "sqlite", Dialect::Sqlite)?;
        let stop = Stop::default();
        // Raised when this call is dropped, too.
        let _guard = stop.guard();
        let answer = Answer::new(&self.options.limits);
        let work = {
            let (call, stop) = (call.clone(), stop.clone());
            tokio::task::spawn_blocking(move || {
                let script = Script::read(&call, "sqlite", Dialect::Sqlite)?;
                execute::run(&location, &script, &stop, answer)
            })
        };
        stop.supervise(work, &call, expiry(limit), limit).await
    }
}

impl Stop {
    /// Waits for the work, or stops it and waits then.
    pub(crate) async fn supervise<T>(
        &self,
        mut work: tokio::task::JoinHandle<Result<T, Failure>>,
        call: &Call,
        expiry: impl Future<Output = ()>,
        limit: Option<std::time::Duration>,
    ) -> Result<T, Failure> {
        let failure = tokio::select! {
            done = &mut work => {
                return done.unwrap_or_else(|error| {
                    let message = format!("the database's thread ended early: {error}");
                    Err(Failure::new(FailureKind::Unknown, message))
                });
            }
            () = call.cancel.cancelled() => call.cancelled(),
            () = expiry => call.timed_out(limit.unwrap_or_default()),
        };
        self.raise();
        let _ = work.await;
        Err(failure)
    }
}

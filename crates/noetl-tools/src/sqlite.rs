//! Tool `sqlite`: runs SQL on a SQLite file, or in memory.
//!
//! Each call opens the database and closes it at its end. Without a file, the database starts empty
//! and is discarded afterwards. From isolation level 1 on, the call runs in the step's sandbox, as
//! the step's user; otherwise it runs on one of the runtime's blocking threads. A timeout, a
//! cancellation, and a dropped call stop the running statement within 10,000 virtual machine
//! operations, and an unfinished transaction is rolled back. If another process has the database
//! locked, the call waits.

mod execute;
mod file;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, Value};

use crate::host_protocol::{FileTask, Statements};
use crate::own::FileGuard;
use crate::sandbox::{Sandbox, ToolRun};
use crate::sql::{self, DatabaseFile, Dialect, Script, StopFlag};
use crate::{Options, OutputLimits, Tool, ToolCall};

pub(crate) use execute::{bind, cells, failed};
pub(crate) use file::{open, patiently};

#[derive(Debug, Clone)]
pub struct Sqlite {
    sandbox: Arc<Sandbox>,
}

impl Sqlite {
    pub fn new(options: Arc<Options>) -> Self {
        Self::with_sandbox(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn with_sandbox(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox }
    }
}

/// Runs a call in this process.
pub(crate) async fn run(
    call: ToolCall,
    limits: &OutputLimits,
    guard: FileGuard,
) -> Result<Value, Failure> {
    let file = DatabaseFile::read(&call.config)?;
    let execute = move |script: &Script<'_>, stop: &StopFlag, answer| {
        execute::run(&file, &guard, script, stop, answer)
    };
    sql::run(call, "sqlite", Dialect::Sqlite, limits, execute).await
}

#[async_trait]
impl Tool for Sqlite {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limits = &self.sandbox.options().limits;
        let guard = self.sandbox.guard(&call.tenant);
        // A database in memory opens no file itself, but its statements may attach files.
        if !self.sandbox.is_on() {
            self.sandbox.admit(&call.tenant)?;
            return run(call, limits, guard).await;
        }
        let limit = call.time_limit()?;
        DatabaseFile::read(&call.config)?;
        Script::read(&call, "sqlite", Dialect::Sqlite)?;
        let task = FileTask::Sqlite(Statements::new(&call, limits, guard));
        ToolRun::run(&self.sandbox, &call, limit, &task).await
    }
}

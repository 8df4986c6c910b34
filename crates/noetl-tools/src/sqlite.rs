//! Runs SQL on an SQLite file, or in memory.
//!
//! Each call opens the database for itself and closes it at its end; without a file the database
//! starts empty and is gone afterwards. From isolation level 1 on, the call runs in the step's sandbox,
//! as the step's user; else the work is done on one of the runtime's blocking threads.
//! Timeout, cancel and a dropped call stop the running statement within a few thousand of its
//! operations, and an unfinished transaction is rolled back. A database that another process
//! writes to is waited for.

mod execute;
mod file;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, Value};

use crate::own::FileGuard;
use crate::sandbox::{Sandbox, ToolRun};
use crate::sql::{self, Dialect, File, Script, Stop};
use crate::step_host::{Statements, Task};
use crate::{Call, Limits, Options, Tool};

pub(crate) use execute::{bind, cells, failed};
pub(crate) use file::{open, patiently};

/// The `sqlite` tool.
#[derive(Debug, Clone)]
pub struct Sqlite {
    sandbox: Arc<Sandbox>,
}

impl Sqlite {
    /// An SQLite tool with these settings.
    pub fn new(options: Arc<Options>) -> Self {
        Self::within(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn within(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox }
    }
}

/// Runs a call in this process.
pub(crate) async fn run(call: Call, limits: &Limits, guard: FileGuard) -> Result<Value, Failure> {
    let file = File::read(&call.config)?;
    let execute = move |script: &Script<'_>, stop: &Stop, answer| {
        execute::run(&file, &guard, script, stop, answer)
    };
    sql::run(call, "sqlite", Dialect::Sqlite, limits, execute).await
}

#[async_trait]
impl Tool for Sqlite {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn run(&self, call: Call) -> Result<Value, Failure> {
        let limits = &self.sandbox.options().limits;
        let guard = self.sandbox.guard(&call.tenant);
        // One in memory opens no file by itself, but its statements may attach some.
        if !self.sandbox.is_on() {
            self.sandbox.admit(&call.tenant)?;
            return run(call, limits, guard).await;
        }
        let limit = call.time_limit()?;
        File::read(&call.config)?;
        Script::read(&call, "sqlite", Dialect::Sqlite)?;
        let task = Task::Sqlite(Statements::new(&call, limits, guard));
        ToolRun::run(&self.sandbox, &call, limit, &task).await
    }
}

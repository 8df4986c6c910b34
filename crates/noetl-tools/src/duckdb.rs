//! Tool `duckdb`: runs SQL on a DuckDB file, or in memory.
//!
//! The database is included only in programs built with the feature `duckdb`; otherwise every call
//! fails with instructions for such a build. Each call opens the database and closes it at its end.
//! A timeout, a cancellation, and a dropped call interrupt the running statement, and an unfinished
//! transaction is rolled back.

#[cfg(feature = "duckdb")]
mod execute;
#[cfg(feature = "duckdb")]
mod file;
#[cfg(feature = "duckdb")]
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, Value};

use crate::own::FileGuard;
use crate::sandbox::Sandbox;
use crate::{Options, OutputLimits, Tool, ToolCall};

#[cfg(feature = "duckdb")]
pub(crate) use {
    execute::{bind, failed},
    file::{DuckdbLocation, open},
    values::{cells, stored_cell},
};

#[derive(Debug, Clone)]
pub struct DuckDb {
    #[cfg_attr(not(feature = "duckdb"), expect(dead_code, reason = "nothing runs without it"))]
    sandbox: Arc<Sandbox>,
}

impl DuckDb {
    pub fn new(options: Arc<Options>) -> Self {
        Self::with_sandbox(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn with_sandbox(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox }
    }
}

/// Creates the failure of a program that was built without DuckDB.
#[cfg(not(feature = "duckdb"))]
pub(crate) fn absent() -> Failure {
    Failure::new(
        noetl_model::FailureKind::ToolMissing,
        "this program was built without DuckDB; build it with `cargo build --release -p noetl-cli \
         --features duckdb-bundled`, or use the sqlite tool",
    )
}

#[cfg(not(feature = "duckdb"))]
#[async_trait]
impl Tool for DuckDb {
    fn kind(&self) -> &'static str {
        "duckdb"
    }

    async fn run(&self, _call: ToolCall) -> Result<Value, Failure> {
        Err(absent())
    }
}

/// Runs a call in this process.
#[cfg(not(feature = "duckdb"))]
pub(crate) async fn run(_: ToolCall, _: &OutputLimits, _: FileGuard) -> Result<Value, Failure> {
    Err(absent())
}

/// Runs a call in this process.
#[cfg(feature = "duckdb")]
pub(crate) async fn run(
    call: ToolCall,
    limits: &OutputLimits,
    guard: FileGuard,
) -> Result<Value, Failure> {
    use crate::sql::{self, Dialect, Script, StopFlag};

    let location = DuckdbLocation::read(&call.config)?;
    let execute = move |script: &Script<'_>, stop: &StopFlag, answer| {
        execute::run(&location, &guard, script, stop, answer)
    };
    sql::run(call, "duckdb", Dialect::DuckDb, limits, execute).await
}

#[cfg(feature = "duckdb")]
#[async_trait]
impl Tool for DuckDb {
    fn kind(&self) -> &'static str {
        "duckdb"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        use crate::host_protocol::{FileTask, Statements};
        use crate::sandbox::ToolRun;

        let limits = &self.sandbox.options().limits;
        let guard = self.sandbox.guard(&call.tenant);
        if !self.sandbox.is_on() {
            self.sandbox.admit(&call.tenant)?;
            return run(call, limits, guard).await;
        }
        let limit = call.time_limit()?;
        let task = FileTask::DuckDb(Statements::new(&call, limits, guard));
        ToolRun::run(&self.sandbox, &call, limit, &task).await
    }
}

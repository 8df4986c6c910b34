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
use noetl_model::{Failure, Value};

use crate::sql::{self, Dialect, File, Script, Stop};
use crate::{Call, Options, Tool};

pub(crate) use execute::{bind, cells, failed};
pub(crate) use file::{open, patiently};

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
        let file = File::read(&call.config)?;
        let limits = &self.options.limits;
        let execute = move |script: &Script<'_>, stop: &Stop, answer| {
            execute::run(&file, script, stop, answer)
        };
        sql::run(call, "sqlite", Dialect::Sqlite, limits, execute).await
    }
}

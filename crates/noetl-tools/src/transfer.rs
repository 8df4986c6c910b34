//! Tool `transfer`: copies rows from a database or a JSON endpoint to another database.
//!
//! Rows are transferred in small batches. The source is read only as fast as the target accepts
//! rows, so memory use doesn't depend on their number. The target is written in one transaction,
//! which is committed only after the source has reported its end, so a failure on either side, a
//! timeout, or a cancellation leaves the target unchanged. From isolation level 1 on, a side that
//! is a file is accessed in the step's sandbox, and its rows pass through a pipe.

mod flow;
mod hosted;
mod postgres;
mod request;
mod sqlite;

#[cfg(feature = "duckdb")]
mod duckdb;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, Map, Value};
use serde_json::json;

use crate::config::{self, expiry, type_name, wrong};
use crate::own::FileGuard;
use crate::postgres::Stopper;
use crate::sandbox::Sandbox;
use crate::sql::StopFlag;
use crate::{Http, Options, Postgres, Tool, ToolCall};

use flow::{RowReceiver, RowSender, WritePlan};

pub(crate) use hosted::{read_side, write_side};

/// Maximum time for both sides to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

const SOURCES: &str = "postgres, sqlite, duckdb or http";
const TARGETS: &str = "postgres, sqlite or duckdb";

#[derive(Debug, Clone)]
pub struct Transfer {
    http: Http,
    postgres: Postgres,
    sandbox: Arc<Sandbox>,
}

impl Transfer {
    /// Creates a transfer tool that uses these tools for endpoints and servers.
    pub fn new(http: Http, postgres: Postgres, options: Arc<Options>) -> Self {
        Self::with_clients(http, postgres, Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn with_clients(http: Http, postgres: Postgres, sandbox: Arc<Sandbox>) -> Self {
        Self { http, postgres, sandbox }
    }

    async fn read(&self, side: &Side<'_>, flow: RowSender) -> Result<(), Failure> {
        match side.kind {
            "postgres" => postgres::read(self.postgres.pool(), side, flow).await,
            "http" => request::read(&self.http, side, flow).await,
            "sqlite" | "duckdb" if self.sandbox.is_on() => {
                hosted::read(&self.sandbox, side, flow).await
            }
            "sqlite" | "duckdb" => {
                self.sandbox.admit(&side.call.tenant)?;
                read_file(side, flow).await
            }
            other => Err(wrong(format!("`kind` must be {SOURCES}, not '{other}'"))),
        }
    }

    async fn write(
        &self,
        side: &Side<'_>,
        plan: &WritePlan,
        receiver: RowReceiver,
    ) -> Result<u64, Failure> {
        match side.kind {
            "postgres" => postgres::write(self.postgres.pool(), side, plan, receiver).await,
            "sqlite" | "duckdb" if self.sandbox.is_on() => {
                hosted::write(&self.sandbox, side, receiver).await
            }
            "sqlite" | "duckdb" => {
                self.sandbox.admit(&side.call.tenant)?;
                write_file(side, plan, receiver).await
            }
            other => Err(wrong(format!("`kind` must be {TARGETS}, not '{other}'"))),
        }
    }
}

/// Reads from a database file, in this process.
async fn read_file(side: &Side<'_>, flow: RowSender) -> Result<(), Failure> {
    match side.kind {
        "sqlite" => sqlite::read(side, flow).await,
        #[cfg(feature = "duckdb")]
        _ => duckdb::read(side, flow).await,
        #[cfg(not(feature = "duckdb"))]
        _ => Err(crate::duckdb::absent()),
    }
}

/// Writes to a database file, in this process.
async fn write_file(
    side: &Side<'_>,
    plan: &WritePlan,
    receiver: RowReceiver,
) -> Result<u64, Failure> {
    match side.kind {
        "sqlite" => sqlite::write(side, plan, receiver).await,
        #[cfg(feature = "duckdb")]
        _ => duckdb::write(side, plan, receiver).await,
        #[cfg(not(feature = "duckdb"))]
        _ => Err(crate::duckdb::absent()),
    }
}

/// Source or target of a transfer.
struct Side<'a> {
    kind: &'a str,
    settings: &'a Map,
    call: &'a ToolCall,
    stopper: &'a Stopper,
    stop: &'a StopFlag,
    /// Checks for the files that `settings` names.
    guard: FileGuard,
}

#[async_trait]
impl Tool for Transfer {
    fn kind(&self) -> &'static str {
        "transfer"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let (stopper, stop) = (Stopper::default(), StopFlag::default());
        let _guard = stop.guard();
        let guard = self.sandbox.guard(&call.tenant);
        let side = |name: &str| side(name, &call, &stopper, &stop, &guard);
        let (source, target) = (side("source")?, side("target")?);
        let plan =
            WritePlan::read(target.settings).map_err(|failure| with_side("target", failure))?;
        let (flow, receiver) = flow::channel();
        let columns = flow.columns();
        let mut work = Box::pin(async {
            let reading = self.read(&source, flow);
            let writing = self.write(&target, &plan, receiver);
            tokio::join!(reading, writing)
        });
        let failure = tokio::select! {
            (read, written) = &mut work => {
                drop(work);
                // If the target only lost its source, the source's failure is the cause.
                read.map_err(|failure| with_side("source", failure)).or_else(flow::unless_gone)?;
                let rows = written.map_err(|failure| with_side("target", failure))?;
                return Ok(json!({
                    "rows_transferred": rows,
                    "columns": columns.get().cloned().unwrap_or_default(),
                    "source": source.kind,
                    "target": target.kind,
                    "mode": plan.mode(),
                }));
            }
            () = call.cancel.cancelled() => call.cancelled(),
            () = expiry(limit) => call.timed_out(limit.unwrap_or_default()),
        };
        stop.raise();
        let stopping = async {
            stopper.cancel().await;
            let _ = (&mut work).await;
        };
        let _ = tokio::time::timeout(STOP_PATIENCE, stopping).await;
        Err(failure)
    }
}

fn side<'a>(
    name: &str,
    call: &'a ToolCall,
    stopper: &'a Stopper,
    stop: &'a StopFlag,
    guard: &FileGuard,
) -> Result<Side<'a>, Failure> {
    let settings = match call.config.get(name) {
        Some(Value::Object(settings)) => settings,
        Some(other) => {
            return Err(wrong(format!("`{name}` must be a map, not {}", type_name(other))));
        }
        None => return Err(wrong(format!("a transfer needs a `{name}`"))),
    };
    let kind = match config::first(settings, &["kind", "type"]) {
        Some((_, Value::String(kind))) => kind.as_str(),
        _ => return Err(wrong(format!("`{name}` needs a `kind`: {SOURCES}"))),
    };
    Ok(Side { kind, settings, call, stopper, stop, guard: guard.clone() })
}

fn with_side(side: &str, failure: Failure) -> Failure {
    Failure { message: format!("`{side}`: {}", failure.message), ..failure }
}

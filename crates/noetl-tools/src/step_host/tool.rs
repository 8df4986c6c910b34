//! A file tool in a sandbox: reads the task from standard input, and writes the outcome to standard
//! output.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use noetl_model::{CommandId, ExecutionId, Failure, FailureKind, Map, Tenant, Value};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::own::FileGuard;
use crate::sandbox::{ToolFrame, framed};
use crate::{LogSink, OutputLimits, ToolCall, duckdb, python, sqlite, transfer};

/// Maximum size of a message from the worker, in bytes. The worker enforces lower limits itself.
const MESSAGE_MAX: usize = 1 << 30;

/// Task of a file tool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileTask {
    /// Reads a text file: the program of a `python` step.
    Read { path: String, bytes_max: usize, guard: FileGuard },
    /// Runs statements on a SQLite database.
    Sqlite(Statements),
    /// Runs statements on a DuckDB database.
    DuckDb(Statements),
    /// Reads the rows of one side of a transfer.
    TransferRead(TransferSide),
    /// Writes the rows that follow.
    TransferWrite(TransferSide),
}

/// Statements with their parameters, as in a step's settings.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statements {
    pub(crate) step: String,
    pub(crate) config: Map,
    pub(crate) input: Map,
    pub(crate) rows_max: usize,
    pub(crate) bytes_max: usize,
    pub(crate) guard: FileGuard,
}

impl Statements {
    /// Creates the task from a call.
    pub(crate) fn new(call: &ToolCall, limits: &OutputLimits, guard: FileGuard) -> Self {
        Self {
            step: call.step.to_string(),
            config: call.config.clone(),
            input: call.input.clone(),
            rows_max: limits.sql_rows,
            bytes_max: limits.sql_result,
            guard,
        }
    }
}

/// Source or target of a `transfer` that is a database file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TransferSide {
    pub(crate) kind: String,
    pub(crate) settings: Map,
    pub(crate) guard: FileGuard,
}

/// Runs the task from standard input.
pub(super) fn main() -> ExitCode {
    let outcome = read_frame::<FileTask>().and_then(|task| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let outcome = runtime.block_on(run(task));
        // A thread may still wait for standard input, and has no work left.
        runtime.shutdown_background();
        write_frame(&ToolFrame::Done(outcome))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The worker reads standard error.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(task: FileTask) -> Result<Value, Failure> {
    let cancel = CancellationToken::new();
    if let Ok(mut terminate) = signal(SignalKind::terminate()) {
        let cancel = cancel.clone();
        tokio::spawn(async move {
            terminate.recv().await;
            cancel.cancel();
        });
    }
    match task {
        FileTask::Read { path, bytes_max, guard } => {
            python::read_file(&path, bytes_max, &guard).await.map(Value::String)
        }
        FileTask::Sqlite(work) => {
            let (call, limits, guard) = parts(work, cancel);
            sqlite::run(call, &limits, guard).await
        }
        FileTask::DuckDb(work) => {
            let (call, limits, guard) = parts(work, cancel);
            duckdb::run(call, &limits, guard).await
        }
        FileTask::TransferRead(side) => {
            let call = call_for("transfer", Map::new(), Map::new(), cancel);
            transfer::read_side(side, call).await.map(|()| Value::Null)
        }
        FileTask::TransferWrite(side) => {
            let call = call_for("transfer", Map::new(), Map::new(), cancel);
            transfer::write_side(side, call).await.map(Value::from)
        }
    }
}

fn parts(work: Statements, cancel: CancellationToken) -> (ToolCall, OutputLimits, FileGuard) {
    let Statements { step, config, input, rows_max, bytes_max, guard } = work;
    let limits =
        OutputLimits { sql_rows: rows_max, sql_result: bytes_max, ..OutputLimits::default() };
    (call_for(&step, config, input, cancel), limits, guard)
}

fn call_for(step: &str, config: Map, input: Map, cancel: CancellationToken) -> ToolCall {
    ToolCall {
        execution: ExecutionId::new(0),
        command: CommandId::new(0),
        tenant: Tenant::default(),
        step: Arc::from(step),
        attempt: 1,
        config,
        input,
        timeout: None,
        cancel,
        logs: LogSink::default(),
        context: Map::new(),
        artifacts: None,
        credentials: None,
        trace: None,
    }
}

/// Reads a message of the worker. Blocks.
pub(crate) fn read_frame<T: serde::de::DeserializeOwned>() -> io::Result<T> {
    let mut stdin = io::stdin().lock();
    let mut head = [0; 4];
    stdin.read_exact(&mut head)?;
    let size = u32::from_be_bytes(head) as usize;
    if size > MESSAGE_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; size];
    stdin.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Writes a message to the worker. Blocks.
pub(crate) fn write_frame(frame: &ToolFrame) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(&framed(frame)?)?;
    stdout.flush()
}

/// Creates the failure of a tool whose worker is gone.
pub(crate) fn worker_gone(error: &io::Error) -> Failure {
    Failure::new(FailureKind::Unknown, format!("the worker is gone: {error}"))
}

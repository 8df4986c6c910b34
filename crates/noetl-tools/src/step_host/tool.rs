//! A file tool in a sandbox: reads the task from standard input, and writes the outcome to standard
//! output.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use noetl_model::{CommandId, ExecutionId, Failure, Map, Tenant, Value};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::host_protocol::{FileTask, Statements, ToolFrame, read_frame, write_frame};
use crate::own::FileGuard;
use crate::{LogSink, OutputLimits, ToolCall, duckdb, python, sqlite, transfer};

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

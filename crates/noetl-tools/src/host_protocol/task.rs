//! Protocol between a worker and a file tool that runs in a step host, over standard input and
//! output: a task, the frames of its rows, and its outcome.

use std::io::{self, Read as _, Write as _};

use noetl_model::{Failure, FailureKind, Map, Value};
use serde::{Deserialize, Serialize};

use crate::options::OutputLimits;
use crate::own::FileGuard;
use crate::sql::SqlCell;
use crate::tool::ToolCall;

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

/// A message between a file tool and its worker, after the task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToolFrame {
    /// Columns of the rows that follow.
    Columns(Vec<String>),
    Rows(Vec<Vec<SqlCell>>),
    /// No more rows follow.
    End,
    /// Outcome of the task. The last message.
    Done(Result<Value, Failure>),
}

/// Encodes a message with its length.
pub(crate) fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let size = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    Ok(frame)
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

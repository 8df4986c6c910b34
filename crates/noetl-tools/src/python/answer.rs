//! Conversion of a step's outcome to its result or failure.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use noetl_model::{Failure, FailureKind, Map, Value};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::capture::Capture;
use crate::process;
use crate::{Stream, ToolCall};

use super::task::StopReason;
use super::zygote::{ForkExit, lacking};

/// Maximum bytes of each stream in a failure's details.
const DETAILS_BYTES: usize = 16 * 1024;

/// Maximum size of a failure that a step reports, in bytes. Its traceback is truncated well below
/// this.
const REPORT_BYTES_MAX: usize = 256 * 1024;

/// Outcome that the step reports.
pub(super) enum PythonOutcome {
    /// Result of the step, as JSON.
    Result(Vec<u8>),
    /// The code set no result.
    Nothing,
    /// Exception that the code raised, as JSON.
    Failed(Vec<u8>),
    /// Invalid message, which is possible only if the code wrote to the socket itself.
    Garbled,
}

impl PythonOutcome {
    /// Sends a framed request and reads the outcome. Returns `None` if the step ended without one.
    pub(super) async fn ask(
        mut channel: UnixStream,
        request: &[u8],
        result_max: usize,
    ) -> Option<Self> {
        channel.write_all(request).await.ok()?;
        let tag = channel.read_u8().await.ok()?;
        let size = usize::try_from(channel.read_u32().await.ok()?).ok()?;
        if size > result_max.max(REPORT_BYTES_MAX) {
            return Some(Self::Garbled);
        }
        let mut body = vec![0; size];
        channel.read_exact(&mut body).await.ok()?;
        Some(match tag {
            b'R' => Self::Result(body),
            b'N' => Self::Nothing,
            b'F' => Self::Failed(body),
            _ => Self::Garbled,
        })
    }
}

/// Converts the end of a step to its result or failure.
pub(super) fn conclude(
    stop: StopReason,
    answer: Option<PythonOutcome>,
    call: &ToolCall,
    stdout: &Capture,
    stderr: &Capture,
) -> Result<Value, Failure> {
    let failure = match stop {
        StopReason::TimedOut(limit) => call.timed_out(limit),
        StopReason::Cancelled => call.cancelled(),
        StopReason::Ended(ForkExit::NotForked(error)) => return Err(lacking(&error)),
        StopReason::Ended(ForkExit::Lost) => lost(),
        StopReason::Ended(ForkExit::Exited(status)) => match answer {
            Some(PythonOutcome::Result(body)) => match serde_json::from_slice(&body) {
                Ok(result) => return Ok(result),
                Err(error) => Failure::new(
                    FailureKind::Schema,
                    format!("the result is not JSON the worker can read: {error}"),
                ),
            },
            Some(PythonOutcome::Nothing) => {
                return Ok(json!({"stdout": stdout.text(), "stderr": stderr.text()}));
            }
            Some(PythonOutcome::Failed(body)) => raised(&body),
            Some(PythonOutcome::Garbled) => garbled(),
            None => died(status),
        },
    };
    Err(with_streams(failure, stdout, stderr))
}

/// Exception of the code, with the keys of `Step.failure` in `step.py`.
#[derive(Deserialize)]
struct RaisedException {
    kind: FailureKind,
    message: String,
    #[serde(flatten)]
    details: Map,
}

fn raised(body: &[u8]) -> Failure {
    match serde_json::from_slice::<RaisedException>(body) {
        Ok(raised) => {
            Failure::new(raised.kind, raised.message).with_details(Value::Object(raised.details))
        }
        Err(_) => garbled(),
    }
}

/// Creates the failure of a step whose process ended before it reported an outcome.
fn died(status: ExitStatus) -> Failure {
    let end = process::describe(status);
    let exit_code = process::exit_code(status);
    if status.signal() == Some(Signal::XCPU.as_raw()) {
        let message = "the step used all of its `limits.cpu_seconds`";
        let mut failure = Failure::new(FailureKind::Timeout, message);
        failure.retryable = false;
        return failure.with_details(json!({"exit_code": exit_code, "signal": status.signal()}));
    }
    let mut details = json!({"exit_code": exit_code});
    if let Some(signal) = status.signal() {
        details["signal"] = signal.into();
    }
    let message = format!("the step's process {end} before it gave a result");
    Failure::new(FailureKind::ExitCode, message).with_details(details)
}

fn lost() -> Failure {
    let message = "the Python template ended while the step was running; the next step \
                   starts a new one";
    let mut failure = Failure::new(FailureKind::Unknown, message);
    failure.retryable = true;
    failure
}

fn garbled() -> Failure {
    let message = "the step's process sent something other than an answer";
    Failure::new(FailureKind::Unknown, message)
}

/// Adds the end of both output streams to a failure's details.
fn with_streams(mut failure: Failure, stdout: &Capture, stderr: &Capture) -> Failure {
    let mut details = match failure.details.take().map(|details| *details) {
        Some(Value::Object(details)) => details,
        _ => Map::new(),
    };
    for (stream, capture) in [(Stream::Stdout, stdout), (Stream::Stderr, stderr)] {
        details.insert(stream.as_str().to_owned(), capture.end(DETAILS_BYTES).into());
    }
    failure.with_details(Value::Object(details))
}

//! Runs one step in a forked process: request, output, outcome, timeout, and cancellation.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::FusedFuture;
use noetl_model::{Failure, Map, Value};
use serde::Serialize;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::capture::Capture;
use crate::config::{expiry, wrong};
use crate::workdir::WorkDir;
use crate::{Options, Stream, ToolCall};

use super::answer::{PythonOutcome, conclude};
use super::settings::{self, PythonSettings};
use super::zygote::{ForkExit, ForkedStep, Zygote, lacking};

/// Time to read output after the step's end. The process group is dead by then, so only a process
/// that left the group can still have a pipe open, and its output is not awaited.
const DRAIN: Duration = Duration::from_millis(200);

/// Maximum time until a killed step is reaped. It takes milliseconds on a healthy machine. A
/// template process that takes longer is stuck and is killed.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a step in a fork of `template`, in its own directory.
pub(super) async fn run(
    template: Arc<Zygote>,
    dir: WorkDir,
    call: &ToolCall,
    settings: &PythonSettings<'_>,
    limit: Option<Duration>,
    options: &Options,
) -> Result<Value, Failure> {
    let limits = &options.limits;
    let id = template.next_id();
    let request = request(call, settings, limits.python_result, dir.path())?;
    let (ours, theirs) = WorkerEnds::open().map_err(|error| lacking(&error))?;
    let WorkerEnds { channel, stdout: out, stderr: err } = ours;
    let forked = template.fork(id, theirs).await;

    let mut stdout = Capture::new(Stream::Stdout, limits.python_output, call.logs.clone());
    let mut stderr = Capture::new(Stream::Stderr, limits.python_output, call.logs.clone());
    let mut answer = None;
    let reading = async {
        let answering = async {
            answer = PythonOutcome::ask(channel, &request, limits.python_result).await;
        };
        tokio::join!(answering, stdout.read_all(out), stderr.read_all(err));
    };
    let stop = supervise(forked, call, limit, reading).await;
    drop(dir);
    stdout.finish();
    stderr.finish();
    conclude(stop, answer, call, &stdout, &stderr)
}

/// Reason that a step is over.
pub(super) enum StopReason {
    Ended(ForkExit),
    TimedOut(Duration),
    Cancelled,
}

/// Waits until the step ends, is cancelled, or times out. The step is then reaped and its process
/// group empty, unless reaping exceeds [`REAP_TIMEOUT`].
async fn supervise(
    mut forked: ForkedStep,
    call: &ToolCall,
    limit: Option<Duration>,
    reading: impl Future<Output = ()>,
) -> StopReason {
    let mut reading = pin!(reading.fuse());
    let stop = tokio::select! {
        biased;
        end = forked.end() => StopReason::Ended(end),
        () = call.cancel.cancelled() => StopReason::Cancelled,
        () = expiry(limit) => StopReason::TimedOut(limit.unwrap_or_default()),
        // Never completes, because the end of the streams is not the end of the step.
        () = async { (&mut reading).await; std::future::pending().await } => StopReason::Cancelled,
    };
    if !matches!(stop, StopReason::Ended(_)) {
        forked.kill();
        let reaped = tokio::time::timeout(REAP_TIMEOUT, forked.end()).await;
        if reaped.is_err() {
            forked.template().abandon();
        }
    }
    if !reading.is_terminated() {
        let _ = tokio::time::timeout(DRAIN, reading).await;
    }
    stop
}

/// Worker's ends of a step's socket and pipes.
struct WorkerEnds {
    channel: UnixStream,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl WorkerEnds {
    /// Opens the worker's ends, and the step's: its socket, stdout, and stderr.
    fn open() -> io::Result<(Self, [OwnedFd; 3])> {
        let (channel, their_channel) = StdUnixStream::pair()?;
        channel.set_nonblocking(true)?;
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let ours = Self {
            channel: UnixStream::from_std(channel)?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        };
        Ok((ours, [their_channel.into(), their_stdout.into(), their_stderr.into()]))
    }
}

/// Request to the forked process, with the keys of `Step` in `step.py`.
#[derive(Serialize)]
struct ForkCommand<'a> {
    step: &'a str,
    code: &'a str,
    input: &'a Map,
    context: &'a Map,
    libs: &'a Value,
    env: &'a Map,
    limits: &'a settings::ResourceLimits,
    result_max: usize,
    cwd: &'a Path,
}

/// Encodes the request as a frame: four bytes of length, then JSON.
fn request(
    call: &ToolCall,
    settings: &PythonSettings<'_>,
    result_max: usize,
    cwd: &Path,
) -> Result<Vec<u8>, Failure> {
    let request = ForkCommand {
        step: &call.step,
        code: settings.code,
        input: &call.input,
        context: &settings.context,
        libs: &settings.libs,
        env: &settings.env,
        limits: &settings.limits,
        result_max,
        cwd,
    };
    let mut frame = vec![0; 4];
    let size = match serde_json::to_writer(&mut frame, &request) {
        Ok(()) => u32::try_from(frame.len() - 4).ok(),
        Err(_) => None,
    };
    let Some(size) = size else {
        return Err(wrong("the step's code and input are too large to be handed over"));
    };
    frame[..4].copy_from_slice(&size.to_be_bytes());
    Ok(frame)
}

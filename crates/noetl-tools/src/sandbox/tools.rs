//! File tools in a sandbox: the program itself, run as a step, with the task on its standard input.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Failure, FailureKind, Value};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::{HostedStep, Pipes, Program, Sandbox, worker_directory};
use crate::capture::Capture;
use crate::config::expiry;
use crate::host_protocol::{COMMAND, FileTask, OWN_PROGRAM, TOOL, ToolFrame, framed};
use crate::{LogSink, Stream, ToolCall};

/// Maximum bytes of the process's stderr that are captured.
const COMPLAINT_BYTES: usize = 8 * 1024;

/// Bytes that a frame may have beyond the largest result: a failure's details and JSON syntax.
const FRAME_EXTRA: usize = 4 << 20;

/// Reads frames of limited size.
pub(crate) struct FrameReader<R> {
    source: R,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(source: R, bytes_max: usize) -> Self {
        Self { source, bytes_max }
    }

    /// Reads the next frame. The end of the source is an error.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let size = self.source.read_u32().await? as usize;
        if size > self.bytes_max {
            return Err(io::Error::other(format!("a frame of {size} bytes is too large")));
        }
        let mut body = vec![0; size];
        self.source.read_exact(&mut body).await?;
        Ok(serde_json::from_slice(&body)?)
    }
}

/// A file tool that runs in a sandbox. Dropping it before its end kills the tool.
pub(crate) struct ToolRun {
    step: HostedStep,
    stdin: Option<pipe::Sender>,
    frames: FrameReader<pipe::Receiver>,
    stderr: pipe::Receiver,
}

impl ToolRun {
    /// Starts the tool and sends its task.
    pub(crate) async fn start(
        sandbox: &Arc<Sandbox>,
        call: &ToolCall,
        task: &FileTask,
    ) -> Result<Self, Failure> {
        let frame = framed(task).map_err(|error| lost(&error))?;
        let tenant = &call.tenant;
        let host = sandbox.acquire(tenant).await?;
        let dir = host.dir().to_owned();
        let limits = &sandbox.options().limits;
        let bytes_max = limits.sql_result.max(limits.python_script).saturating_mul(2);
        let (stdin, their_stdin) = io::pipe().map_err(|error| lost(&error)).map(|(r, w)| (w, r))?;
        let (pipes, [stdout, stderr]) = Pipes::open().map_err(|error| lost(&error))?;
        let words = [OWN_PROGRAM, COMMAND, TOOL].map(str::to_owned).to_vec();
        let words = sandbox.options().isolation.limited(words);
        let home = dir.display().to_string();
        let env = match sandbox.options().isolation.moves_home() {
            true => vec![("HOME".to_owned(), home.clone()), ("TMPDIR".to_owned(), home)],
            false => Vec::new(),
        };
        let files = || -> io::Result<Vec<OwnedFd>> {
            let (stdin, stdout, stderr) =
                (their_stdin.try_clone()?, stdout.try_clone()?, stderr.try_clone()?);
            Ok(vec![stdin.into(), stdout, stderr])
        };
        // Relative paths start at the worker's current directory, if the step's user may enter it.
        let program = Program { words, env, cwd: worker_directory(&dir) };
        let descriptors = files().map_err(|error| lost(&error))?;
        let mut started =
            HostedStep::start(sandbox, tenant, host, program.clone(), descriptors).await;
        if let Err(error) = &started
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            let host = sandbox.acquire(tenant).await?;
            let program = Program { cwd: host.dir().to_owned(), ..program };
            let descriptors = files().map_err(|error| lost(&error))?;
            started = HostedStep::start(sandbox, tenant, host, program, descriptors).await;
        }
        let step = started.map_err(|error| lost(&error))?;
        drop((their_stdin, stdout, stderr));
        let mut stdin = pipe::Sender::from_owned_fd(stdin.into()).map_err(|error| lost(&error))?;
        // A tool that ended early reports the reason in its outcome.
        let _ = stdin.write_all(&frame).await;
        let frames = FrameReader::new(pipes.stdout, bytes_max.saturating_add(FRAME_EXTRA));
        Ok(Self { step, stdin: Some(stdin), frames, stderr: pipes.stderr })
    }

    /// Runs a task without further input, within the timeout of its call.
    pub(crate) async fn run(
        sandbox: &Arc<Sandbox>,
        call: &ToolCall,
        limit: Option<Duration>,
        task: &FileTask,
    ) -> Result<Value, Failure> {
        let mut run = Self::start(sandbox, call, task).await?;
        run.close();
        let outcome = tokio::select! {
            outcome = run.outcome() => outcome,
            () = call.cancel.cancelled() => Err(call.cancelled()),
            () = expiry(limit) => Err(call.timed_out(limit.unwrap_or_default())),
        };
        run.end().await;
        outcome
    }

    /// Sends a frame. Returns `false` if the tool no longer reads; its outcome contains the reason.
    pub(crate) async fn send(&mut self, frame: &ToolFrame) -> Result<bool, Failure> {
        let bytes = framed(frame).map_err(|error| lost(&error))?;
        match &mut self.stdin {
            Some(stdin) => Ok(stdin.write_all(&bytes).await.is_ok()),
            None => Ok(false),
        }
    }

    /// Closes the tool's standard input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the next frame.
    pub(crate) async fn next(&mut self) -> Result<ToolFrame, Failure> {
        match self.frames.next().await {
            Ok(frame) => Ok(frame),
            Err(error) => Err(self.ended_early(&error).await),
        }
    }

    pub(crate) async fn outcome(&mut self) -> Result<Value, Failure> {
        loop {
            if let ToolFrame::Done(outcome) = self.next().await? {
                return outcome;
            }
        }
    }

    /// Waits for the tool's process to exit. A process that is still running gets SIGTERM, and
    /// SIGKILL after a second.
    pub(crate) async fn end(mut self) {
        self.close();
        self.step.stop().await;
    }

    async fn ended_early(&mut self, error: &io::Error) -> Failure {
        let mut complaint = Capture::new(Stream::Stderr, COMPLAINT_BYTES, LogSink::default());
        let patience = Duration::from_millis(500);
        let _ = tokio::time::timeout(patience, complaint.read_all(&mut self.stderr)).await;
        let reason = complaint.last_line().unwrap_or_else(|| error.to_string());
        let message = format!("the tool's process ended early: {reason}");
        Failure::new(FailureKind::Unknown, message)
    }
}

/// Creates the failure of a worker that temporarily lacks descriptors, processes, or memory.
fn lost(error: &io::Error) -> Failure {
    let message = format!("the step's sandbox could not be used: {error}");
    let mut failure = Failure::new(FailureKind::Unknown, message);
    failure.retryable = true;
    failure
}

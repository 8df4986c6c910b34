//! Tool `shell`: runs shell commands in a separate process group.
//!
//! The script's environment consists of the variables inherited from the worker, its own `env`
//! settings, and `NOETL_EXECUTION_ID`, `NOETL_STEP`, `NOETL_ATTEMPT`, and `NOETL_INPUT`, which
//! contains the input as JSON so that scripts need no templates inside quotes. Input keys don't
//! become variables themselves: a key named `PATH` must not change which programs run. Without
//! `cwd`, the script runs in a fresh directory that is removed afterwards. Background processes are
//! killed when the script ends, and the script is killed when its worker dies. From isolation level
//! 1 on, the script runs in the step's sandbox, where processes in a separate session are killed
//! too.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::FusedFuture;
use noetl_model::{Failure, FailureKind, Map, Value};
use serde_json::json;
use tokio::io::AsyncRead;
use tokio::process::Command;

use crate::capture::Capture;
use crate::config::{self, expiry, wrong};
use crate::process::{self, ProcessGroup};
use crate::sandbox::{HostedStep, Pipes, Program, Sandbox};
use crate::workdir::WorkDir;
use crate::{Options, Stream, Tool, ToolCall};

/// Time to read output after the program's end. The process group is dead by then, so only a
/// process that left the group can still have the pipe open, and its output is not awaited.
const DRAIN: Duration = Duration::from_millis(200);

/// Maximum bytes of each stream in a failure's details: enough to see the cause, and small enough
/// for the event log.
const DETAILS_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub struct Shell {
    sandbox: Arc<Sandbox>,
}

impl Shell {
    pub fn new(options: Arc<Options>) -> Self {
        Self::with_sandbox(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn with_sandbox(sandbox: Arc<Sandbox>) -> Self {
        Self { sandbox }
    }

    /// Starts `sh` as a child process of the worker.
    fn start_here(&self, step: &ScriptStep<'_>) -> Result<StartedScript, Failure> {
        let options = self.sandbox.options();
        let fresh = match step.cwd {
            Some(_) => None,
            None => Some(WorkDir::fresh(&options.work_dir)?),
        };
        let dir = fresh.as_ref().map_or(options.work_dir.as_path(), WorkDir::path);
        let mut command = Command::new("sh");
        command.current_dir(step.cwd.map_or(dir, Path::new));
        options.environment.apply(&mut command);
        command
            .args(["-c", GUARDED, "sh", step.script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .envs(step.env.iter().map(|(name, value)| (name, value)));
        let mut group =
            ProcessGroup::spawn(&mut command).map_err(|error| not_started(&error, step.cwd))?;
        // Stays open until the group has ended; waiting for the child would close it.
        let guarded = group.child().stdin.take();
        let pipes = (group.child().stdout.take(), group.child().stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started(&io::ErrorKind::BrokenPipe.into(), step.cwd));
        };
        Ok(StartedScript {
            running: RunningScript::Here(group),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            _dir: fresh,
            _guarded: guarded,
        })
    }

    /// Starts `sh` in the step's sandbox.
    async fn start_hosted(
        &self,
        step: &ScriptStep<'_>,
        call: &ToolCall,
    ) -> Result<StartedScript, Failure> {
        let isolation = &self.sandbox.options().isolation;
        let cwd = step.cwd.map(std::path::absolute).transpose();
        let cwd = cwd.map_err(|error| not_started(&error, step.cwd))?;
        if let Some(cwd) = &cwd {
            self.sandbox.guard(&call.tenant).check(cwd, false)?;
        }
        let host = self.sandbox.acquire(&call.tenant).await?;
        let dir = host.step_dir()?;
        let mut env = step.env.clone();
        if isolation.moves_home() {
            let own = dir.path().display().to_string();
            let places = ["HOME", "TMPDIR"].map(|name| (name.to_owned(), own.clone()));
            env.splice(0..0, places);
        }
        let words = ["sh", "-c", step.script].map(str::to_owned).to_vec();
        let cwd = cwd.unwrap_or_else(|| dir.path().to_owned());
        let program = Program { words: isolation.limited(words), env, cwd };
        let failed = |error: io::Error| not_started(&error, step.cwd);
        let null = std::fs::File::open("/dev/null").map_err(failed)?;
        let (pipes, [stdout, stderr]) = Pipes::open().map_err(failed)?;
        let files = vec![null.into(), stdout, stderr];
        let hosted = HostedStep::start(&self.sandbox, &call.tenant, host, program, files);
        Ok(StartedScript {
            running: RunningScript::Hosted(hosted.await.map_err(failed)?),
            stdout: Box::new(pipes.stdout),
            stderr: Box::new(pipes.stderr),
            _dir: Some(dir),
            _guarded: None,
        })
    }
}

/// Script, working directory, and environment.
struct ScriptStep<'a> {
    script: &'a str,
    cwd: Option<&'a str>,
    env: Vec<(String, String)>,
}

/// A running script with its output streams.
struct StartedScript {
    running: RunningScript,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Box<dyn AsyncRead + Send + Unpin>,
    _dir: Option<WorkDir>,
    _guarded: Option<tokio::process::ChildStdin>,
}

/// Process of a running script.
enum RunningScript {
    Here(ProcessGroup),
    Hosted(HostedStep),
}

impl RunningScript {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Here(group) => group.wait().await,
            Self::Hosted(step) => step.wait().await,
        }
    }

    fn kill(&mut self) {
        match self {
            Self::Here(group) => group.kill(),
            Self::Hosted(step) => step.kill(),
        }
    }

    async fn stop(&mut self) {
        match self {
            Self::Here(group) => group.stop().await,
            Self::Hosted(step) => step.stop().await,
        }
    }
}

#[async_trait]
impl Tool for Shell {
    fn kind(&self) -> &'static str {
        "shell"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let script = script(&call.config)?;
        let cwd = config::text(&call.config, "cwd")?;
        let own = [
            ("NOETL_INPUT", json!(call.input).to_string()),
            ("NOETL_EXECUTION_ID", call.execution.to_string()),
            ("NOETL_STEP", call.step.to_string()),
            ("NOETL_ATTEMPT", call.attempt.to_string()),
        ];
        let env = own.into_iter().chain(config::environment(&call.config)?);
        let env = env.map(|(name, value)| (name.to_owned(), value)).collect();
        let step = ScriptStep { script: &script, cwd, env };
        let started = match self.sandbox.is_on() {
            true => self.start_hosted(&step, &call).await?,
            false => {
                self.sandbox.admit(&call.tenant)?;
                self.start_here(&step)?
            }
        };

        let output_max = self.sandbox.options().limits.shell_output;
        let mut stdout = Capture::new(Stream::Stdout, output_max, call.logs.clone());
        let mut stderr = Capture::new(Stream::Stderr, output_max, call.logs.clone());
        let end = supervise(started, &call, limit, &mut stdout, &mut stderr).await;
        stdout.finish();
        stderr.finish();
        conclude(end, &call, output_max, &stdout, &stderr)
    }
}

/// Runs the script in `$1` next to a guard process that reads from a pipe of the worker. The read
/// returns only when the worker dies, and the guard then kills the whole process group, so no step
/// of a killed worker runs in parallel with its next attempt. The guard has none of the script's
/// own streams open.
const GUARDED: &str = "exec 3<&0; (read -r _ <&3; kill -s KILL 0) >/dev/null 2>&1 & \
    exec sh -c \"$1\" </dev/null 3<&-";

/// Reason that a script is over.
enum ScriptExit {
    Exited(io::Result<ExitStatus>),
    TooMuch(Stream),
    TimedOut(Duration),
    Cancelled,
}

/// Waits until the script ends, exceeds a limit, or is cancelled. No process of its group is left
/// afterwards.
async fn supervise(
    started: StartedScript,
    call: &ToolCall,
    limit: Option<Duration>,
    stdout: &mut Capture,
    stderr: &mut Capture,
) -> ScriptExit {
    let StartedScript { mut running, stdout: out, stderr: err, _dir, _guarded } = started;
    let mut reading =
        pin!(async { tokio::try_join!(stdout.read_within(out), stderr.read_within(err)) }.fuse());
    let end = tokio::select! {
        Err(stream) = &mut reading => ScriptExit::TooMuch(stream),
        status = running.wait() => ScriptExit::Exited(status),
        () = call.cancel.cancelled() => ScriptExit::Cancelled,
        () = expiry(limit) => ScriptExit::TimedOut(limit.unwrap_or_default()),
    };
    match end {
        ScriptExit::Exited(_) => {}
        ScriptExit::TooMuch(_) => {
            running.kill();
            let _ = running.wait().await;
        }
        ScriptExit::TimedOut(_) | ScriptExit::Cancelled => running.stop().await,
    }
    if !reading.is_terminated()
        && let Ok(Err(stream)) = tokio::time::timeout(DRAIN, &mut reading).await
        && matches!(end, ScriptExit::Exited(_))
    {
        return ScriptExit::TooMuch(stream);
    }
    end
}

/// Converts the end of a script to the step's result or failure.
fn conclude(
    end: ScriptExit,
    call: &ToolCall,
    output_max: usize,
    stdout: &Capture,
    stderr: &Capture,
) -> Result<Value, Failure> {
    let result = |exit_code: Option<i32>| {
        json!({
            "exit_code": exit_code,
            "stdout": stdout.end(DETAILS_BYTES),
            "stderr": stderr.end(DETAILS_BYTES),
        })
    };
    let failure = match end {
        ScriptExit::Exited(Ok(status)) if status.success() => {
            return Ok(json!({
                "exit_code": 0,
                "stdout": stdout.text(),
                "stderr": stderr.text(),
            }));
        }
        ScriptExit::Exited(Ok(status)) => {
            let mut message = format!("the command {}", process::describe(status));
            if let Some(line) = stderr.last_line() {
                message = format!("{message}: {line}");
            }
            return Err(Failure::new(FailureKind::ExitCode, message)
                .with_details(result(Some(process::exit_code(status)))));
        }
        ScriptExit::Exited(Err(error)) => Failure::new(
            FailureKind::Unknown,
            format!("the command's end could not be observed: {error}"),
        ),
        ScriptExit::TooMuch(stream) => Failure::new(
            FailureKind::OutputLimit,
            format!(
                "the command was killed because its {stream} passed {output_max} bytes; redirect \
                 large output to a file"
            ),
        ),
        ScriptExit::TimedOut(limit) => call.timed_out(limit),
        ScriptExit::Cancelled => call.cancelled(),
    };
    Err(failure.with_details(result(None)))
}

/// Returns the script of a call: one text, or a list of commands that stops at the first failure.
fn script(config: &Map) -> Result<String, Failure> {
    let Some((key, value)) = config::first(config, &["command", "cmds", "commands"]) else {
        return Err(wrong("a shell step needs `command` (a text) or `cmds` (a list)"));
    };
    let script = match value {
        Value::String(script) => script.clone(),
        Value::Array(commands) => {
            let mut script = String::from("set -e\n");
            for command in commands {
                let Value::String(command) = command else {
                    let actual = config::type_name(command);
                    return Err(wrong(format!("`{key}` must list texts, not {actual}")));
                };
                script.push_str(command);
                script.push('\n');
            }
            script
        }
        other => {
            let actual = config::type_name(other);
            return Err(wrong(format!("`{key}` must be a text or a list, not {actual}")));
        }
    };
    if script.contains('\0') {
        return Err(wrong(format!("`{key}` holds a NUL character")));
    }
    Ok(script)
}

fn not_started(error: &io::Error, cwd: Option<&str>) -> Failure {
    match (error.kind(), cwd) {
        (io::ErrorKind::ArgumentListTooLong, _) => wrong(
            "the command, its `env` or its input is larger than the system allows a program to be \
             started with (about 128 KiB each); pass large data in a file",
        ),
        (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, Some(cwd)) => {
            wrong(format!("`cwd` '{cwd}' is not a directory"))
        }
        (io::ErrorKind::PermissionDenied, Some(cwd)) => {
            wrong(format!("`cwd` '{cwd}' is closed to the step's user"))
        }
        _ => {
            let mut failure =
                Failure::new(FailureKind::Unknown, format!("could not start sh: {error}"));
            // The machine temporarily lacks processes or memory.
            failure.retryable = true;
            failure
        }
    }
}

//! Client of the template process: starts the interpreter, forks steps, and receives exit statuses.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::{Failure, FailureKind};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use crate::capture::Capture;
use crate::sandbox::{Host, Pipes, Program};
use crate::workdir::WorkDir;
use crate::{LogSink, Options, Stream};

/// Program of the interpreter: the code of a step, followed by the template that forks into it.
const SOURCE: &str = concat!(include_str!("step.py"), include_str!("template.py"));

/// Time limit for the interpreter to start. A cold disk takes seconds; more is a hang.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of the interpreter's own stderr: enough for a traceback.
const COMPLAINT_BYTES: usize = 8 * 1024;

/// A running template process. Dropping it ends the process and all steps it forked.
#[derive(Debug)]
pub(super) struct Zygote {
    control: OwnedWriteHalf,
    steps: Steps,
    next: AtomicU64,
    // `None` in a sandbox, whose host ends its processes.
    pid: Option<Pid>,
    /// Directory of the interpreter. `None` in a sandbox, which has its own.
    dir: Option<WorkDir>,
}

/// End of a forked step.
#[derive(Debug)]
pub(super) enum ForkExit {
    /// The process exited or was killed. It is reaped, and its process group is empty.
    Exited(ExitStatus),
    /// The fork failed with this error.
    NotForked(io::Error),
    /// The template process ended first.
    Lost,
}

/// A requested step. Dropping it before its end kills the step.
pub(super) struct ForkedStep {
    template: Arc<Zygote>,
    id: u64,
    end: oneshot::Receiver<ForkExit>,
}

impl Zygote {
    /// Starts the interpreter and waits until it is ready to fork.
    pub(super) async fn start(options: &Options) -> Result<Self, Failure> {
        let dir = WorkDir::fresh(&options.work_dir)?;
        let (ours, theirs) = StdUnixStream::pair().map_err(|error| lacking(&error))?;
        let mut child = spawn(options, dir.path(), theirs)?;
        let stderr = child.stderr.take();
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (mut reports, control) = split(ours)?;
        if !says_hello(&mut reports).await {
            let _ = child.kill().await;
            return Err(not_ready(&options.python, stderr).await);
        }
        let steps = Steps::default();
        tokio::spawn(attend(reports, Some(child), stderr, steps.clone()));
        Ok(Self { control, steps, next: AtomicU64::new(1), pid, dir: Some(dir) })
    }

    /// Starts the interpreter in a sandbox, where it runs one step at a time and ends its processes.
    pub(super) async fn start_in(host: &mut Host, options: &Options) -> Result<Self, Failure> {
        let (ours, theirs) = StdUnixStream::pair().map_err(|error| lacking(&error))?;
        let (pipes, [_, stderr]) = Pipes::open().map_err(|error| lacking(&error))?;
        let null = std::fs::OpenOptions::new().write(true).open("/dev/null");
        let null = null.map_err(|error| lacking(&error))?;
        let dir = host.dir().display().to_string();
        let python = program(&options.python).display().to_string();
        let words = [&python, "-X", "utf8", "-c", SOURCE, &dir, "sandboxed"].map(str::to_owned);
        let words = options.isolation.limited(words.to_vec());
        let env = match options.isolation.moves_home() {
            true => ["HOME", "TMPDIR"].map(|name| (name.to_owned(), dir.clone())).to_vec(),
            false => Vec::new(),
        };
        let asked = Program { words, env, cwd: host.dir().to_owned() };
        let files = vec![OwnedFd::from(theirs), null.into(), stderr];
        host.keep(asked, files).await.map_err(|error| not_started(&error, &options.python))?;
        let (mut reports, control) = split(ours)?;
        if !says_hello(&mut reports).await {
            return Err(not_ready(&options.python, Some(pipes.stderr)).await);
        }
        let steps = Steps::default();
        tokio::spawn(attend(reports, None, Some(pipes.stderr), steps.clone()));
        Ok(Self { control, steps, next: AtomicU64::new(1), pid: None, dir: None })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.steps.lock().is_none()
    }

    /// Creates a directory for a step, below the interpreter's own.
    pub(super) fn step_dir(&self) -> Result<WorkDir, Failure> {
        match &self.dir {
            Some(dir) => WorkDir::create_at(dir.path().join(format!("step-{}", self.next_id()))),
            None => Err(lacking(&io::ErrorKind::NotFound.into())),
        }
    }

    /// Returns a number that is unique among the steps of this template.
    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Forks step `id` with its socket, stdout, and stderr.
    pub(super) async fn fork(self: Arc<Self>, id: u64, files: [OwnedFd; 3]) -> ForkedStep {
        let (sender, end) = oneshot::channel();
        if let Some(steps) = &mut *self.steps.lock() {
            let step = RunningStep { pid: None, end: sender };
            steps.insert(id, step);
        }
        let forked = ForkedStep { template: self, id, end };
        let stream = forked.template.control.as_ref();
        let sent = stream
            .async_io(Interest::WRITABLE, || {
                let borrowed = files.each_ref().map(|file| file.as_fd());
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut extra = SendAncillaryBuffer::new(&mut space);
                extra.push(SendAncillaryMessage::ScmRights(&borrowed));
                let message = request(b'F', id);
                let parts = [IoSlice::new(&message)];
                Ok(rustix::net::sendmsg(stream, &parts, &mut extra, SendFlags::NOSIGNAL)?)
            })
            .await;
        if let Err(error) = sent {
            forked.template.steps.end(id, ForkExit::NotForked(error));
        }
        forked
    }

    fn kill(&self, id: u64) {
        let message = request(b'K', id);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if rustix::net::send(self.control.as_ref(), &message, flags).is_err() {
            // The process no longer reads its socket. Killing it ends its steps as well.
            self.abandon();
        }
    }

    /// Kills a process that doesn't respond. In a sandbox, the host ends it.
    pub(super) fn abandon(&self) {
        match self.pid {
            Some(pid) if !self.is_lost() => drop(kill_process(pid, Signal::KILL)),
            Some(_) => {}
            None => drop(self.steps.lose(false)),
        }
    }
}

impl ForkedStep {
    /// Waits for the step's end.
    pub(super) async fn end(&mut self) -> ForkExit {
        (&mut self.end).await.unwrap_or(ForkExit::Lost)
    }

    /// Kills the step and its descendants. [`ForkedStep::end`] completes once that is done.
    pub(super) fn kill(&self) {
        self.template.kill(self.id);
    }

    pub(super) fn template(&self) -> &Zygote {
        &self.template
    }
}

impl Drop for ForkedStep {
    fn drop(&mut self) {
        if self.template.steps.forget(self.id) {
            self.kill();
        }
    }
}

/// Running steps by ID. `None` once the template process is lost.
#[derive(Debug, Clone)]
struct Steps(Arc<Mutex<Option<HashMap<u64, RunningStep>>>>);

#[derive(Debug)]
struct RunningStep {
    pid: Option<Pid>,
    end: oneshot::Sender<ForkExit>,
}

impl Default for Steps {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(HashMap::new()))))
    }
}

impl Steps {
    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u64, RunningStep>>> {
        // Every change is a single operation of the map, so it is consistent even if the lock is
        // poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, report: &ZygoteReport) {
        let value = i32::try_from(report.value).unwrap_or_default();
        match report.tag {
            b'S' => {
                if let Some(step) = self.lock().as_mut().and_then(|map| map.get_mut(&report.id)) {
                    step.pid = Pid::from_raw(value);
                }
            }
            b'X' => self.end(report.id, ForkExit::Exited(ExitStatus::from_raw(value))),
            b'E' => {
                let error = io::Error::from_raw_os_error(value);
                self.end(report.id, ForkExit::NotForked(error));
            }
            tag => tracing::warn!(tag, "unknown report from Python template process"),
        }
    }

    fn end(&self, id: u64, end: ForkExit) {
        let step = self.lock().as_mut().and_then(|map| map.remove(&id));
        if let Some(step) = step {
            let _ = step.end.send(end);
        }
    }

    /// Removes a step. Returns `true` if it was still running.
    fn forget(&self, id: u64) -> bool {
        let mut steps = self.lock();
        steps.as_mut().is_some_and(|map| map.remove(&id).is_some())
    }

    /// Ends all steps, because the template process is lost. Returns their number.
    ///
    /// Process IDs of a sandbox refer to other processes here, so `kills` must be `false` for one;
    /// its host ends the processes.
    fn lose(&self, kills: bool) -> usize {
        let steps = self.lock().take().unwrap_or_default();
        let count = steps.len();
        for step in steps.into_values() {
            // The kernel kills these processes when their parent dies. Their children, and steps on
            // systems without that feature, have to be killed here.
            if let Some(pid) = step.pid.filter(|_| kills) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = step.end.send(ForkExit::Lost);
        }
        count
    }
}

/// Dispatches reports until the interpreter ends, then reaps it.
async fn attend(
    mut reports: OwnedReadHalf,
    child: Option<Child>,
    stderr: Option<impl AsyncRead + Unpin>,
    steps: Steps,
) {
    let mut complaint = Capture::new(Stream::Stderr, COMPLAINT_BYTES, LogSink::default());
    let reading = async {
        while let Ok(report) = ZygoteReport::read(&mut reports).await {
            steps.note(&report);
        }
        steps.lose(child.is_some())
    };
    let listening = async {
        if let Some(stderr) = stderr {
            complaint.read_all(stderr).await;
        }
    };
    let (lost, ()) = tokio::join!(reading, listening);
    let status = match child {
        Some(mut child) => child.wait().await.map(|status| status.to_string()).ok(),
        None => None,
    };
    if lost > 0 {
        let stderr = complaint.text();
        tracing::warn!(steps.lost = lost, ?status, stderr, "Python template process lost");
    }
}

/// Message of the template process: the kind of report, the step, and a number.
#[derive(Debug)]
struct ZygoteReport {
    tag: u8,
    id: u64,
    value: i64,
}

impl ZygoteReport {
    async fn read(reports: &mut OwnedReadHalf) -> io::Result<Self> {
        let mut bytes = [0; 17];
        reports.read_exact(&mut bytes).await?;
        let [tag, id @ .., _, _, _, _, _, _, _, _] = bytes;
        let [_, _, _, _, _, _, _, _, _, value @ ..] = bytes;
        Ok(Self { tag, id: u64::from_be_bytes(id), value: i64::from_be_bytes(value) })
    }
}

fn request(tag: u8, id: u64) -> [u8; 9] {
    let mut message = [tag; 9];
    message[1..].copy_from_slice(&id.to_be_bytes());
    message
}

fn spawn(options: &Options, dir: &Path, control: StdUnixStream) -> Result<Child, Failure> {
    // An interpreter searches its working directory for modules, and this one is empty.
    let mut command = Command::new(program(&options.python));
    command
        .current_dir(dir)
        .args(["-X", "utf8", "-c", SOURCE])
        .arg(dir)
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // A separate process group, so that an interrupt from the terminal reaches only the worker.
        .process_group(0)
        .kill_on_drop(true);
    options.environment.apply(&mut command);
    command.spawn().map_err(|error| not_started(&error, &options.python))
}

fn not_started(error: &io::Error, python: &Path) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            FailureKind::ToolMissing,
            format!("{} was not found; install it or set NOETL_PYTHON", python.display()),
        ),
        io::ErrorKind::PermissionDenied => {
            let python = python.display();
            let hint = "set NOETL_PYTHON to a Python interpreter";
            let message = format!("{python} may not be executed; {hint}");
            Failure::new(FailureKind::ToolMissing, message)
        }
        _ => lacking(error),
    }
}

/// Splits the worker's end of the control socket into reports and requests.
fn split(ours: StdUnixStream) -> Result<(OwnedReadHalf, OwnedWriteHalf), Failure> {
    let control = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours));
    Ok(control.map_err(|error| lacking(&error))?.into_split())
}

async fn says_hello(reports: &mut OwnedReadHalf) -> bool {
    let hello = tokio::time::timeout(START_TIMEOUT, ZygoteReport::read(reports)).await;
    matches!(hello, Ok(Ok(ZygoteReport { tag: b'H', .. })))
}

/// Returns a path of the interpreter that is valid in any working directory.
fn program(python: &Path) -> PathBuf {
    let is_name = python.components().count() == 1;
    match std::path::absolute(python) {
        Ok(path) if !is_name => path,
        _ => python.to_owned(),
    }
}

async fn not_ready(python: &Path, stderr: Option<impl AsyncRead + Unpin>) -> Failure {
    let mut complaint = Capture::new(Stream::Stderr, COMPLAINT_BYTES, LogSink::default());
    if let Some(stderr) = stderr {
        // A descendant may still have the pipe open, so the wait is limited.
        let patience = Duration::from_millis(500);
        let _ = tokio::time::timeout(patience, complaint.read_all(stderr)).await;
    }
    let reason = complaint.last_line().unwrap_or_else(|| "it ended without a word".to_owned());
    Failure::new(
        FailureKind::ToolMissing,
        format!(
            "{} could not be started as a Python 3 interpreter: {reason}; set NOETL_PYTHON",
            python.display()
        ),
    )
}

/// Creates the failure of a worker that temporarily lacks descriptors, processes, or memory.
pub(super) fn lacking(error: &io::Error) -> Failure {
    let message = format!("the worker could not start a Python process: {error}");
    let mut failure = Failure::new(FailureKind::Unknown, message);
    failure.retryable = true;
    failure
}

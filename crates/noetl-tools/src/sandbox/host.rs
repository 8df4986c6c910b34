//! Worker side of a step host: starts the host, and steps in it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use noetl_model::{Failure, Tenant};
use rustix::net::SendFlags;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;

use super::Sandbox;
use crate::host_protocol::COMMAND;
use crate::host_protocol::wire::{self, HostRequest, HostSpec, Program, Reply};
use crate::isolation::{Level, User};
use crate::own::{AllowedDirectory, FileId};
use crate::workdir::WorkDir;
use crate::{IsolationError, Options};

/// Time limit for a host to start and confine itself. It usually takes milliseconds, and longer on
/// a cold disk.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between SIGTERM and SIGKILL when a step is stopped.
const GRACE: Duration = Duration::from_secs(1);

/// A host between steps. Dropping it ends the host.
#[derive(Debug)]
pub(crate) struct Host {
    control: UnixStream,
    /// Received bytes of an incomplete reply.
    pending: Vec<u8>,
    dir: PathBuf,
    user: Option<User>,
    /// Files of the program that the host hides from steps.
    hidden: Vec<(PathBuf, FileId)>,
    steps: AtomicU64,
}

impl Host {
    /// Starts a host and waits until it is confined.
    pub(crate) async fn start(
        options: &Options,
        user: Option<User>,
        roots: Option<&[AllowedDirectory]>,
    ) -> Result<Self, IsolationError> {
        let failed = |message: String| IsolationError { message, hint: None };
        let error = |error: io::Error| failed(error.to_string());
        let Some(program) = &options.host else {
            return Err(failed("this program has no step host".to_owned()));
        };
        let base = std::path::absolute(&options.work_dir).map_err(error)?;
        let own = WorkDir::fresh(&base).map_err(|failure| failed(failure.message))?;
        let dir = own.path().to_owned();
        if let Some(User { uid, gid }) = user {
            chown(&dir, Some(uid), Some(gid)).map_err(error)?;
        }
        let isolation = &options.isolation;
        let hidden = options.own.existing();
        let paths: Vec<PathBuf> = hidden.iter().map(|(path, _)| path.clone()).collect();
        let namespaces = isolation.level >= Level::Namespaces;
        let spec = HostSpec {
            namespaces,
            no_network: isolation.no_network,
            private_tmp: isolation.private_tmp,
            user,
            cgroup: isolation.cgroup.clone(),
            dir: dir.clone(),
            base,
            withheld: if namespaces { Vec::new() } else { withheld(&paths) },
            hidden: if namespaces { hideable(paths) } else { Vec::new() },
            roots: roots.map(<[AllowedDirectory]>::to_vec),
        };
        let spec = serde_json::to_string(&spec).map_err(|error| failed(error.to_string()))?;
        let (ours, theirs) = StdUnixStream::pair().map_err(error)?;
        let mut command = Command::new(program);
        command.args([COMMAND, &spec]).current_dir(&dir).process_group(0);
        options.environment.apply(&mut command);
        let theirs = Stdio::from(OwnedFd::from(theirs));
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(error)?;
        // The directory is removed once no process can write to it.
        tokio::spawn(async move {
            let _ = child.wait().await;
            drop(own);
        });
        drop(command);
        ours.set_nonblocking(true).map_err(error)?;
        let control = UnixStream::from_std(ours).map_err(error)?;
        let (pending, steps) = (Vec::new(), AtomicU64::new(1));
        let mut host = Self { control, pending, dir, user, hidden, steps };
        match tokio::time::timeout(START_TIMEOUT, host.reply()).await {
            Ok(Ok(Reply::Ready)) => Ok(host),
            Ok(Ok(Reply::Refused(message))) => Err(failed(message)),
            Ok(Ok(other)) => Err(failed(format!("the step host answered {other:?}"))),
            Ok(Err(_)) => Err(failed("the step host ended before it was ready".to_owned())),
            Err(_) => Err(failed("the step host was not ready in time".to_owned())),
        }
    }

    /// Returns `true` if the host still hides all current files of the program.
    pub(crate) fn is_current(&self, options: &Options) -> bool {
        self.hidden == options.own.existing()
    }

    /// Returns the host's working directory, which contains those of its steps.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates a directory for a step, owned by the steps' user.
    pub(crate) fn step_dir(&self) -> Result<WorkDir, Failure> {
        let number = self.steps.fetch_add(1, Ordering::Relaxed);
        let dir = WorkDir::create_at(self.dir.join(format!("step-{number}")))?;
        self.hand_over(&dir)?;
        Ok(dir)
    }

    /// Makes the steps' user the owner of a directory.
    pub(crate) fn hand_over(&self, dir: &WorkDir) -> Result<(), Failure> {
        let Some(User { uid, gid }) = self.user else { return Ok(()) };
        chown(dir.path(), Some(uid), Some(gid)).map_err(|error| dir.refused(&error))
    }

    /// Starts a program that keeps running between steps.
    pub(crate) async fn keep(&mut self, program: Program, files: Vec<OwnedFd>) -> io::Result<()> {
        self.ask(&HostRequest::Keep(program), files).await
    }

    /// Empties the private temporary directories after a step. Not needed for a [`HostedStep`].
    pub(crate) async fn wipe(&mut self) -> io::Result<()> {
        self.ask(&HostRequest::Wipe, Vec::new()).await
    }

    async fn ask(&mut self, request: &HostRequest, files: Vec<OwnedFd>) -> io::Result<()> {
        let body = wire::encode(request)?;
        let head = wire::head(&body);
        let control = &self.control;
        let sent = control
            .async_io(Interest::WRITABLE, || wire::send_head(control.as_fd(), head, &files))
            .await?;
        drop(files);
        self.control.write_all(&head[sent..]).await?;
        self.control.write_all(&body).await?;
        match self.reply().await? {
            Reply::Started => Ok(()),
            Reply::NotStarted { code: Some(code), .. } => Err(io::Error::from_raw_os_error(code)),
            Reply::NotStarted { message, .. } => Err(io::Error::other(message)),
            other => Err(io::Error::other(format!("the step host answered {other:?}"))),
        }
    }

    /// Waits for the next reply. Cancel-safe: received bytes are buffered.
    async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((head, rest)) = self.pending.split_first_chunk::<4>() {
                let size = wire::body_len(*head)?;
                if rest.len() >= size {
                    let reply = serde_json::from_slice(&rest[..size])?;
                    self.pending.drain(..4 + size);
                    return Ok(reply);
                }
            }
            if self.control.read_buf(&mut self.pending).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends a signal to the step. Returns `false` if the host doesn't read its socket.
    fn signal(&self, signal: Signal) -> bool {
        let Ok(body) = wire::encode(&HostRequest::Signal(signal.as_raw())) else { return false };
        let message = [wire::head(&body).as_slice(), &body].concat();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.control, &message, flags).is_ok_and(|sent| sent == message.len())
    }
}

/// Returns the paths that can be hidden. A directory that contains the worker's current directory
/// or the temporary directory cannot; its files are listed separately.
fn hideable(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let temporary = std::env::temp_dir();
    let holds = |path: &PathBuf| here.starts_with(path) || temporary.starts_with(path);
    paths.into_iter().filter(|path| !path.is_dir() || !holds(path)).collect()
}

/// Returns the files that Landlock can deny to steps without denying more: those whose directories
/// the worker's user cannot write to, because no new files can appear there.
fn withheld(paths: &[PathBuf]) -> Vec<PathBuf> {
    use rustix::fs::{Access, access};
    let is_fixed = |path: &&PathBuf| {
        path.ancestors().skip(1).all(|directory| access(directory, Access::WRITE_OK).is_err())
    };
    paths.iter().filter(is_fixed).cloned().collect()
}

/// Worker's ends of a step's output pipes.
pub(crate) struct Pipes {
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

impl Pipes {
    /// Opens the worker's ends and the step's.
    pub(crate) fn open() -> io::Result<(Self, [OwnedFd; 2])> {
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let ours = Self {
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
        };
        Ok((ours, [their_stdout.into(), their_stderr.into()]))
    }
}

/// A step that runs in a host. Dropping it before its end also ends the host.
#[derive(Debug)]
pub(crate) struct HostedStep {
    sandbox: Arc<Sandbox>,
    tenant: Tenant,
    host: Option<Host>,
}

impl HostedStep {
    /// Starts a program with its standard streams.
    pub(crate) async fn start(
        sandbox: &Arc<Sandbox>,
        tenant: &Tenant,
        mut host: Host,
        program: Program,
        files: Vec<OwnedFd>,
    ) -> io::Result<Self> {
        let asked = host.ask(&HostRequest::Run(program), files).await;
        match asked {
            Ok(()) => {
                Ok(Self { sandbox: Arc::clone(sandbox), tenant: tenant.clone(), host: Some(host) })
            }
            Err(error) => {
                if error.raw_os_error().is_some() {
                    sandbox.release(tenant, host);
                }
                Err(error)
            }
        }
    }

    /// Waits until all processes of the step have ended.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(host) = &mut self.host else {
            return Err(io::Error::other("the step's sandbox was lost"));
        };
        let reply = host.reply().await;
        let host = self.host.take();
        match reply {
            Ok(Reply::Ended(status)) => {
                if let Some(host) = host {
                    self.sandbox.release(&self.tenant, host);
                }
                Ok(ExitStatus::from_raw(status))
            }
            Ok(other) => Err(io::Error::other(format!("the step host answered {other:?}"))),
            Err(_) => Err(io::Error::other("the step's sandbox was lost")),
        }
    }

    /// Kills all processes of the step.
    pub(crate) fn kill(&mut self) {
        if let Some(host) = &self.host
            && !host.signal(Signal::KILL)
        {
            self.host = None;
        }
    }

    /// Sends SIGTERM to the step, kills it after [`GRACE`], and waits for its end.
    pub(crate) async fn stop(&mut self) {
        if let Some(host) = &self.host {
            host.signal(Signal::TERM);
        }
        if tokio::time::timeout(GRACE, self.wait()).await.is_err() {
            self.kill();
            let _ = self.wait().await;
        }
    }
}

//! Main loop of a host: one step at a time, until the worker's socket is closed.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, kill_process_group, pidfd_open};

use super::sweep::{reap, sweep};
use super::{confine, namespaces};
use crate::host_protocol::wire::{self, HostRequest, HostSpec, Program, Reply};

/// Interval at which orphans of a running step are reaped.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Serves until the socket is closed, then kills all descendants.
pub(super) fn serve(spec: &HostSpec, control: &UnixStream) -> io::Result<ExitCode> {
    let starter = Starter::start(spec.clone())?;
    wire::send(control, &Reply::Ready)?;
    let mut host = Host { spec, control, starter, excluded: None };
    // A socket error ends the host as well.
    while let Ok(true) = host.turn() {}
    sweep(None, |_| {});
    Ok(ExitCode::SUCCESS)
}

struct Host<'a> {
    spec: &'a HostSpec,
    control: &'a UnixStream,
    starter: Starter,
    /// Program that keeps running between steps.
    excluded: Option<Pid>,
}

impl Host<'_> {
    /// Handles one request. Returns `false` at the end of the socket.
    fn turn(&mut self) -> io::Result<bool> {
        let Some((request, files)) = wire::receive::<HostRequest>(self.control)? else {
            return Ok(false);
        };
        match request {
            HostRequest::Run(program) => match self.starter.spawn(program, files)? {
                Ok(pid) => {
                    wire::send(self.control, &Reply::Started)?;
                    return self.run(pid);
                }
                Err(reply) => wire::send(self.control, &reply)?,
            },
            HostRequest::Keep(program) => {
                let reply = match self.starter.spawn(program, files)? {
                    Ok(pid) => {
                        self.excluded = Some(pid);
                        Reply::Started
                    }
                    Err(reply) => reply,
                };
                wire::send(self.control, &reply)?;
            }
            HostRequest::Wipe => {
                if self.spec.private_tmp {
                    namespaces::wipe(self.spec);
                }
                wire::send(self.control, &Reply::Started)?;
            }
            // The step has ended in the meantime.
            HostRequest::Signal(_) => {}
        }
        Ok(true)
    }

    /// Waits for the step's end, and kills the processes it left behind. Returns `false` if the
    /// socket was closed first.
    fn run(&mut self, pid: Pid) -> io::Result<bool> {
        let mut status: Option<WaitStatus> = None;
        let exited = pidfd_open(pid, PidfdFlags::empty()).ok();
        while status.is_none() {
            let mut waits = vec![PollFd::new(self.control, PollFlags::IN)];
            waits.extend(exited.as_ref().map(|file| PollFd::new(file, PollFlags::IN)));
            match poll(&mut waits, Some(&REAP_EVERY)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_told = !waits[0].revents().is_empty();
            reap(|(ended, how)| {
                if ended == pid {
                    status = Some(how);
                }
            });
            if status.is_some() || !is_told {
                continue;
            }
            match wire::receive::<HostRequest>(self.control)? {
                Some((HostRequest::Signal(number), _)) => match Signal::from_named_raw(number) {
                    Some(Signal::KILL) => break,
                    Some(signal) => drop(kill_process_group(pid, signal)),
                    None => {}
                },
                Some((HostRequest::Run(_) | HostRequest::Keep(_) | HostRequest::Wipe, _))
                | None => {
                    return Ok(false);
                }
            }
        }
        sweep(self.excluded, |(ended, how)| {
            if ended == pid {
                status = Some(how);
            }
        });
        if self.spec.private_tmp {
            namespaces::wipe(self.spec);
        }
        let status = status.map_or(Signal::KILL.as_raw(), WaitStatus::as_raw);
        wire::send(self.control, &Reply::Ended(status))?;
        Ok(true)
    }
}

/// Thread that starts programs. The thread and the programs have fewer privileges than the rest of
/// the host.
struct Starter {
    jobs: mpsc::Sender<(Program, Vec<OwnedFd>)>,
    started: mpsc::Receiver<Result<Pid, Reply>>,
}

impl Starter {
    /// Starts the thread. Fails if it cannot be confined.
    fn start(spec: HostSpec) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::channel::<(Program, Vec<OwnedFd>)>();
        let (done, started) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        thread::Builder::new().name("starter".to_owned()).spawn(move || {
            let confined = confine::restrict_thread(&spec);
            let failed = confined.is_err();
            let _ = ready.send(confined);
            if failed {
                return;
            }
            for (program, files) in receiver {
                if done.send(spawn(&spec, &program, files)).is_err() {
                    return;
                }
            }
        })?;
        is_ready.recv().map_err(io::Error::other)??;
        Ok(Self { jobs, started })
    }

    fn spawn(&self, program: Program, files: Vec<OwnedFd>) -> io::Result<Result<Pid, Reply>> {
        self.jobs.send((program, files)).map_err(io::Error::other)?;
        self.started.recv().map_err(io::Error::other)
    }
}

fn spawn(spec: &HostSpec, program: &Program, files: Vec<OwnedFd>) -> Result<Pid, Reply> {
    let Program { words, env, cwd } = program;
    let mut files = files.into_iter();
    let mut next = || files.next().map_or_else(Stdio::null, Stdio::from);
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command
        .args(words.iter().skip(1))
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .stdin(next())
        .stdout(next())
        .stderr(next())
        .process_group(0);
    if let Some(user) = spec.user {
        // Also clears the supplementary groups.
        command.uid(user.uid).gid(user.gid);
    }
    let refused = |error: io::Error| Reply::NotStarted {
        code: error.raw_os_error(),
        message: error.to_string(),
    };
    let child = command.spawn().map_err(refused)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| refused(io::ErrorKind::Other.into()))
}

//! Process in which sandboxed steps run: a hidden command of the program itself.
//!
//! A worker starts the host with a `Spec` and a socket as standard input. The host confines itself,
//! then starts one step at a time and replies once all processes of the step have ended. With
//! namespaces, the host is process 1 of its own PID namespace; otherwise it is a subreaper, so that
//! processes a step leaves behind become its children. When the socket is closed, the host and all
//! its descendants end. A thread with fewer privileges than the host starts the steps: they cannot
//! gain capabilities, and their Landlock domain excludes the host, so that a step can neither
//! signal nor trace it.

mod confine;
mod landlock;
mod namespaces;
mod serve;
mod sweep;
mod tool;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};

use crate::host_protocol::wire::{self, HostSpec, Reply};
use crate::host_protocol::{COMMAND, OWN_PROGRAM, TOOL};

/// Argument that runs process 1 of a namespace.
const INIT: &str = "init";

/// Runs the hidden command with the arguments after its name.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let first = words.next().unwrap_or_default();
    if first == TOOL {
        return tool::main();
    }
    let (is_init, text) = match first == INIT {
        true => (true, words.next().unwrap_or_default()),
        false => (false, first),
    };
    let Ok(control) = control() else { return ExitCode::FAILURE };
    let outcome = match serde_json::from_str::<HostSpec>(&text.to_string_lossy()) {
        Ok(spec) => host(&spec, &text, is_init, &control),
        Err(error) => Err(io::Error::other(error)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // If the worker is gone, the reply is not needed.
            let _ = wire::send(&control, &Reply::Refused(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Moves the worker's socket away from standard input, which steps must not inherit.
fn control() -> io::Result<UnixStream> {
    let own = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(null)?;
    Ok(UnixStream::from(own))
}

fn host(
    spec: &HostSpec,
    text: &OsString,
    is_init: bool,
    control: &UnixStream,
) -> io::Result<ExitCode> {
    confine::outlive_signals()?;
    if let Some(cgroup) = spec.cgroup.as_deref().filter(|_| !is_init) {
        confine::enter_cgroup(cgroup)?;
    }
    if !spec.namespaces {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        return serve::serve(spec, control);
    }
    if is_init {
        confine::end_with_parent()?;
        namespaces::settle(spec)?;
        return serve::serve(spec, control);
    }
    namespaces::enter(spec)?;
    let mut init = Command::new(OWN_PROGRAM);
    let socket: OwnedFd = control.try_clone()?.into();
    init.arg(COMMAND).arg(INIT).arg(text).stdin(Stdio::from(socket));
    let mut init = init.spawn().map_err(|error| named("process 1 of a namespace", &error))?;
    // The exit status is ignored: the worker sees the end of the socket.
    init.wait()?;
    Ok(ExitCode::SUCCESS)
}

/// Prefixes an error with the name of the unavailable feature.
fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

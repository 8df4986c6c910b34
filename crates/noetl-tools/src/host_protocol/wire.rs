//! Protocol between a worker and its step hosts, over a Unix socket.
//!
//! Each message is four bytes of length, followed by JSON. File descriptors are sent with the
//! length. A host runs one step at a time, so replies need no IDs.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::isolation::User;
use crate::own::AllowedDirectory;

/// Maximum descriptors per message: standard input, output, and error.
pub(crate) const FILES_MAX: usize = 3;

/// Maximum size of a message, in bytes. The operating system limits a program's arguments and
/// environment to about 2 MiB, and JSON may need several bytes per byte.
const MESSAGE_MAX: usize = 16 << 20;

/// Confinement of a host, fixed for its lifetime.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HostSpec {
    /// Whether the host creates user, mount, and process namespaces.
    pub(crate) namespaces: bool,
    /// Whether the network namespace is new and empty.
    pub(crate) no_network: bool,
    /// Whether shared temporary directories are replaced with empty ones in memory.
    pub(crate) private_tmp: bool,
    /// User of the steps. `None` for the host's own user.
    pub(crate) user: Option<User>,
    /// Control group (version 2) that the host joins before anything else.
    pub(crate) cgroup: Option<PathBuf>,
    /// Directory of the host, which contains those of its steps.
    pub(crate) dir: PathBuf,
    /// Directory that contains the directories of all hosts.
    pub(crate) base: PathBuf,
    /// Files and directories that steps must not see.
    pub(crate) hidden: Vec<PathBuf>,
    /// Files that Landlock denies to steps if no mount can hide them.
    pub(crate) withheld: Vec<PathBuf>,
    /// Directories that steps may use besides those of the system. `None` for all.
    pub(crate) roots: Option<Vec<AllowedDirectory>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    /// Variables added to the host's environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
}

/// A message to a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostRequest {
    /// Starts a step. Its end is reported once all its processes have ended.
    Run(Program),
    /// Starts a program that keeps running between steps, such as a warm interpreter.
    Keep(Program),
    /// Empties the private temporary directories. The reply is [`Reply::Started`].
    Wipe,
    /// Sends a signal to the step's process group. `SIGKILL` reaches all processes of the step.
    Signal(i32),
}

/// A message from a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The host is confined.
    Ready,
    /// The host cannot be confined.
    Refused(String),
    Started,
    NotStarted {
        /// Error number of the operating system.
        code: Option<i32>,
        message: String,
    },
    /// The step and all its processes ended. Contains the wait status of the first process.
    Ended(i32),
}

/// Encodes a message without its length.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    if body.len() > MESSAGE_MAX {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    Ok(body)
}

/// Returns the length of a message's body from its first four bytes.
pub(crate) fn body_len(head: [u8; 4]) -> io::Result<usize> {
    let size = u32::from_be_bytes(head) as usize;
    if size > MESSAGE_MAX { Err(io::ErrorKind::InvalidData.into()) } else { Ok(size) }
}

/// Returns the four bytes of length for a body.
pub(crate) fn head(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// Sends the head of a message with its descriptors.
pub(crate) fn send_head(
    socket: impl std::os::fd::AsFd,
    head: [u8; 4],
    files: &[OwnedFd],
) -> io::Result<usize> {
    let borrowed: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut extra = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        extra.push(SendAncillaryMessage::ScmRights(&borrowed));
    }
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(&head)], &mut extra, SendFlags::NOSIGNAL)?)
}

/// Sends a message. Blocks until the socket accepts all of it.
pub(crate) fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let body = encode(message)?;
    socket.write_all(&[head(&body).as_slice(), &body].concat())
}

/// Receives a message with its descriptors, or `None` at the end of the socket. Blocks.
pub(crate) fn receive<T: DeserializeOwned>(
    mut socket: &UnixStream,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut extra = RecvAncillaryBuffer::new(&mut space);
    let mut head = [0; 4];
    let received = {
        let mut parts = [IoSliceMut::new(&mut head)];
        rustix::net::recvmsg(socket, &mut parts, &mut extra, RecvFlags::CMSG_CLOEXEC)?.bytes
    };
    if received == 0 {
        return Ok(None);
    }
    let mut files = Vec::new();
    for message in extra.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    socket.read_exact(&mut head[received..])?;
    let mut body = vec![0; body_len(head)?];
    socket.read_exact(&mut body)?;
    Ok(Some((serde_json::from_slice(&body)?, files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (_, pipe) = io::pipe().expect("a pipe");
        let body = encode(&HostRequest::Signal(9)).expect("a body");
        send_head(&ours, head(&body), &[pipe.into()]).expect("a head");
        (&ours).write_all(&body).expect("a body");
        drop(ours);
        let (request, files) =
            receive::<HostRequest>(&theirs).expect("a message").expect("not the end");
        assert!(matches!(request, HostRequest::Signal(9)), "{request:?}");
        assert_eq!(files.len(), 1);
        assert!(receive::<HostRequest>(&theirs).expect("the end").is_none());
    }

    #[test]
    fn an_oversized_message_is_rejected() {
        assert!(body_len([0xff; 4]).is_err());
        assert!(body_len([0, 0, 1, 0]).is_ok());
    }
}

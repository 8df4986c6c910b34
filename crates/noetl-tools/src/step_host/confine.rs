//! Privileges of the host's processes, and of the thread that starts steps.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::Signal;
use rustix::thread::CapabilitySet;
use tokio::signal::unix::{SignalKind, signal};

use super::{landlock, named};
use crate::host_protocol::wire::HostSpec;

/// Ignores signals that are sent to the worker's whole service, because the worker decides when a
/// step ends.
pub(super) fn outlive_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _guard = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        // The handler stays installed after its listener is dropped, and programs the host starts
        // don't inherit it.
        drop(signal(kind)?);
    }
    Ok(())
}

/// Moves this process into a control group (version 2). Comes before the change of the user,
/// because only the worker's user may have the permission.
pub(super) fn enter_cgroup(cgroup: &Path) -> io::Result<()> {
    // A process that writes 0 moves itself.
    let moved = fs::write(cgroup.join("cgroup.procs"), "0");
    moved.map_err(|error| named(&format!("control group {}", cgroup.display()), &error))
}

/// Makes the kernel kill this process when its parent ends.
pub(super) fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Confines the calling thread and every program it starts afterwards.
pub(super) fn restrict_thread(spec: &HostSpec) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let is_privileged = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SETPCAP));
    if is_privileged {
        drop_bounding_set().map_err(|error| named("programs without capabilities", &error))?;
    }
    landlock::restrict(spec)
}

/// Empties the bounding and inheritable capability sets, so that no program of a step gains a
/// capability, even as root.
fn drop_bounding_set() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // This kernel doesn't support the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

//! Namespaces of a host: users, mounts, processes, and optionally an empty network.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::named;
use crate::host_protocol::wire::HostSpec;

/// Mount options of a private temporary directory: in memory, 256 MiB each.
const PRIVATE_TMP: &str = "size=256m,mode=1777";

/// Mount options of the empty directory, mode 0, that hides a directory of the program.
const NOTHING: &str = "size=4k,nr_inodes=1,mode=0";

/// Directories for temporary files of all users.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Creates the namespaces. The next process that this one starts is process 1 of its namespace.
pub(super) fn enter(spec: &HostSpec) -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    if spec.no_network {
        flags |= UnshareFlags::NEWNET;
    }
    if uid != 0 {
        flags |= UnshareFlags::NEWUSER;
    }
    unshare(flags).map_err(|error| named("namespaces", &error.into()))?;
    if uid != 0 {
        // Root inside the namespace maps to this user outside.
        let map = |file: &str, text: &str| {
            fs::write(file, text).map_err(|error| named(&format!("{file} of a namespace"), &error))
        };
        map("/proc/self/setgroups", "deny")?;
        map("/proc/self/uid_map", &format!("0 {uid} 1"))?;
        map("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    }
    Ok(())
}

#[expect(
    deprecated,
    reason = "safe for these flags: only CLONE_FILES, which is never passed, is not"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Sets up the mounts of the namespace. Called by its process 1.
pub(super) fn settle(spec: &HostSpec) -> io::Result<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| named("mounts of its own", &error.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)
        .map_err(|error| named("/proc of its own", &error.into()))?;
    for path in &spec.hidden {
        let error = |error: io::Error| named(&format!("hiding {}", path.display()), &error);
        hide(path, &spec.dir).map_err(error)?;
    }
    if spec.private_tmp {
        let error = |error: io::Error| named("temporary files of its own", &error);
        private_tmp(spec).map_err(error)?;
    }
    Ok(())
}

fn hide(path: &Path, dir: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            Ok(mount("tmpfs", path, "tmpfs", flags, data(NOTHING)?.as_c_str())?)
        }
        Ok(_) => {
            let empty = dir.join(".hidden");
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o000);
            if !empty.exists() {
                options.open(&empty)?;
            }
            mount_bind(&empty, path)?;
            let flags = MountFlags::BIND | MountFlags::RDONLY;
            // A mount inherited from outside may have flags that cannot be changed here. The
            // visible file is empty regardless.
            let _ = mount_remount(path, flags, "");
            Ok(())
        }
    }
}

/// Mounts empty directories over the shared ones, and restores the host's own directory at its
/// path.
fn private_tmp(spec: &HostSpec) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let own = open_tree(CWD, &spec.dir, flags)?;
    for place in shared(spec) {
        if place.is_dir() {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount("tmpfs", place, "tmpfs", flags, data(PRIVATE_TMP)?.as_c_str())?;
        }
    }
    fs::create_dir_all(&spec.dir)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(&own, "", CWD, &spec.dir, flags)?)
}

/// Iterates over the directories that are private with [`Spec::private_tmp`].
pub(super) fn shared(spec: &HostSpec) -> impl Iterator<Item = &Path> {
    let base =
        Some(spec.base.as_path()).filter(|base| SHARED.iter().all(|it| Path::new(it) != *base));
    SHARED.iter().map(Path::new).chain(base)
}

/// Empties the private temporary directories after a step.
pub(super) fn wipe(spec: &HostSpec) {
    for place in shared(spec) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            if spec.dir.starts_with(&path) {
                continue;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            // An entry that cannot be removed is below a mount, which is private as well.
            let _ = if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

fn data(options: &str) -> io::Result<CString> {
    CString::new(options).map_err(io::Error::other)
}

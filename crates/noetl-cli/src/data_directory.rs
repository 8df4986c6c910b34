//! Restricts access to the data directory, which contains the database and the encryption key, to
//! its owner.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::{CliError, ErrorKind};
use crate::output;

/// Mode of the directory: only its owner has access.
const OWNER: u32 = 0o700;
/// Sticky bit, which marks directories shared by many users, such as `/tmp`.
const SHARED: u32 = 0o1000;

/// Creates the directory with access for its owner only.
///
/// Restricts an existing directory of this user to its owner, too, unless it serves other purposes;
/// prints a warning in that case.
pub(crate) fn prepare(data: &Path) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        let about = format!("could not prepare the data directory {}", data.display());
        CliError::from_error(ErrorKind::Config, &error).about(&about)
    };
    DirBuilder::new().recursive(true).mode(OWNER).create(data).map_err(failed)?;
    let metadata = fs::metadata(data).map_err(failed)?;
    let mode = metadata.permissions().mode();
    if mode & 0o077 == 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let is_lived_in = mode & SHARED != 0 || is_somebody_else_s(data);
    match is_lived_in {
        true => output::note(&format!(
            "  warning   other users may enter {}: choose another with --data, or close it with \
             chmod 700",
            data.display()
        )),
        false => fs::set_permissions(data, Permissions::from_mode(OWNER)).map_err(failed)?,
    }
    Ok(())
}

/// Returns `true` for a directory that serves other purposes, too: the root, the home directory,
/// the working directory, or an ancestor of these.
fn is_somebody_else_s(data: &Path) -> bool {
    let Ok(data) = data.canonicalize() else { return true };
    let homes = [std::env::home_dir(), std::env::current_dir().ok(), Some("/".into())];
    homes
        .into_iter()
        .flatten()
        .any(|home| home.canonicalize().is_ok_and(|home| home.starts_with(&data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a directory").permissions().mode() & 0o7777
    }

    #[test]
    fn a_data_directory_is_private_to_its_owner() {
        let above = tempfile::tempdir().expect("a directory");
        let data = above.path().join("a/data");
        prepare(&data).expect("a new directory");
        assert_eq!(mode(&data), 0o700);
        fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("another mode");
        prepare(&data).expect("the same directory");
        assert_eq!(mode(&data), 0o700);
    }

    #[test]
    fn a_shared_directory_keeps_its_mode() {
        let above = tempfile::tempdir().expect("a directory");
        let shared = above.path().join("shared");
        fs::create_dir(&shared).expect("a directory");
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("another mode");
        prepare(&shared).expect("a directory");
        assert_eq!(mode(&shared), 0o1777);
        assert!(is_somebody_else_s(Path::new("/")) && is_somebody_else_s(Path::new(".")));
    }
}

//! Loads the key that encrypts credentials, from the settings or from a file in the data directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use noetl_config::tree::Secrets;
use noetl_secrets::{EncryptionKey, KEY_VARIABLE, KeyError, PREVIOUS_KEY_VARIABLE};

use crate::error::{CliError, ErrorKind};
use crate::settings;

/// File name of the key in a data directory.
const FILE: &str = "encryption.key";

/// Returns the configured key, or `None` if there is none. Fails if the value is not a valid key.
pub(crate) fn from_settings() -> Result<Option<EncryptionKey>, CliError> {
    let secrets: Secrets = settings::section()?;
    let Some(text) = &secrets.encryption_key else { return Ok(None) };
    let key = EncryptionKey::from_base64(text.expose());
    let key = key.map_err(|error| not_a_key(&settings::current().name_of(KEY_VARIABLE), error))?;
    changed(key, &secrets).map(Some)
}

/// Adds the configured version to a key, and the previous key for values it still has to decrypt.
fn changed(key: EncryptionKey, secrets: &Secrets) -> Result<EncryptionKey, CliError> {
    let key = match &secrets.encryption_key_version {
        Some(version) => key.with_version(version.trim()),
        None => key,
    };
    let Some(text) = &secrets.encryption_key_previous else { return Ok(key) };
    let previous = EncryptionKey::from_base64(text.expose())
        .map_err(|error| not_a_key(&settings::current().name_of(PREVIOUS_KEY_VARIABLE), error))?;
    Ok(key.with_previous(&previous))
}

/// Returns the configured key, else that of the data directory, which is created if
/// missing.
pub(crate) fn of_directory(data: &Path) -> Result<EncryptionKey, CliError> {
    if let Some(key) = from_settings()? {
        return Ok(key);
    }
    let file = data.join(FILE);
    let name = file.display().to_string();
    let failed = |error: io::Error| {
        CliError::from_error(ErrorKind::Config, &error)
            .about(&format!("could not keep a key in {name}"))
    };
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(data, &file).map_err(failed)?;
            fs::read_to_string(&file).map_err(failed)?
        }
        Err(error) => return Err(failed(error)),
    };
    let key = EncryptionKey::from_base64(&text).map_err(|error| not_a_key(&name, error))?;
    changed(key, &settings::section()?)
}

/// Returns `true` if the directory contains a key file.
pub(crate) fn is_in(directory: &Path) -> bool {
    directory.join(FILE).exists()
}

/// Creates the key file atomically. Keeps a file that another process created in the meantime.
fn make(data: &Path, file: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(data)?;
    let draft = data.join(format!("{FILE}.{}", std::process::id()));
    // A draft left by an earlier process with the same ID contains an unused key.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    written.write_all(EncryptionKey::generate().to_base64().as_bytes())?;
    written.write_all(b"\n")?;
    written.sync_all()?;
    // Unlike a rename, a link never replaces an existing file.
    let linked = match fs::hard_link(&draft, file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    fs::remove_file(&draft)?;
    linked?;
    // If a power failure lost the directory entry, credentials encrypted with the key would be
    // unreadable.
    File::open(data)?.sync_all()
}

fn not_a_key(place: &str, error: KeyError) -> CliError {
    CliError::from_error(ErrorKind::Config, &error)
        .about(place)
        .hint("a key is base64 of 32 bytes: make one with `openssl rand -base64 32`")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_has_one_private_key_file() {
        let home = tempfile::TempDir::new().expect("a directory");
        let data = home.path().join("data");
        let made = of_directory(&data).expect("a key");
        let again = of_directory(&data).expect("the same key");
        assert_eq!(*made.to_base64(), *again.to_base64());
        let mode = fs::metadata(data.join(FILE)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&data).expect("a list").count(), 1, "no draft stays");
        make(&data, &data.join(FILE)).expect("another was faster");
        let stored = of_directory(&data).expect("the first key");
        assert_eq!(*made.to_base64(), *stored.to_base64());
    }

    #[test]
    fn an_invalid_key_file_is_reported_and_not_replaced() {
        let home = tempfile::TempDir::new().expect("a directory");
        fs::write(home.path().join(FILE), "abc").expect("a file");
        let failure = of_directory(home.path()).expect_err("no key");
        assert!(failure.text().contains("encryption.key"), "{}", failure.text());
        assert_eq!(fs::read_to_string(home.path().join(FILE)).expect("a file"), "abc");
    }
}

//! Reads documents from files or stdin.

use std::io::Read;
use std::path::Path;

use crate::error::{CliError, ErrorKind};

/// Text of a document, with the name to show in messages.
pub(super) struct NamedDocument {
    pub(super) name: String,
    pub(super) text: String,
}

/// Returns the name to show for a file: `stdin` for `-`, else its path.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Returns `true` if the path is `-`, which stands for stdin.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a file, or stdin for `-`. Fails if the text is not UTF-8.
pub(super) fn read(path: &Path) -> Result<NamedDocument, CliError> {
    let name = name(path);
    let bytes = if is_stdin(path) {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| {
        CliError::new(ErrorKind::User, format!("could not read {name}: {error}"))
            .hint("examples/hello.yaml is a playbook to begin with")
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(NamedDocument { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let message = format!("{name} is not UTF-8 text: byte {at} begins no character");
            Err(CliError::new(ErrorKind::User, message))
        }
    }
}
